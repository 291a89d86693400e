//! The database roles of API and workers have the privileges that their statements need, and no others.

use crate::database;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqlSafeStr, Statement};
use std::collections::BTreeSet;
use store::{Pool, upkeep::roles::Roles};

/// Modules of the store with statements that read sealed values. Those are functions that only workers and
/// commands of the owner call: a function that the API calls, such as the sweeper's, must be in no other.
const READERS: [&str; 9] = [
    "accounts::connect",
    "accounts::disconnect",
    "accounts::grants",
    "accounts::networks",
    "accounts::pending_logins",
    "publishing::begin",
    "upkeep::restored",
    "webhooks",
    "webhooks::drain",
];

/// Returns the statements of the program, by the text.
fn statements() -> Vec<String> {
    let entries = std::fs::read_dir(tests::deploy::root().join(".sqlx")).unwrap();
    let described = entries.map(|entry| {
        serde_json::from_slice::<serde_json::Value>(&std::fs::read(entry.unwrap().path()).unwrap()).unwrap()
    });
    described.map(|described| described["query"].as_str().unwrap().to_owned()).collect()
}

/// Creates two roles, grants them what API and workers need, and connects as each. Roles belong to the server, which
/// the tests of a run share.
async fn connect(db: &Pool) -> [PgConnection; 2] {
    let name: String = sqlx::query_scalar("select current_database()").fetch_one(db).await.unwrap();
    let roles = ["api", "worker"].map(|role| format!("{name} of \"{role}\""));
    for role in &roles {
        let quoted = role.replace('"', "\"\"");
        tests::sql(db, &format!("create role \"{quoted}\" login password 'tests'")).await;
    }
    let granted = Roles { api: Some(&roles[0]), worker: Some(&roles[1]) };
    store::upkeep::roles::grant(db, granted).await.unwrap();
    // Privileges that are granted already are granted again.
    store::upkeep::roles::grant(db, granted).await.unwrap();
    let connected = roles.map(|role| {
        let options = (*db.connect_options()).clone().username(&role).password("tests");
        async move { PgConnection::connect_with(&options).await.unwrap() }
    });
    let [api, worker] = connected;
    [api.await, worker.await]
}

/// Returns the code with which the database refuses to plan a statement, which checks the privileges.
async fn refusal(db: &mut PgConnection, statement: &str) -> Option<String> {
    let count = {
        let prepared = db.prepare(AssertSqlSafe(statement.to_owned()).into_sql_str()).await.unwrap();
        prepared.parameters().map_or(0, |parameters| match parameters {
            sqlx::Either::Left(types) => types.len(),
            sqlx::Either::Right(count) => count,
        })
    };
    let nulls = vec!["null"; count].join(", ");
    let arguments = if count == 0 { String::new() } else { format!("({nulls})") };
    let explained = format!(
        "prepare explained as {statement};\nexplain execute explained{arguments};\ndeallocate explained;"
    );
    let outcome = sqlx::raw_sql(AssertSqlSafe(explained)).execute(&mut *db).await;
    let error = outcome.err()?;
    sqlx::raw_sql("deallocate all").execute(&mut *db).await.unwrap();
    let error = error.as_database_error().expect("an error of the database");
    Some(error.code().expect("a code").into_owned())
}

#[tokio::test]
async fn statements_that_read_no_sealed_value_are_permitted_to_both_roles() {
    let db = database().await;
    let [mut api, mut worker] = connect(&db).await;
    let statements = statements();
    assert!(statements.len() > 100, "{} statements", statements.len());
    let mut readers = BTreeSet::new();
    for statement in &statements {
        assert_eq!(refusal(&mut worker, statement).await, None, "a worker is refused:\n{statement}");
        if let Some(code) = refusal(&mut api, statement).await {
            assert_eq!(code, "42501", "{statement}");
            let sources = sources(statement);
            // The macro of `reseal` composes its statements, so that they are in no file as they are.
            let is_composed = ["substring(", "\"key!\"", "encode($1", "($1) and"]
                .iter()
                .any(|part| statement.contains(part));
            assert!(!sources.is_empty() || is_composed, "{statement}");
            readers.extend(sources);
        }
    }
    let readers: Vec<_> = readers.iter().map(String::as_str).collect();
    assert_eq!(readers, READERS, "statements that the API is refused");
}

/// Returns the modules of the store that have a statement.
fn sources(statement: &str) -> Vec<String> {
    let store = crate::walls::modules(&tests::deploy::root().join("store/src"), "").into_iter();
    store.filter(|(_, source)| source.contains(statement)).map(|(module, _)| module).collect()
}

#[tokio::test]
async fn a_role_changes_rows_and_no_table() {
    let db = database().await;
    for mut role in connect(&db).await {
        for (statement, code) in [
            ("select version from _sqlx_migrations", None),
            ("create table intruder (id int)", Some("42501")),
            ("alter table posts add column intruder int", Some("42501")),
            ("truncate posts", Some("42501")),
            ("drop table posts", Some("42501")),
            ("delete from _sqlx_migrations", Some("42501")),
            // A table that would stand before those of the schema.
            ("create temporary table events (id uuid)", Some("42501")),
            ("select partition_discard('events', now() - interval '10 years', 1)", None),
        ] {
            let error = sqlx::raw_sql(statement).execute(&mut role).await.err();
            let found =
                error.and_then(|error| error.as_database_error()?.code().map(|code| code.into_owned()));
            assert_eq!(found.as_deref(), code, "{statement}");
        }
    }
}

/// Functions that run as their owner find no object of their caller's, and only the processes may call them.
#[tokio::test]
async fn functions_of_the_owner_are_closed_to_others() {
    let db = database().await;
    let open = "select proname::text from pg_proc
                where prosecdef and pronamespace = 'public'::regnamespace
                  and (not 'search_path=public, pg_temp' = any(proconfig)
                    or has_function_privilege('public', oid, 'execute'))";
    let open: Vec<String> = sqlx::query_scalar(open).fetch_all(&db).await.unwrap();
    assert_eq!(open, [""; 0]);
}

#[tokio::test]
async fn a_role_that_does_not_exist_is_named() {
    let db = database().await;
    let roles = Roles { api: Some("nobody at all"), worker: None };
    let error = format!("{:#}", store::upkeep::roles::grant(&db, roles).await.unwrap_err());
    assert!(error.contains("the role nobody at all can't be granted its privileges"), "{error}");
}
