//! Our own pages of the connect flow, for whoever has none.
//!
//! Plain forms: they work without a script, by keyboard and by ear, on a phone, and load nothing from
//! anywhere, which the policy that goes with them says too. What platforms and their users wrote is shown
//! as text, and what came in an address is not shown at all.

use askama::Template;
use base64::{Engine, prelude::BASE64_STANDARD};
use domain::LoginError;
use poem::{
    Response,
    http::{StatusCode, header},
};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;
use store::{accounts::Account, pending::Offer};
use url::Url;

const STYLE: &str = include_str!("../../templates/page.css");

/// The one style that the pages may have: this one.
static STYLE_SOURCE: LazyLock<String> =
    LazyLock::new(|| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(STYLE))));

/// One account of a list.
struct AccountRow {
    id: String,
    name: String,
    more: String,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "choice.html")]
struct Choice<'a> {
    style: &'static str,
    platform: &'a str,
    error: Option<&'a str>,
    lines: Vec<AccountRow>,
}

#[derive(Template)]
#[template(path = "finished.html")]
struct Finished<'a> {
    style: &'static str,
    platform: &'a str,
    lines: Vec<AccountRow>,
}

#[derive(Template)]
#[template(path = "failed.html")]
struct Failed<'a> {
    style: &'static str,
    title: &'a str,
    text: &'a str,
    word: Option<&'a str>,
}

/// What is offered to choose from.
pub(crate) struct ChoicePage<'a> {
    /// The platform.
    pub(crate) platform: &'a str,
    /// What there is.
    pub(crate) offers: &'a [Offer],
    /// The platform's ids of what is connected already.
    pub(crate) connected: &'a [String],
    /// What is ticked.
    pub(crate) chosen: &'a [String],
    /// Where the form leads in the end, when that is not here.
    pub(crate) redirect_uri: Option<&'a str>,
}

/// The page where somebody chooses, again when `error` says what was wrong.
pub(crate) fn choice(status: StatusCode, page: &ChoicePage<'_>, error: Option<&str>) -> Response {
    let line = |offer: &Offer| {
        let mut more = describe(&offer.username, &offer.display_name, &offer.account_type);
        if page.connected.contains(&offer.network_unique_id) {
            more.push_str(" · connected already, would be renewed");
        }
        AccountRow {
            is_chosen: page.chosen.contains(&offer.network_unique_id),
            id: offer.network_unique_id.clone(),
            name: offer.display_name.clone(),
            more,
        }
    };
    let lines = page.offers.iter().map(line).collect();
    let html = Choice { style: STYLE, platform: &name(page.platform), error, lines };
    // Where a form is answered with a redirect, browsers ask the policy for that address too.
    let elsewhere = page.redirect_uri.and_then(|uri| Url::parse(uri).ok());
    respond(status, &html, elsewhere.as_ref())
}

/// The page at the end.
pub(crate) fn finished(platform: &str, accounts: &[Account]) -> Response {
    let line = |account: &Account| AccountRow {
        id: account.id.to_string(),
        name: account.display_name.clone(),
        more: describe(&account.username, &account.display_name, &account.account_type),
        is_chosen: true,
    };
    let lines = accounts.iter().map(line).collect();
    respond(StatusCode::OK, &Finished { style: STYLE, platform: &name(platform), lines }, None)
}

/// The page of a login that connected nothing.
pub(crate) fn failed(platform: &str, error: LoginError) -> Response {
    let platform = name(platform);
    let (title, text) = match error {
        LoginError::AccessDenied => (
            "Nothing was connected",
            format!("Access was not allowed on {platform}. If that was not meant, begin again."),
        ),
        LoginError::StateExpired => (
            "This took too long",
            "A login has to be finished within 15 minutes. Go back to where you came from and begin again."
                .to_owned(),
        ),
        LoginError::StateUsed => (
            "This login was used already",
            "Each login counts once. If your account is not connected, go back to where you came from and \
             begin again."
                .to_owned(),
        ),
        LoginError::ExchangeFailed => (
            "The login did not work",
            format!("{platform} did not confirm it, or could not be reached. Begin again in a moment."),
        ),
        LoginError::InsufficientScope => (
            "A permission is missing",
            format!(
                "Publishing needs everything that {platform} asked you for. Begin again and allow all of it."
            ),
        ),
        LoginError::NoPages => (
            "There is nothing to connect",
            format!("Your login on {platform} covers nothing that can be posted to."),
        ),
        LoginError::QuotaExceeded => (
            "There is no room for more accounts",
            "All accounts that the plan allows are connected. Whoever sent you here can make room."
                .to_owned(),
        ),
        LoginError::WrongAccount => (
            "This is another account",
            format!("You logged in to {platform} as somebody else than was to be connected."),
        ),
    };
    let page = Failed { style: STYLE, title, text: &text, word: Some(error.as_str()) };
    respond(StatusCode::BAD_REQUEST, &page, None)
}

/// The page of a return that we never asked for.
pub(crate) fn invalid() -> Response {
    let text =
        "The address is incomplete, or was never ours. Go back to where you came from and begin again.";
    let page = Failed { style: STYLE, title: "This link is not valid", text, word: None };
    respond(StatusCode::BAD_REQUEST, &page, None)
}

