//! Migrations expand first and contract later.
//!
//! While a version is deployed, processes of the previous one run on the new schema. So a migration adds; what it
//! takes away must have been unused since an earlier one, and the linter Squawk finds every statement that takes
//! something away. The statements of the last release are kept in `store/released.json` and prepared against
//! the newest schema; kept, not read from the history, because CI clones without it.

use crate::PROGRAM;
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, Column, Executor, PgConnection, SqlSafeStr, Statement, TypeInfo};
use squawk_linter::{Linter, Rule};
use squawk_syntax::SourceFile;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use tests::database;

/// The first migration that is checked: those before it were applied with all processes stopped.
const FIRST: &str = "0062";

/// Statements that the linter objects to and that are safe, each with the reason: that the processes of the
/// previous version are not affected, or, for a contraction, the earlier migration since which no process uses
/// what is taken away.
const SAFE: [(&str, &str, Why); 37] = [
    (
        "0062_restored",
        "is_restored boolean not null default false",
        Why::Unaffected("the column has a default"),
    ),
    ("0063_overdue", "index outbox_overdue", Why::Unaffected("they leave the column null")),
    (
        "0064_throttled",
        "free_attempts integer not null default 0",
        Why::Unaffected("the column has a default"),
    ),
    (
        "0070_post_metadata",
        "metadata jsonb not null default '{}'",
        Why::Unaffected("the column has a default"),
    ),
    (
        "0072_event_stream",
        "has_deliveries boolean not null default true",
        Why::Unaffected("the column has a default"),
    ),
    ("0074_variants", "variant smallint not null default 0", Why::Unaffected("the column has a default")),
    (
        "0091_confirm",
        "oauth_states add column confirm boolean not null default false",
        Why::Unaffected("the column has a default"),
    ),
    (
        "0091_confirm",
        "pending_logins add column confirm boolean not null default false",
        Why::Unaffected("the column has a default"),
    ),
    ("0098_replies", "is_reply boolean not null default false", Why::Unaffected("the column has a default")),
    (
        "0118_foreign_keys",
        "drop constraint events_target_id_fkey",
        Why::Unaffected("a key refuses, and allows nothing"),
    ),
    (
        "0118_foreign_keys",
        "drop constraint events_account_id_fkey",
        Why::Unaffected("a key refuses, and allows nothing"),
    ),
    (
        "0119_list_filters",
        "drop index targets_platform",
        Why::Unaffected("the index that is created before it begins with the same columns"),
    ),
    ("0121_notify", "drop trigger outbox_notify", Why::Unaffected("their relays poll, every two seconds")),
    ("0121_notify", "drop function outbox_notify", Why::Unaffected("only the trigger used it")),
    (
        "0124_partitions",
        "alter table deliveries drop constraint",
        Why::Unaffected("they delete no event and no webhook that has deliveries"),
    ),
    (
        "0124_partitions",
        "alter table events drop constraint",
        Why::Unaffected("they delete no post and no organization"),
    ),
    (
        "0124_partitions",
        "alter table events rename",
        Why::Unaffected("the same transaction creates a table of this name, of which it is a part"),
    ),
    (
        "0124_partitions",
        "alter table deliveries rename",
        Why::Unaffected("the same transaction creates a table of this name, of which it is a part"),
    ),
    ("0126_drain", "is_drained boolean not null default false", Why::Unaffected("the column has a default")),
    ("0126_drain", "failures integer not null default 0", Why::Unaffected("the column has a default")),
    ("0129_people", "person_id uuid references people", Why::Unaffected("they leave the column null")),
    (
        "0129_people",
        "is_test_only boolean not null default false",
        Why::Unaffected("the column has a default"),
    ),
    ("0129_people", "index members_person_key", Why::Unaffected("they leave the column null")),
    (
        "0130_session_holders",
        "alter column key_id drop not null",
        Why::Unaffected("they find a session by its key, and not one without"),
    ),
    (
        "0130_session_holders",
        "member_id uuid references members",
        Why::Unaffected("they leave the column null"),
    ),
    (
        "0154_session_passkeys",
        "passkey_id uuid references passkeys",
        Why::Unaffected("they leave the column null"),
    ),
    (
        "0139_seeing",
        "created_at timestamptz not null default now()",
        Why::Unaffected("the column has a default"),
    ),
    (
        "0195_account_tenants",
        "add constraint accounts_is_current_check",
        Why::Unaffected("they leave the column at its default"),
    ),
    (
        "0195_account_tenants",
        "drop constraint accounts_identity_key",
        Why::Unaffected("the next statement adds one of this name, for the rows that they write"),
    ),
    (
        "0195_account_tenants",
        "add constraint accounts_identity_key",
        Why::Unaffected("they leave the column at its default, so that it is the one before it"),
    ),
    (
        "0192_rounds",
        "targets add column round integer not null default 0",
        Why::Unaffected("the column has a default"),
    ),
    (
        "0192_rounds",
        "posts add column round integer not null default 0",
        Why::Unaffected("the column has a default"),
    ),
    ("0192_rounds", "has_failed boolean not null default false", Why::Unaffected("the column has a default")),
    (
        "0205_displayed_size",
        "add column is_measured_as_displayed boolean not null default false",
        Why::Unaffected("the column has a default"),
    ),
    (
        "0221_strip_metadata",
        "add column strip_metadata boolean not null default true",
        Why::Unaffected("the column has a default"),
    ),
    (
        "0222_missing_parts",
        "create or replace view target_containers",
        Why::Unaffected("it has the same columns, with other texts only where a later version wrote them"),
    ),
    (
        "0232_end_reasons",
        "add constraint targets_end_has_reason",
        Why::Unaffected("the trigger before it gives the reason that they leave out"),
    ),
];

