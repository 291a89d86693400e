//! Pages call the functions of the API's operations, so that they can do what the API can and check what it checks. What
//! they ask of the database themselves is a query of their own, or stands here with the reason.
//!
//! The operators' pages are left out: they call what `fanfare ops` calls.

use super::{
    circles::{Module, Modules, product},
    source::sources,
};
use std::collections::BTreeSet;

/// Modules of `store`, and functions, that pages call, and why they call no operation instead.
const WITHOUT_OPERATION: [(&str, &str); 24] = [
    ("dashboard", "queries of the pages' own"),
    ("media::uses", "the posts that use a file stand beside it"),
    ("people::accept", "an invitation is accepted here alone"),
    ("people::identities", "people sign in here alone"),
    ("people::invitations", "people sign in here alone"),
    ("people::join_with", "people sign in here alone"),
    ("people::keys::authenticate", "one signs in with a key"),
    ("people::keys::refused", "one signs in with a key"),
    ("people::memberships", "people choose among their organizations"),
    ("people::passkeys", "people sign in here alone"),
    ("people::sessions", "people sign in here alone"),
    ("people::sign_in", "people sign in here alone"),
    ("people::sign_in_with", "people sign in here alone"),
    ("people::team::invitation", "its token opens an invitation"),
    ("posts::get", "the post that is replied to may be deleted"),
    ("posts::slots::planned", "the calendar shows the slots of all accounts"),
    ("posts::slots::taken", "the calendar shows the slots of all accounts"),
    ("usage::metrics::latest", "the operation asks the platform, and the page shows what is stored"),
    ("usage::metrics::series", "the operation asks the platform, and the page shows what is stored"),
    ("usage::published_by_day", "the days of a month stand in a chart"),
    ("usage::requests_by_day", "the days of a month stand in a chart"),
    ("webhooks::deliveries::of_event", "the deliveries of an event to all endpoints stand on its page"),
    ("webhooks::events::get", "what an event told stands on its page"),
    ("webhooks::events::newest", "people read the newest first, programs read on where they were"),
];

/// Returns the functions of `store` that a module calls.
fn calls(module: &Module, store: &Modules) -> Vec<String> {
    let paths = module.paths.iter().map(|path| {
        let import = module.imports.iter().find(|import| import.name == path[0]);
        import.map_or_else(|| path.clone(), |import| [&import.path[..], &path[1..]].concat())
    });
    let imported = module.imports.iter().map(|import| import.path.clone());
    let called = paths.chain(imported).filter_map(|path| {
        let [home, rest @ ..] = &path[..] else { return None };
        let is_function =
            rest.iter().all(|name| name.starts_with(char::is_lowercase)) && !store.contains(rest);
        (home == "store" && is_function).then(|| rest.join("::"))
    });
    called.collect()
}

#[test]
fn pages_call_operations_and_queries_of_their_own() {
    let store = Modules::of("store/src");
    let (mut faults, mut used, mut checked) = (BTreeSet::new(), BTreeSet::new(), 0);
    for source in sources() {
        if !source.path.starts_with("dashboard/src/") || source.path.starts_with("dashboard/src/operators/") {
            continue;
        }
        for call in calls(&Module::of(&product(&source.code)), &store) {
            checked += 1;
            let known = WITHOUT_OPERATION.iter().map(|(name, _)| *name).find(|name| {
                call.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
            });
            match known {
                Some(name) => {
                    used.insert(name);
                }
                None => {
                    faults.insert(format!("{} calls store::{call}", source.path));
                }
            }
        }
    }
    for (name, _) in WITHOUT_OPERATION.iter().filter(|(name, _)| !used.contains(name)) {
        faults.insert(format!("no page calls store::{name}: delete it from WITHOUT_OPERATION"));
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(checked > 50, "only {checked} calls were found");
}

#[test]
fn calls_of_the_store_are_found() {
    let code = "use store::{Pool, media::{self as files, Media}, people::keys::refused}; use api::posts;\n\
        fn f() { files::uses(); posts::find(); store::posts::slots::taken(); Media::of(); store::people::keys::Key::new(); }";
    let found = calls(&Module::of(code), &Modules::of("store/src"));
    assert_eq!(found, ["media::uses", "posts::slots::taken", "people::keys::refused"]);
}
