//! Builds one test per platform and case, so that a failure names its platform and all run in parallel.

use crate::fixtures::World;
use domain::ErrorCode;
use futures::future::BoxFuture;
use libtest_mimic::{Failed, Trial};
use platforms::Adapter;
use sandbox::AppStatus;
use std::cell::Cell;

/// A case of the suite: its name, and the test that runs it for one platform.
pub(crate) type Case = (&'static str, CaseFn);

type CaseFn = fn(&'static Adapter) -> BoxFuture<'static, ()>;

/// A test without a platform parameter: its name, and the function that runs it.
pub(crate) type Single = (&'static str, fn() -> BoxFuture<'static, ()>);

/// Lists functions as cases.
macro_rules! cases {
    ($($case:ident),+ $(,)?) => {
        [$((stringify!($case), |platform| Box::pin($case(platform)))),+] as [$crate::trials::Case; _]
    };
}

/// Lists functions of a module as single tests.
macro_rules! singles {
    ($($test:ident),+ $(,)?) => {
        [$((stringify!($test), || Box::pin($test()))),+] as [$crate::trials::Single; _]
    };
}

pub(crate) use {cases, singles};

thread_local! {
    /// Standing of the sandbox's apps in the test that this thread runs.
    static APP: Cell<AppStatus> = const { Cell::new(AppStatus::New) };
}

/// Returns the standing of the sandbox's apps in the current test.
pub(crate) fn app() -> AppStatus {
    APP.get()
}

/// Gives the current test approved apps, for what a newly registered one can't do. Called before the sandbox
/// starts.
pub(crate) fn approve() {
    APP.set(AppStatus::Approved);
}

/// Returns each case for each platform and each standing of the app; `FANFARE_PLATFORM` restricts them to one
/// platform.
pub(crate) fn for_each_platform(cases: &[Case], apps: &'static [AppStatus]) -> Vec<Trial> {
    let only = std::env::var("FANFARE_PLATFORM").ok();
    let chosen =
        platforms::all().iter().filter(|platform| only.as_deref().is_none_or(|only| platform.id == only));
    let trials = chosen.flat_map(|platform| {
        cases.iter().flat_map(move |(name, case)| {
            let case = *case;
            apps.iter().map(move |app| {
                let case = if is_without_access(platform, *app) { refuses as CaseFn } else { case };
                let prefix = if *app == AppStatus::Approved { "approved::" } else { "" };
                Trial::test(format!("{}::{prefix}{name}", platform.id), move || run(*app, case(platform)))
            })
        })
    });
    trials.collect()
}

/// Returns true if the platform answers an app with this standing with nothing but refusals: Google gives a new
/// project no quota for Business Profile.
fn is_without_access(platform: &Adapter, app: AppStatus) -> bool {
    platform.id == "google_business" && app == AppStatus::New
}

/// Asserts that the platform refuses the app and says why, and that nothing is published.
fn refuses(platform: &'static Adapter) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let world = World::start().await;
        let actor = world.actor(platform);
        let name = actor.name();
        let refusals = [
            actor.publish(&actor.post("without access")).await.expect_err(name),
            actor.identities().await.expect_err(name),
        ];
        for failure in refusals {
            assert_eq!(failure.code, ErrorCode::AppRefused, "{name}: {failure}");
            assert!(failure.message.contains("not granted"), "{name}: {failure}");
        }
        assert_eq!(actor.accepted().await, 0, "{name}");
    })
}

/// Returns the tests of a module.
pub(crate) fn of(module: &str, singles: &[Single]) -> Vec<Trial> {
    let trials = singles.iter().map(|(name, test)| {
        let test = *test;
        Trial::test(format!("{module}::{name}"), move || run(AppStatus::New, test()))
    });
    trials.collect()
}

/// Runs a test on its own runtime; the harness catches a panic.
fn run(app: AppStatus, test: BoxFuture<'static, ()>) -> Result<(), Failed> {
    APP.set(app);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(test);
    Ok(())
}