/// Why a statement is safe.
#[derive(Clone, Copy)]
#[expect(dead_code, reason = "there is no contraction yet")]
enum Why {
    /// The previous version's processes are not affected.
    Unaffected(&'static str),
    /// Nothing uses it since this migration.
    UnusedSince(&'static str),
}

/// Rules about processes that know the schema as it was, beside Squawk's default ones.
const BESIDES: [Rule; 7] = [
    Rule::BanDropTrigger,
    Rule::BanDropIndex,
    Rule::BanSetDefault,
    Rule::BanDisableTrigger,
    Rule::BanReplaceViewFunction,
    Rule::BanNewWriteRestriction,
    Rule::BanAlterSequenceValues,
];

/// Default rules about style, and about locks: a migration is applied by a command of its own, at a time that an
/// operator chooses.
const WITHOUT: [Rule; 6] = [
    Rule::PreferBigintOverInt,
    Rule::PreferBigintOverSmallint,
    Rule::PreferRobustStmts,
    Rule::RequireLockTimeout,
    Rule::RequireStatementTimeout,
    Rule::RequireConcurrentIndexCreation,
];

fn store() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../store")
}

/// Returns the migrations by name, in order.
fn migrations() -> BTreeMap<String, String> {
    let files = std::fs::read_dir(store().join("migrations")).unwrap().map(|entry| entry.unwrap().path());
    let named = |path: PathBuf| {
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), std::fs::read_to_string(path).unwrap())
    };
    files.map(named).collect()
}

/// Returns the statements of a migration that could break a process of the previous version.
fn breaking(sql: &str) -> Vec<(String, Rule)> {
    let file = SourceFile::parse(sql);
    assert!(file.errors().is_empty(), "{:?}", file.errors());
    let mut linter = Linter::with_rules(&BESIDES, &WITHOUT);
    linter.settings.assume_in_transaction = true;
    let violations = linter.lint(&file, sql).into_iter();
    let statement = |at: usize| {
        let begin = sql[..at].rfind(';').map_or(0, |end| end + 1);
        let end = sql[at..].find(';').map_or(sql.len(), |end| at + end);
        sql[begin..end].trim().to_owned()
    };
    violations.map(|found| (statement(found.text_range.start().into()), found.code)).collect()
}

#[test]
fn migrations_only_add_or_take_away_what_no_process_uses() {
    let migrations = migrations();
    let mut used = Vec::new();
    for (name, sql) in migrations.iter().filter(|(name, _)| name.as_str() >= FIRST) {
        for (statement, rule) in breaking(sql) {
            let safe = SAFE.iter().position(|(of, part, _)| of == name && statement.contains(part));
            let safe = safe.unwrap_or_else(|| panic!("{name}: {rule:?}, see SAFE:\n{statement}"));
            if let Why::UnusedSince(earlier) = SAFE[safe].2 {
                assert!(
                    migrations.contains_key(earlier) && earlier < name.as_str(),
                    "{name}: {earlier} is not earlier"
                );
            }
            used.push(safe);
        }
    }
    for (index, (name, part, _)) in SAFE.iter().enumerate() {
        assert!(used.contains(&index), "nothing in {name} needs the entry {part:?}");
    }
}

