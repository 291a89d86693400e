//! Resealing values with the current key after a key rotation.
//!
//! Each sealed column is walked by id in small steps. A value is replaced only while it is the one that was
//! read, so that a concurrent refresh or edit wins; each replacement commits by itself, so that the walk can
//! be stopped and restarted at any time, while the service runs.

use crate::{
    accounts::pending_logins::Digest,
    decode::Parsed,
    upkeep::vault::{self, KeyId},
};
use domain::{Mode, Owner};
use sqlx::PgPool;
use std::fmt;
use uuid::Uuid;

/// A value sealed with an older key.
#[derive(Debug)]
pub struct Stale {
    /// Primary key of the row: the bytes of an id or of a digest.
    pub key: Vec<u8>,
    /// Owner of the row.
    pub owner: Owner,
    /// The sealed value.
    pub sealed: Vec<u8>,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Uuid::from_slice(&self.key) {
            Ok(id) => id.fmt(f),
            Err(_) => f.write_str(&hex::encode(&self.key)),
        }
    }
}

// A table's key is given three times: as its column, as the expression that reads it as bytes, and as what
// converts bytes to it for a comparison.
macro_rules! columns {
    ($($(#[$doc:meta])* $name:ident {
        $label:literal, $table:literal, $key:literal, $read:literal, ($before:literal, $after:literal),
        $column:literal, $aad:expr
    })+) => {
        /// A column of sealed values.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Column {
            $($(#[$doc])* $name,)+
        }

        impl Column {
            /// All columns of sealed values.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Returns the associated data that a value is sealed with.
            pub fn aad(self, stale: &Stale) -> Vec<u8> {
                let aad: fn(Owner, &[u8]) -> Vec<u8> = match self {
                    $(Self::$name => $aad,)+
                };
                aad(stale.owner, &stale.key)
            }
        }

        impl fmt::Display for Column {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $label,)+
                })
            }
        }

        /// Returns the number of values in a column that are not sealed with the current key.
        pub async fn count(db: &PgPool, column: Column, current: KeyId) -> sqlx::Result<i64> {
            let header = vault::header(current);
            match column {
                $(Column::$name => sqlx::query_scalar!(
                    r#"select count(*) as "count!" from "# + $table
                        + " where substring(" + $column + " from 1 for 5) <> $1",
                    &header[..]
                )
                .fetch_one(db)
                .await,)+
            }
        }

        /// Returns up to `limit` of these values, by key, after the key `after`.
        pub async fn next(
            db: &PgPool,
            column: Column,
            current: KeyId,
            after: Option<&[u8]>,
            limit: i64,
        ) -> sqlx::Result<Vec<Stale>> {
            let header = vault::header(current);
            match column {
                $(Column::$name => sqlx::query!(
                    "select " + $read + r#" as "key!", org_id, mode as "mode: Parsed<Mode>", "# + $column
                        + r#" as "sealed!" from "# + $table + " where ($2::bytea is null or " + $key + " > "
                        + $before + "$2" + $after + ") and substring(" + $column
                        + " from 1 for 5) <> $1 order by " + $key + " limit $3",
                    &header[..],
                    after,
                    limit
                )
                .map(|row| Stale {
                    key: row.key,
                    owner: Owner { org: row.org_id.into(), mode: row.mode.into() },
                    sealed: row.sealed,
                })
                .fetch_all(db)
                .await,)+
            }
        }

        /// Replaces a value. Returns false when it was changed or deleted since it was read.
        pub async fn replace(
            db: &PgPool,
            column: Column,
            stale: &Stale,
            sealed: &[u8],
        ) -> sqlx::Result<bool> {
            let (org, mode) = (stale.owner.org.0, stale.owner.mode.as_str());
            let done = match column {
                $(Column::$name => sqlx::query!(
                    "update " + $table + " set " + $column + " = $5 where " + $key + " = " + $before + "$1"
                        + $after + " and org_id = $2 and mode = $3 and " + $column + " = $4",
                    &stale.key,
                    org,
                    mode,
                    stale.sealed,
                    sealed
                )
                .execute(db)
                .await,)+
            };
            Ok(done?.rows_affected() > 0)
        }
    };
}

columns! {
    /// Grants of accounts.
    Grants {
        "grants of accounts", "accounts", "id", "uuid_send(id)", ("encode(", ", 'hex')::uuid"),
        "grant_sealed", |owner, key| vault::aad_grant(owner, id(key).into())
    }
    /// Client secrets of OAuth apps.
    ClientSecrets {
        "client secrets", "networks", "id", "uuid_send(id)", ("encode(", ", 'hex')::uuid"),
        "secret_sealed", |owner, key| vault::aad_client_secret(owner, id(key).into())
    }
    /// Signing secrets of webhook endpoints.
    SigningSecrets {
        "signing secrets", "webhooks", "id", "uuid_send(id)", ("encode(", ", 'hex')::uuid"),
        "secret_sealed", |owner, key| vault::aad_webhook_secret(owner, id(key).into())
    }
    /// Next signing secrets of webhook endpoints.
    NextSigningSecrets {
        "next signing secrets", "webhooks", "id", "uuid_send(id)", ("encode(", ", 'hex')::uuid"),
        "next_secret_sealed", |owner, key| vault::aad_webhook_secret(owner, id(key).into())
    }
    /// Grants of pending logins.
    PendingGrants {
        "grants of pending logins", "pending_logins", "token_digest", "token_digest", ("(", ")"),
        "grants_sealed", |owner, key| vault::aad_pending(owner, Digest::read(key).expect("32 bytes"))
    }
}

fn id(key: &[u8]) -> Uuid {
    Uuid::from_slice(key).expect("16 bytes")
}
