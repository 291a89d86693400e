//! Migrations expand first and contract later.
//!
//! While a version is deployed, processes of the previous one run on the new schema. So a migration adds; what it
//! takes away must have been unused since an earlier one, and the linter Squawk finds every statement that takes
//! something away. The statements of the last release are kept in `store/released.json` and prepared against
//! the newest schema; kept, not read from the history, because CI clones without it.

use crate::PROGRAM;
use serde::{Deserialize, Serialize};
use sqlx::{AssertSqlSafe, Column, Connection, Executor, PgConnection, SqlSafeStr, Statement, TypeInfo};
use squawk_linter::{Linter, Rule};
use squawk_syntax::SourceFile;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};
use tests::database;

/// The first migration that is checked: those before it are the schema of 0.1.0, the first release.
const FIRST: &str = "0010";

/// Statements that the linter objects to and that are safe: the migration, a part of the statement, and the reason.
const SAFE: &[(&str, &str, Why)] = &[];

/// Why a statement is safe.
#[derive(Clone, Copy)]
enum Why {
    /// The previous version's processes are not affected, as the text says.
    Unaffected(&'static str),
    /// No process uses what is taken away since this earlier migration.
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

/// Returns what is wrong with the migrations from [`FIRST`] on: statements without a reason, and reasons that hold for
/// nothing.
fn faults(migrations: &BTreeMap<String, String>, safe: &[(&str, &str, Why)]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut used = vec![false; safe.len()];
    for (name, sql) in migrations.iter().filter(|(name, _)| name.as_str() >= FIRST) {
        for (statement, rule) in breaking(sql) {
            let Some(at) = safe.iter().position(|(of, part, _)| of == name && statement.contains(part))
            else {
                faults.push(format!("{name}: {rule:?}, see SAFE:\n{statement}"));
                continue;
            };
            used[at] = true;
            match safe[at].2 {
                Why::UnusedSince(earlier)
                    if !migrations.contains_key(earlier) || earlier >= name.as_str() =>
                {
                    faults.push(format!("{name}: {earlier} is not earlier"));
                }
                Why::Unaffected("") => faults.push(format!("{name}: the reason is missing")),
                Why::UnusedSince(_) | Why::Unaffected(_) => {}
            }
        }
    }
    for ((name, part, _), _) in safe.iter().zip(used).filter(|(_, is_used)| !is_used) {
        faults.push(format!("nothing in {name} needs the entry {part:?}"));
    }
    faults
}

#[test]
fn migrations_only_add_or_take_away_what_no_process_uses() {
    let faults = faults(&migrations(), SAFE);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_is_taken_away_needs_an_earlier_migration_since_which_it_is_unused() {
    let later = [
        ("0010_authors", "alter table posts add column author text"),
        ("0011_no_slots", "alter table posts drop column slot_account_id"),
    ];
    let later = later.map(|(name, sql)| (name.to_owned(), sql.to_owned()));
    let migrations = migrations().into_iter().chain(later).collect();
    let told = |safe: &[(&str, &str, Why)]| faults(&migrations, safe);
    let drop = |why| ("0011_no_slots", "drop column slot_account_id", why);
    assert_eq!(told(&[drop(Why::UnusedSince("0010_authors"))]), [""; 0]);
    assert_eq!(told(&[drop(Why::Unaffected("it was never written"))]), [""; 0]);
    for (safe, fault) in [
        (vec![], "0011_no_slots: BanDropColumn"),
        (vec![drop(Why::UnusedSince("0011_no_slots"))], "0011_no_slots is not earlier"),
        (vec![drop(Why::UnusedSince("0009_unknown"))], "0009_unknown is not earlier"),
        (vec![drop(Why::Unaffected(""))], "the reason is missing"),
        (
            vec![
                drop(Why::UnusedSince("0010_authors")),
                ("0010_authors", "add column", Why::Unaffected("it is new")),
            ],
            "nothing in 0010_authors needs",
        ),
    ] {
        let told = told(&safe);
        assert!(told.len() == 1 && told[0].contains(fault), "{fault}: {told:?}");
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
        "drop trigger posts_notify on posts",
        "drop function text_digest(text)",
        "create or replace function text_digest(content text) returns text language sql as 'select content'",
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

/// Content of `store/released.json`.
#[derive(Serialize, Deserialize)]
pub(crate) struct Released {
    /// The last release; `None` before the first one.
    version: Option<String>,
    pub(crate) queries: Vec<Query>,
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

/// Reads the statements of the last release.
pub(crate) fn released() -> Released {
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
        let version = Some(env!("CARGO_PKG_VERSION").to_owned());
        let kept = serde_json::to_string_pretty(&Released { version, queries }).unwrap();
        std::fs::write(store().join("released.json"), kept + "\n").unwrap();
    }
    let Released { version, queries } = released();
    // Before the first release there is none to suit; a release keeps all of its statements.
    assert_eq!(version.is_some(), queries.len() > 100, "{version:?} keeps {} statements", queries.len());
    let unsuited = unsuited(&mut db, &queries).await;
    assert!(unsuited.is_empty(), "{}", unsuited.join("\n"));
}

/// Returns which statements of the last release this schema does not suit.
async fn unsuited(db: &mut PgConnection, released: &[Query]) -> Vec<String> {
    let mut unsuited = Vec::new();
    for query in released {
        match prepare(db, &query.query).await {
            Ok(prepared) if prepared == *query => {}
            Ok(prepared) => {
                unsuited.push(format!("the last release expects other types: {query:?}, not {prepared:?}"));
            }
            Err(error) => {
                unsuited.push(format!("the last release can't run on this schema: {error}\n{}", query.query));
            }
        }
    }
    unsuited
}

#[tokio::test]
async fn a_schema_that_does_not_suit_the_last_release_is_found() {
    let db = database(&PROGRAM).await;
    let mut db = db.acquire().await.unwrap();
    let query = "select id, external_ref from posts where org_id = $1";
    let released = [prepare(&mut db, query).await.unwrap()];
    assert_eq!(unsuited(&mut db, &released).await, [""; 0]);
    for change in [
        "alter table posts alter column external_ref type varchar(100)",
        "alter table posts rename column external_ref to reference",
    ] {
        db.execute(change).await.unwrap();
        db.clear_cached_statements().await.unwrap();
        assert_eq!(unsuited(&mut db, &released).await.len(), 1, "{change}");
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