#[test]
fn what_breaks_the_previous_version_is_found() {
    for statement in [
        "alter table posts drop column swept_at",
        "alter table posts rename column swept_at to swept",
        "alter table posts add column author text not null",
        "alter table posts add constraint no_drafts check (status <> 'draft') not valid",
        "alter table posts alter column is_draft set default false",
        "alter table posts alter column is_draft drop default",
        "alter table posts alter column version type bigint",
        "alter table posts alter column external_ref set not null",
        "alter table posts alter column status drop not null",
        "create unique index posts_status on posts (status)",
        "drop index posts_slot_key",
        "drop table timeline",
        "drop trigger outbox_notify on outbox",
        "drop function outbox_notify()",
        "create or replace function outbox_notify() returns trigger language sql as 'select 1'",
    ] {
        assert!(!breaking(statement).is_empty(), "{statement}");
    }
    for statement in [
        "alter table posts add column author text",
        "create index posts_status on posts (status)",
        "create table authors (id uuid primary key, name text not null)",
        "update posts set author = 'ada' where author is null",
    ] {
        assert_eq!(breaking(statement), [], "{statement}");
    }
}

/// A statement of the last release, as its processes use it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Query {
    query: String,
    /// Types of the parameters.
    parameters: Vec<String>,
    /// Names and types of the columns.
    columns: Vec<(String, String)>,
}

/// Returns the statements of the last release.
pub(crate) fn released() -> Vec<Query> {
    serde_json::from_slice(&std::fs::read(store().join("released.json")).unwrap()).unwrap()
}

/// Prepares a statement against a schema.
async fn prepare(db: &mut PgConnection, query: &str) -> sqlx::Result<Query> {
    let prepared = db.prepare(AssertSqlSafe(query.to_owned()).into_sql_str()).await?;
    let parameters = prepared.parameters().and_then(|types| types.left()).unwrap_or_default();
    Ok(Query {
        query: query.to_owned(),
        parameters: parameters.iter().map(|of| of.name().to_owned()).collect(),
        columns: prepared
            .columns()
            .iter()
            .map(|column| (column.name().to_owned(), column.type_info().name().to_owned()))
            .collect(),
    })
}

/// With `FANFARE_RECORD=1` the statements are replaced by those of this version, which is about to be released.
#[tokio::test]
async fn queries_of_the_last_release_run_on_the_newest_schema() {
    let db = database(&PROGRAM).await;
    let mut db = db.acquire().await.unwrap();
    if std::env::var_os("FANFARE_RECORD").is_some() {
        let mut queries = Vec::new();
        for entry in std::fs::read_dir(store().join("../.sqlx")).unwrap() {
            let described: serde_json::Value =
                serde_json::from_slice(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap();
            queries.push(prepare(&mut db, described["query"].as_str().unwrap()).await.unwrap());
        }
        queries.sort_by(|one, other| one.query.cmp(&other.query));
        let kept = serde_json::to_string_pretty(&queries).unwrap();
        std::fs::write(store().join("released.json"), kept + "\n").unwrap();
    }
    let released = released();
    assert!(released.len() > 100, "{} statements are kept", released.len());
    for query in released {
        match prepare(&mut db, &query.query).await {
            Ok(prepared) => assert_eq!(prepared, query, "the last release expects other types"),
            Err(error) => panic!("the last release can't run on this schema: {error}\n{}", query.query),
        }
    }
}

/// A rollback: a version that lacks the newest migrations is deployed again, `fanfare migrate` first.
#[tokio::test]
async fn an_earlier_version_accepts_a_newer_schema() {
    let db = database(&PROGRAM).await;
    tests::sql(
        &db,
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
         values (9999, 'of tomorrow', true, '', 0)",
    )
    .await;
    store::migrate(&db).await.unwrap();
}
