//! `fanfare key reseal`: re-encrypts values of older keys with the current one.
//!
//! Services keep running, since a worker decrypts with every key in FANFARE_OPEN_KEYS. An interrupted run can be
//! repeated and continues with what is left. It succeeds only when no value needs an older key.

use crate::{config::Keys, database::Database};
use anyhow::Context;
use std::io::Write;
use store::{
    Pool,
    upkeep::{
        reseal::{self, Column},
        vault::{KeyId, Opener, Sealer},
    },
};

/// Re-encrypts all values in batches of `batch`.
pub(crate) async fn run(database: &Database, keys: &Keys, batch: u16) -> anyhow::Result<()> {
    let db = store::connect(&database.database_url, 2).await?;
    let (opener, sealer) = (&keys.open_keys, keys.open_keys.sealer());
    let current = sealer.id();
    let mut total = 0;
    for column in Column::ALL {
        let left = reseal::count(&db, *column, current).await?;
        print_line(&format!("{column}: {left} to re-encrypt with key {}", current.0))?;
        let walk = Walk { db: &db, column: *column, opener, sealer: &sealer, current };
        total += walk.all(i64::from(batch), left).await?;
    }
    let mut left = 0;
    for column in Column::ALL {
        left += reseal::count(&db, *column, current).await?;
    }
    anyhow::ensure!(
        left == 0,
        "re-encrypted {total} values, {left} still need another key: a process uses it for encryption \
         (FANFARE_SEAL_KEY, FANFARE_OPEN_KEYS), or it is missing from FANFARE_OPEN_KEYS here; fix that and run again"
    );
    print_line(&format!("Re-encrypted {total} values. All values now use key {}", current.0))
}

struct Walk<'a> {
    db: &'a Pool,
    column: Column,
    opener: &'a Opener,
    sealer: &'a Sealer,
    current: KeyId,
}

impl Walk<'_> {
    /// Re-encrypts the values of the column and returns their number.
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
                        // A value that was replaced meanwhile already uses the current key.
                        done += i64::from(reseal::replace(self.db, self.column, value, &sealed).await?);
                    }
                    Err(error) => {
                        unopened += 1;
                        print_line(&format!("{}: {value} can't be decrypted: {error}", self.column))?;
                    }
                }
            }
            print_line(&format!(
                "{}: {done} re-encrypted, about {} left",
                self.column,
                left - done - unopened
            ))?;
        }
    }
}

/// Prints a line of progress to stdout and flushes it.
fn print_line(line: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).context("writing to standard output")
}
