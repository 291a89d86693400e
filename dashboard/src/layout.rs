//! The layout around every page, and the headers of every page.

use crate::{
    PATH,
    assets::{self, Versions},
    zone,
};
use api::http::problem::{Problem, Segment, title};
use askama::Template;
use domain::scope::{self, Scope};
use poem::{
    Request, Response,
    http::{HeaderName, HeaderValue, StatusCode, header},
};
use std::{borrow::Cow, cell::Cell};
use tracing::error;

/// Content security policy: resources and forms of this origin only, no inline scripts. Pages with forms that
/// redirect to a platform extend `form-action`.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    img-src 'self'; media-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The layout around a page.
pub(crate) struct Layout {
    /// Title of the page.
    pub(crate) title: String,
    /// Path of the navigation entry that the page belongs to.
    pub(crate) section: &'static str,
    /// The session's owner; `None` before signing in.
    pub(crate) who: Option<Who>,
    /// Name of the operator, on their pages.
    pub(crate) operator: Option<String>,
    /// Notice of a completed action.
    pub(crate) notice: Option<Cow<'static, str>>,
    /// Error of a failed action.
    pub(crate) error: Option<PageError>,
    /// Path that the script polls for changes.
    pub(crate) live: Option<String>,
    /// True if the page has forms for passkeys, which need a script.
    pub(crate) uses_passkeys: bool,
    /// True if the page takes files, for which it has a script.
    pub(crate) takes_files: bool,
    /// True for the form of a post, which has a script.
    pub(crate) composes: bool,
}

/// A part of the navigation.
#[derive(Clone)]
pub(crate) struct Group {
    /// Heading; `None` for the first part.
    pub(crate) name: Option<&'static str>,
    /// Its entries.
    pub(crate) entries: Vec<Entry>,
}

/// An entry of the navigation.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    /// Path below the dashboard's.
    pub(crate) path: &'static str,
    /// Name of the page.
    pub(crate) name: &'static str,
    /// Symbol of `icons.svg`.
    pub(crate) icon: &'static str,
}

const fn entry(path: &'static str, name: &'static str, icon: &'static str) -> Entry {
    Entry { path, name, icon }
}

/// The navigation of the operators' pages.
const OPERATORS: [Entry; 5] = [
    entry("", "Overview", "home"),
    entry("/stuck", "Stuck", "alert"),
    entry("/freezes", "Freezes", "keys"),
    entry("/deliveries", "Webhooks", "webhooks"),
    entry("/organizations", "Organizations", "team"),
];

/// The navigation.
const NAVIGATION: [(Option<&str>, &[Entry]); 3] = [
    (
        None,
        &[
            entry("", "Overview", "home"),
            entry("/posts", "Posts", "posts"),
            entry("/calendar", "Calendar", "calendar"),
            entry("/compose", "New post", "compose"),
            entry("/media", "Media", "media"),
            entry("/accounts", "Accounts", "accounts"),
            entry("/analytics", "Analytics", "analytics"),
        ],
    ),
    (
        Some("Developers"),
        &[
            entry("/webhooks", "Webhooks", "webhooks"),
            entry("/events", "Events", "events"),
            entry("/keys", "API keys", "keys"),
            entry("/requests", "Requests", "requests"),
        ],
    ),
    (
        Some("Organization"),
        &[
            entry("/team", "Team", "team"),
            entry("/audit", "Audit trail", "audit"),
            entry("/usage", "Usage", "usage"),
        ],
    ),
];

/// The owner of a session.
pub(crate) struct Who {
    /// Name of the organization.
    pub(crate) organization: String,
    /// Name of the one who is signed in.
    pub(crate) name: String,
    /// True if live data is shown.
    pub(crate) is_live: bool,
    /// Scopes of the one who is signed in.
    pub(crate) scopes: Vec<Scope>,
    /// Pages that the one who is signed in may open.
    pub(crate) navigation: Vec<Group>,
}

/// An error and the element it is shown beside.
pub(crate) struct PageError {
    /// Id of the element.
    pub(crate) at: String,
    /// HTTP status of the page.
    pub(crate) status: StatusCode,
    /// The message.
    pub(crate) message: String,
    /// Messages of single fields.
    pub(crate) issues: Vec<String>,
    is_shown: Cell<bool>,
}

impl PageError {
    /// An error from a failed call.
    pub(crate) fn of(at: impl Into<String>, problem: Problem) -> Self {
        let issue = |issue: &api::http::problem::Issue| match &*path(&issue.path) {
            "" => issue.message.clone(),
            path => format!("{path}: {}", issue.message),
        };
        Self {
            at: at.into(),
            status: problem.code.status(),
            message: sentence(&problem.detail),
            issues: problem.issues.iter().map(issue).collect(),
            is_shown: Cell::default(),
        }
    }

    /// An error with its own message.
    pub(crate) fn new(at: &str, status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            at: at.to_owned(),
            status,
            message: message.into(),
            issues: Vec::new(),
            is_shown: Cell::default(),
        }
    }
}