/// The page of a moment in which we could not serve.
pub(crate) fn unavailable(status: StatusCode) -> Response {
    let text = "Something that this needs is away. Load this page again in a moment.";
    respond(status, &Failed { style: STYLE, title: "This did not work", text, word: None }, None)
}

/// The page of a choice whose time is over.
pub(crate) fn gone() -> Response {
    let text = "A choice has to be made within half an hour. Go back to where you came from and begin again.";
    let page = Failed { style: STYLE, title: "There is nothing to choose here", text, word: None };
    respond(StatusCode::NOT_FOUND, &page, None)
}

/// The page of a choice after another.
pub(crate) fn already_chosen() -> Response {
    let text = "Something else was chosen before, and is connected. To connect more, begin again.";
    let page = Failed { style: STYLE, title: "The choice was made already", text, word: None };
    respond(StatusCode::CONFLICT, &page, None)
}

fn respond(status: StatusCode, page: &impl Template, form_to: Option<&Url>) -> Response {
    let form_to = form_to.map(|url| format!(" {}", url.origin().ascii_serialization())).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src {}; form-action 'self'{form_to}; base-uri 'none'; frame-ancestors 'none'",
        *STYLE_SOURCE
    );
    private(Response::builder().status(status))
        .content_type("text/html; charset=utf-8")
        .header(header::CONTENT_SECURITY_POLICY, policy)
        .header(header::X_FRAME_OPTIONS, "DENY")
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .body(page.render().expect("writing to a string does not fail"))
}

/// An answer whose address is nobody else's business, and that is kept nowhere.
pub(crate) fn private(response: poem::ResponseBuilder) -> poem::ResponseBuilder {
    response.header(header::REFERRER_POLICY, "no-referrer").header(header::CACHE_CONTROL, "no-store")
}

/// A platform's identifier as a name.
fn name(platform: &str) -> String {
    let capital = |word: &str| match word.split_at_checked(1) {
        Some((first, rest)) => format!("{}{rest}", first.to_uppercase()),
        None => String::new(),
    };
    platform.split('_').map(capital).collect::<Vec<_>>().join(" ")
}

/// What tells an account from others of the same name.
fn describe(username: &str, display_name: &str, account_type: &str) -> String {
    match username == display_name {
        true => account_type.to_owned(),
        false => format!("{username} · {account_type}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shown(error: Option<&str>, redirect_uri: Option<&str>) -> (Response, String) {
        let offer = |id: &str, name: &str| Offer {
            network_unique_id: id.to_owned(),
            username: "<script>alert(1)</script>".to_owned(),
            display_name: name.to_owned(),
            account_type: "page".to_owned(),
            profile_image_url: Some("https://elsewhere.example/a.png".to_owned()),
            profile_url: None,
        };
        let offers = [offer("1\" checked=\"", "Ada & Söhne"), offer("2", "Bob")];
        let chosen = ["2".to_owned()];
        let page = ChoicePage {
            platform: "google_business",
            offers: &offers,
            connected: &chosen,
            chosen: &chosen,
            redirect_uri,
        };
        let mut response = choice(StatusCode::OK, &page, error);
        let html = response.take_body().into_string().await.unwrap();
        (response, html)
    }

    #[tokio::test]
    async fn what_others_wrote_is_text_and_nothing_is_loaded() {
        let (response, html) = shown(Some("Choose <one>"), None).await;
        assert!(html.contains("Ada &#38; Söhne") && html.contains("Google Business"), "{html}");
        assert!(!html.contains("<script") && !html.contains("1\" checked"), "{html}");
        assert!(html.contains("Choose &#60;one&#62;") && html.contains("role=\"alert\""), "{html}");
        for outside in ["src=", "href=", "http", "url(", "@import", "style=", "onclick"] {
            assert!(!html.contains(outside), "{outside}: {html}");
        }
        for needed in
            ["lang=\"en\"", "<title>Error: Choose", "<fieldset aria-describedby=\"error\"", "<legend>"]
        {
            assert!(html.contains(needed), "{needed}: {html}");
        }
        assert_eq!(html.matches("checked>").count(), 1, "{html}");
        assert_eq!(html.matches("connected already").count(), 1, "{html}");
        let policy = response.header("content-security-policy").unwrap();
        let style = html.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
        let hash = BASE64_STANDARD.encode(Sha256::digest(style));
        assert!(policy.contains(&format!("style-src 'sha256-{hash}';")), "{policy}");
        assert!(policy.contains("default-src 'none'") && policy.contains("form-action 'self';"), "{policy}");
        assert_eq!(response.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
    }

    #[tokio::test]
    async fn a_form_may_lead_to_where_its_user_came_from() {
        let (response, _) = shown(None, Some("https://app.example:8443/done?a=b")).await;
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.contains("form-action 'self' https://app.example:8443;"), "{policy}");
    }

    #[tokio::test]
    async fn every_error_has_a_page() {
        for error in LoginError::ALL {
            let mut response = failed("x", *error);
            assert_eq!(response.status(), StatusCode::BAD_REQUEST);
            let html = response.take_body().into_string().await.unwrap();
            assert!(html.contains(error.as_str()) && html.contains("<h1>"), "{html}");
        }
    }
}
