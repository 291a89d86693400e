//! What is around every page, and the headers that every page leaves with.

use super::{
    PATH,
    assets::{self, Versions},
    context::PageContext,
};
use crate::http::problem::{Problem, Segment, title};
use askama::Template;
use poem::{
    Request, Response,
    http::{HeaderName, HeaderValue, StatusCode, header},
};
use std::cell::Cell;
use tracing::error;

/// What a page may load and where its forms may lead: this origin, and nothing that stands in the page
/// itself runs. Connecting an account leads on to its platform.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; \
    img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What is around a page.
pub(crate) struct Layout {
    /// Its title.
    pub(crate) title: String,
    /// The part of the dashboard that it belongs to.
    pub(crate) section: &'static str,
    /// Who looks at it; nobody before signing in.
    pub(crate) who: Option<Who>,
    /// What was just done.
    pub(crate) notice: Option<&'static str>,
    /// What just went wrong.
    pub(crate) error: Option<PageError>,
    /// Where the script looks again for what has changed.
    pub(crate) live: Option<String>,
}

/// Who looks at a page.
pub(crate) struct Who {
    /// The organization.
    pub(crate) organization: String,
    /// The name of the key.
    pub(crate) key: String,
    /// Whether what is done here is done for real.
    pub(crate) is_live: bool,
}

/// Something that went wrong, and what it is shown beside.
pub(crate) struct PageError {
    /// What it is shown beside.
    pub(crate) at: String,
    /// What the answer says about it.
    pub(crate) status: StatusCode,
    /// What it is.
    pub(crate) words: String,
    /// Field by field.
    pub(crate) issues: Vec<String>,
    is_shown: Cell<bool>,
}

impl PageError {
    /// What a call was refused for.
    pub(crate) fn of(at: impl Into<String>, problem: Problem) -> Self {
        let issue = |issue: &crate::http::problem::Issue| match &*path(&issue.path) {
            "" => issue.message.clone(),
            path => format!("{path}: {}", issue.message),
        };
        Self {
            at: at.into(),
            status: problem.code.status(),
            words: sentence(&problem.detail),
            issues: problem.issues.iter().map(issue).collect(),
            is_shown: Cell::default(),
        }
    }

    /// What is said here.
    pub(crate) fn new(at: &str, status: StatusCode, words: impl Into<String>) -> Self {
        Self { at: at.to_owned(), status, words: words.into(), issues: Vec::new(), is_shown: Cell::default() }
    }
}

impl Layout {
    /// That of somebody who is not signed in.
    pub(crate) fn signed_out(title: &str) -> Self {
        Self { title: title.to_owned(), section: "", who: None, notice: None, error: None, live: None }
    }

    /// The fault to be shown beside something.
    pub(crate) fn at(&self, place: &str) -> Option<&PageError> {
        let error = self.error.as_ref().filter(|error| error.at == place)?;
        error.is_shown.set(true);
        Some(error)
    }

    /// The fault that no place on the page was for: what it was about is not there any more, or on
    /// another page of its list.
    pub(crate) fn leftover(&self) -> Option<&PageError> {
        self.error.as_ref().filter(|error| !error.is_shown.get())
    }

    /// Looks again at `path`, unless something went wrong: that is to be read first.
    pub(crate) fn live(self, path: &str) -> Self {
        let live = self.error.is_none().then(|| format!("{PATH}{path}"));
        Self { live, ..self }
    }

    /// The status that the page leaves with.
    pub(crate) fn status(&self) -> StatusCode {
        self.error.as_ref().map_or(StatusCode::OK, |error| error.status)
    }

    /// The parts of the navigation: address, name.
    pub(crate) fn sections(&self) -> [(&'static str, &'static str); 9] {
        [
            ("", "Overview"),
            ("/posts", "Posts"),
            ("/compose", "New post"),
            ("/accounts", "Accounts"),
            ("/media", "Media"),
            ("/webhooks", "Webhooks"),
            ("/keys", "API keys"),
            ("/team", "Team"),
            ("/usage", "Usage"),
        ]
    }

    /// Whether the page belongs to the part at an address.
    pub(crate) fn is_in(&self, path: &str) -> bool {
        self.section == path
    }

    /// What the files that go with the page are named after.
    pub(crate) fn versions(&self) -> &'static Versions {
        assets::versions()
    }
}

#[derive(Template)]
#[template(path = "dashboard/failure.html")]
struct Failure {
    layout: Layout,
    words: String,
}

#[derive(Template)]
#[template(path = "dashboard/onward.html")]
struct Onward<'a> {
    next: &'a str,
}

/// A page that leads on to itself: what a browser keeps from a request that another site's page made, it
/// sends with one that this page makes.
pub(crate) fn onward(request: &Request) -> Response {
    let next = request.original_uri().path_and_query().map_or(PATH, |path| path.as_str());
    render(StatusCode::OK, &Onward { next })
}

/// A page that can't be shown, and why.
pub(crate) fn failure(context: Option<&PageContext<'_>>, problem: Problem) -> Response {
    let status = problem.code.status();
    let name = title(status);
    let layout = match context {
        Some(context) => context.layout(name, "nowhere"),
        None => Layout::signed_out(name),
    };
    render(status, &Failure { layout, words: sentence(&problem.detail) })
}

/// A page as it leaves.
pub(crate) fn render(status: StatusCode, page: &impl Template) -> Response {
    render_leading(status, page, "")
}

/// A page whose forms may also lead to other places.
pub(crate) fn render_leading(status: StatusCode, page: &impl Template, places: &str) -> Response {
    let text = match page.render() {
        Ok(text) => text,
        Err(error) => {
            error!(%error, "A page can't be drawn");
            return Response::builder().status(StatusCode::INTERNAL_SERVER_ERROR).finish();
        }
    };
    let policy = POLICY.replace("form-action 'self'", &format!("form-action 'self'{places}"));
    let mut response = Response::builder().status(status).content_type("text/html; charset=utf-8").body(text);
    put(&mut response, header::CONTENT_SECURITY_POLICY, &policy);
    put(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    // Stricter, and browsers would not say of our own forms that they are ours.
    put(&mut response, header::REFERRER_POLICY, "same-origin");
    put(&mut response, header::CACHE_CONTROL, "no-store");
    put(&mut response, HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    response
}

/// Sets a header.
pub(crate) fn put(response: &mut Response, name: HeaderName, value: &str) {
    let value = HeaderValue::from_str(value).expect("what we say of ourselves is plain text");
    response.headers_mut().insert(name, value);
}

/// A detail as a sentence.
pub(crate) fn sentence(detail: &str) -> String {
    let mut letters = detail.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if detail.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// Where in a body an issue is, as people write it.
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