impl Layout {
    /// The layout without a session.
    pub(crate) fn signed_out(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            section: "",
            who: None,
            operator: None,
            notice: None,
            error: None,
            live: None,
            uses_passkeys: false,
            takes_files: false,
            composes: false,
        }
    }

    /// The error to show at a place of the page.
    pub(crate) fn at(&self, place: &str) -> Option<&PageError> {
        let error = self.error.as_ref().filter(|error| error.at == place)?;
        error.is_shown.set(true);
        Some(error)
    }

    /// True if there is an error to show at a place of the page.
    pub(crate) fn has_error(&self, place: &str) -> bool {
        self.error.as_ref().is_some_and(|error| error.at == place)
    }

    /// The error if no place of the page has shown it: its element is gone or on another page of the list.
    pub(crate) fn leftover(&self) -> Option<&PageError> {
        self.error.as_ref().filter(|error| !error.is_shown.get())
    }

    /// Makes the page poll `path`, unless it shows an error, which polling would replace.
    pub(crate) fn live(self, path: &str) -> Self {
        let live = self.error.is_none().then(|| format!("{PATH}{path}"));
        Self { live, ..self }
    }

    /// HTTP status of the page.
    pub(crate) fn status(&self) -> StatusCode {
        self.error.as_ref().map_or(StatusCode::OK, |error| error.status)
    }

    /// Navigation entries of the operators' pages, whose paths are below theirs.
    pub(crate) fn operator_sections(&self) -> &'static [Entry] {
        &OPERATORS
    }

    /// True if the one who is signed in has a scope, for buttons that need it.
    pub(crate) fn may(&self, scope: &str) -> bool {
        scope.parse().is_ok_and(|scope| self.has(scope))
    }

    fn has(&self, needed: Scope) -> bool {
        self.who.as_ref().is_some_and(|who| scope::allows(&who.scopes, needed))
    }

    /// True if the page belongs to the navigation entry.
    pub(crate) fn is_in(&self, path: &str) -> bool {
        self.section == path
    }

    /// Name of the time zone of the page's times, and of those in its forms.
    pub(crate) fn zone(&self) -> &'static str {
        zone::current().name()
    }

    /// Hashes of the static files.
    pub(crate) fn versions(&self) -> &'static Versions {
        assets::versions()
    }
}

/// Returns the navigation with the pages, by their paths, that one may open.
pub(crate) fn navigation(may_open: impl Fn(&str) -> bool) -> Vec<Group> {
    let groups = NAVIGATION.iter().map(|(name, entries)| Group {
        name: *name,
        entries: entries.iter().copied().filter(|entry| may_open(entry.path)).collect(),
    });
    groups.filter(|group| !group.entries.is_empty()).collect()
}

#[derive(Template)]
#[template(path = "failure.html")]
struct Failure {
    layout: Layout,
    message: String,
}

#[derive(Template)]
#[template(path = "reload.html")]
struct Reload<'a> {
    next: &'a str,
}

/// A page that redirects to itself: browsers withhold the `SameSite=Strict` cookie from a request that
/// another site started, and send it with one that this page starts.
pub(crate) fn reload(request: &Request) -> Response {
    let next = request.original_uri().path_and_query().map_or(PATH, |path| path.as_str());
    render(StatusCode::OK, &Reload { next })
}

/// An error page, whose title is the error's.
pub(crate) fn failure(layout: Layout, problem: Problem) -> Response {
    let status = problem.code.status();
    let layout = Layout { title: title(status).to_owned(), ..layout };
    render(status, &Failure { layout, message: sentence(&problem.detail) })
}

/// Renders a page with its headers.
pub(crate) fn render(status: StatusCode, page: &impl Template) -> Response {
    render_leading(status, page, "")
}

/// Renders a page whose forms may also redirect to other origins.
pub(crate) fn render_leading(status: StatusCode, page: &impl Template, places: &str) -> Response {
    render_with(status, page, &POLICY.replace("form-action 'self'", &format!("form-action 'self'{places}")))
}

/// Renders a page whose script may also upload to a bucket's origin.
pub(crate) fn render_uploading(status: StatusCode, page: &impl Template, bucket: Option<&str>) -> Response {
    let places = bucket.map_or(String::new(), |origin| format!(" {origin}"));
    render_with(status, page, &POLICY.replace("connect-src 'self'", &format!("connect-src 'self'{places}")))
}

fn render_with(status: StatusCode, page: &impl Template, policy: &str) -> Response {
    let text = match page.render() {
        Ok(text) => text,
        Err(error) => {
            error!(%error, "A page can't be rendered");
            return Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR).finish();
        }
    };
    let mut response = Response::builder().status(status).content_type("text/html; charset=utf-8").body(text);
    put(&mut response, header::CONTENT_SECURITY_POLICY, policy);
    put(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    // A stricter policy would make browsers omit `Origin` from our own forms.
    put(&mut response, header::REFERRER_POLICY, "same-origin");
    put(&mut response, header::CACHE_CONTROL, "no-store");
    put(&mut response, HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    response
}

/// Sets a response header.
pub(crate) fn put(response: &mut Response, name: HeaderName, value: &str) {
    let value = HeaderValue::from_str(value).expect("what we say of ourselves is plain text");
    response.headers_mut().insert(name, value);
}

/// Formats a problem's detail as a sentence.
pub(crate) fn sentence(detail: &str) -> String {
    let mut letters = detail.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if detail.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// Formats an issue's path for people.
pub(crate) fn path(segments: &[Segment]) -> String {
    let word = |segment: &Segment| match segment {
        Segment::Key(key) => key.clone(),
        Segment::Index(index) => (index + 1).to_string(),
    };
    segments.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_become_sentences() {
        assert_eq!(sentence("the target is dead"), "The target is dead.");
        assert_eq!(sentence("Gone."), "Gone.");
        assert_eq!(sentence(""), ".");
        assert_eq!(path(&["containers".into(), 0.into(), "content".into()]), "containers 1 content");
    }
}
