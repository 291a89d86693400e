//! `fanfare key reseal`: what older keys of the ring sealed is sealed to the current one.
//!
//! Services go on meanwhile, for a worker opens with every key of its ring. Broken off, it is begun again
//! and finds what is left. It ends well only when nothing needs an older key any more.

use crate::config::{Database, Keys};
use anyhow::Context;
use std::io::Write;
use store::{
    Pool,
    reseal::{self, Column},
    vault::{KeyId, Opener, Sealer},
};

/// Seals everything anew, so many values at a time.
pub(crate) async fn run(database: &Database, keys: &Keys, batch: u16) -> anyhow::Result<()> {
    let db = store::connect(&database.database_url, 2).await?;
    let (opener, sealer) = (&keys.open_keys, keys.open_keys.sealer());
    let current = sealer.id();
    let mut total = 0;
    for column in Column::ALL {
        let left = reseal::count(&db, *column, current).await?;
        say(&format!("{column}: {left} to be sealed with key {}", current.0))?;
        let walk = Walk { db: &db, column: *column, opener, sealer: &sealer, current };
        total += walk.all(i64::from(batch), left).await?;
    }
    let mut left = 0;
    for column in Column::ALL {
        left += reseal::count(&db, *column, current).await?;
    }
    anyhow::ensure!(
        left == 0,
        "sealed {total} values anew, and {left} still need another key: some process seals with one \
         (FANFARE_SEAL_KEY, FANFARE_OPEN_KEYS), or it is missing from FANFARE_OPEN_KEYS here; then again"
    );
    say(&format!("Sealed {total} values anew. Nothing needs another key than {} any more", current.0))
}

struct Walk<'a> {
    db: &'a Pool,
    column: Column,
    opener: &'a Opener,
    sealer: &'a Sealer,
    current: KeyId,
}

impl Walk<'_> {
    /// Walks the column to its end, and gives how many values were sealed anew.
    async fn all(&self, batch: i64, left: i64) -> anyhow::Result<i64> {
        let (mut after, mut done, mut unopened) = (None::<Vec<u8>>, 0, 0);
        loop {
            let stale = reseal::next(self.db, self.column, self.current, after.as_deref(), batch).await?;
            let Some(last) = stale.last() else { return Ok(done) };
            after = Some(last.key.clone());
            for value in &stale {
                let aad = self.column.aad(value);
                match self.opener.open(&value.sealed, &aad) {
                    Ok(plain) => {
                        let sealed = self.sealer.seal(&plain, &aad);
                        // One that was replaced meanwhile is newer than ours.
                        done += i64::from(reseal::replace(self.db, self.column, value, &sealed).await?);
                    }
                    Err(error) => {
                        unopened += 1;
                        say(&format!("{}: {value} does not open: {error}", self.column))?;
                    }
                }
            }
            say(&format!("{}: {done} sealed anew, about {} left", self.column, left - done - unopened))?;
        }
    }
}

/// A line for whoever watches, at once.
fn say(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("writing to standard output")
}
