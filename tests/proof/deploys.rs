//! Deploys: two versions of the processes side by side, on a schema that both can use.
//!
//! [`schema`] checks that migrations only add, and that the queries of the last release run on the newest
//! schema. [`rollout`] replaces the processes of one version by those of another while posts are under way;
//! `FANFARE_PREVIOUS` is the path of the other version's program, without which both are this version.
//! The histories of all workflows' branches are replayed in `tests/it/replay.rs`.

mod rollout;
mod schema;

use crate::PROGRAM;
use tests::proof::{Section, is_full};

/// The order in which [`rollout`] does it.
#[test]
fn the_page_on_upgrades_has_the_steps_that_are_tried() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/upgrade.md");
    let page = std::fs::read_to_string(page).unwrap();
    let steps = page.split("## Rolling back").next().unwrap().lines().map(str::trim);
    let steps: Vec<_> = steps.filter(|line| line.starts_with("fanfare ")).collect();
    assert_eq!(steps, ["fanfare migrate", "fanfare worker", "fanfare api"]);
}

#[tokio::test]
async fn a_deploy_under_load_loses_and_repeats_nothing() {
    let mut section = Section::new("6-deploys", "Deploys");
    let previous = std::env::var("FANFARE_PREVIOUS").ok();
    let rounds = if is_full() { 10 } else { 2 };
    let figures = rollout::run(previous.as_deref().unwrap_or(&PROGRAM), rounds).await;
    section.text(
        "The processes of one version are replaced by those of another while posts are published, retried, held by \
         their platform, scheduled and edited through the API of either version. Every post must end with the \
         expected status, be on its platform once, and be reported once. Histories of every branch of every \
         workflow are replayed by `tests/it/replay.rs`.",
    );
    section.figure("Previous version", if previous.is_some() { "another build" } else { "this build" });
    for (name, value) in figures {
        section.figure(name, value);
    }
    let histories = concat!(env!("CARGO_MANIFEST_DIR"), "/../workflows/histories");
    section.figure("Kept workflow histories", std::fs::read_dir(histories).unwrap().count());
    section.figure("Queries of the last release on the newest schema", schema::released().queries.len());
    section.write();
}
