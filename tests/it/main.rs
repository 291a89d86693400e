//! Integration tests in one binary, so that they share one link step, one Postgres and one Temporal.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test has a clock of its own and fails by panicking"
)]

extern crate fanfare_tests as tests;

use tests::browser;

mod accounts;
mod alerts;
mod analytics;
mod api;
mod at_most_once;
mod attacks;
mod audit;
mod backup;
mod batch;
mod binding;
mod bounds;
mod branding;
mod bucket;
mod ceilings;
mod clients;
mod confined;
mod connect;
mod costly;
mod creation;
mod crowds;
mod dashboard;
mod dashboard_analytics;
mod dashboard_calendar;
mod dashboard_composer;
mod dashboard_developers;
mod dashboard_home;
mod dashboard_media;
mod dashboard_search;
mod dashboard_times;
mod deploy;
mod dev;
mod doctor;
mod draining;
mod durability;
mod edit_target;
mod editing;
mod events;
mod fairness;
mod fetched;
mod files;
mod horizon;
mod hostile;
mod imports;
mod keeping;
mod keys;
mod lifecycle;
mod limits;
mod lineage;
mod links;
mod lists;
mod look_ups;
mod mcp;
mod media;
mod members;
mod meta;
mod metadata;
mod networks;
mod openid;
mod operations;
mod operator_pages;
mod operators;
mod ops;
mod overrides;
mod pages;
mod pds;
mod people;
mod pictures;
mod pinned;
mod pooler;
mod preview;
mod probes;
mod processing;
mod profiles;
mod publishing;
mod replay;
mod replying;
mod restoring;
mod retention;
mod retry;
mod reviving;
mod roles;
mod rules;
mod scale;
mod scheduling;
mod secrets;
mod seeing;
mod serving;
mod slots;
#[path = "../../store/tests/mod.rs"]
mod store;
mod sweeping;
mod team;
mod temporal;
mod tenants;
mod torn;
mod traces;
mod twins;
mod unpublish;
mod versions;
mod walls;
mod webhooks;

use std::sync::LazyLock;
use tests::{World, WorldBuilder};

/// The program under test.
static PROGRAM: LazyLock<&'static str> = LazyLock::new(|| env!("CARGO_BIN_EXE_fanfare-under-test"));

/// A page that has all of a short list.
const WHOLE: ::store::page::Request = ::store::page::Request { after: None, limit: 1000 };

/// Returns the settings of a world: an organization for one test.
fn world() -> WorldBuilder {
    World::of(&PROGRAM)
}

/// Creates a migrated database for one test.
async fn database() -> ::store::Pool {
    tests::database(&PROGRAM).await
}
