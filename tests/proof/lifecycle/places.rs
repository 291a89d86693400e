//! Places that a step can go to: all operations of the API, and all pages and actions of the dashboard.

use super::who::{By, Guest};
use crate::surface::tables::OPERATIONS;
use domain::scope::Scope;
use proptest::{prelude::*, sample::select};
use reqwest::Method;
use std::sync::LazyLock;

/// A page or an action: method, path and scopes.
type Route = (Method, &'static str, Vec<Scope>);

/// All pages and actions.
pub(super) static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| dashboard::routes().collect());

/// An operation, or a page or action of the dashboard.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// An operation.
    Operation(Ask),
    /// A page or an action.
    Page(Visit),
}

/// A step over an operation.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    /// Number of the operation in the document.
    pub(super) operation: usize,
    /// Who calls.
    pub(super) by: By,
    /// Number of the row that it is about.
    pub(super) subject: usize,
    /// Number that chooses among bodies.
    pub(super) detail: usize,
}

/// A step over a page or an action.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    /// Number of the route.
    pub(super) route: usize,
    /// Who is signed in.
    pub(super) guest: Guest,
    /// Number of the row that it is about.
    pub(super) subject: usize,
    /// Number that chooses among forms.
    pub(super) detail: usize,
}

impl Place {
    /// Returns the name under which it is counted.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Operation(_) => "operation",
            Self::Page(_) => "page or action",
        }
    }
}

/// Returns the name under which a page or an action is counted.
pub(super) fn named(method: &Method, path: &str) -> String {
    format!("{} {path}", if *method == Method::GET { "page" } else { "action" })
}

/// Draws an operation, a page or an action, who is there, and what it is about.
pub(super) fn place() -> BoxedStrategy<Place> {
    let numbers = || (0..100usize, 0..100usize);
    let operation = (0..OPERATIONS.len(), select(By::ALL.to_vec()), numbers()).prop_map(
        |(operation, by, (subject, detail))| Place::Operation(Ask { operation, by, subject, detail }),
    );
    let guest = prop_oneof![2 => Just(Guest::Owner), 1 => select(Guest::ALL.to_vec())];
    let page = (0..ROUTES.len(), guest, numbers())
        .prop_map(|(route, guest, (subject, detail))| Place::Page(Visit { route, guest, subject, detail }));
    prop_oneof![operation, page].boxed()
}
