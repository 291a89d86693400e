//! This service's own HTML pages of the connect flow, for clients without their own.
//!
//! Plain forms, accessible and without scripts or external resources but an organization's logo, as their content
//! security policy states. Text from platforms and users is escaped, and nothing from the URL is shown.

use crate::{
    connect::{brand::Brand, policy},
    icons,
};
use askama::Template;
use domain::{AccountProfile, LoginError};
use poem::{
    Response,
    http::{StatusCode, header},
};
use store::accounts::Account;
use url::Url;

/// An account in a list.
struct AccountRow {
    id: String,
    name: String,
    more: String,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "choice.html")]
struct Choice<'a> {
    brand: &'a Brand,
    heading: &'a str,
    description: &'a str,
    button: &'a str,
    platform: &'a str,
    error: Option<&'a str>,
    lines: Vec<AccountRow>,
    /// Icon of the platform.
    icon: Option<&'static str>,
}

#[derive(Template)]
#[template(path = "finished.html")]
struct Finished<'a> {
    brand: &'a Brand,
    title: &'a str,
    heading: &'a str,
    description: &'a str,
    lines: Vec<AccountRow>,
    /// Icon of the platform.
    icon: Option<&'static str>,
}

#[derive(Template)]
#[template(path = "failed.html")]
struct Failed<'a> {
    brand: &'a Brand,
    heading: &'a str,
    text: &'a str,
    description: Option<&'a str>,
    code: Option<&'a str>,
}

#[derive(Template)]
#[template(path = "begin.html")]
struct Begin<'a> {
    brand: &'a Brand,
    heading: &'a str,
    description: Option<&'a str>,
    button: &'a str,
    platform: &'a str,
    organization: &'a str,
    tenant_id: Option<&'a str>,
    /// Icon of the platform.
    icon: Option<&'static str>,
}

/// Contents of the page on which a login begins.
pub(crate) struct BeginPage<'a> {
    /// How the page looks.
    pub(crate) brand: &'a Brand,
    /// The platform.
    pub(crate) platform: &'a str,
    /// Name of the organization that asks for the access.
    pub(crate) organization: &'a str,
    /// End tenant that the account will belong to.
    pub(crate) tenant_id: Option<&'a str>,
    /// URL of the platform that the form finally redirects to.
    pub(crate) platform_url: Option<Url>,
}

/// The page on which a login begins.
pub(crate) fn begin(page: &BeginPage<'_>) -> Response {
    let (texts, platform) = (&page.brand.pages.begin, platforms::display_name(page.platform));
    let heading = format!("Connect your account on {platform}");
    let button = format!("Continue to {platform}");
    let html = Begin {
        brand: page.brand,
        heading: or(&texts.heading, &heading),
        description: texts.description.as_deref(),
        button: or(&texts.button, &button),
        platform,
        organization: page.brand.name.as_deref().unwrap_or(page.organization),
        tenant_id: page.tenant_id,
        icon: icons::symbol(page.platform),
    };
    respond(StatusCode::OK, page.brand, &html, page.platform_url.as_ref())
}

/// Contents of the selection page.
pub(crate) struct ChoicePage<'a> {
    /// How the page looks.
    pub(crate) brand: &'a Brand,
    /// The platform.
    pub(crate) platform: &'a str,
    /// Accounts that can be selected.
    pub(crate) offers: &'a [AccountProfile],
    /// Platform ids of accounts that are already connected.
    pub(crate) connected: &'a [String],
    /// Platform ids of the selected accounts.
    pub(crate) chosen: &'a [String],
    /// URI that the form finally redirects to, if any.
    pub(crate) redirect_uri: Option<&'a str>,
}

/// The selection page, with an error above the form.
pub(crate) fn choice(status: StatusCode, page: &ChoicePage<'_>, error: Option<&str>) -> Response {
    let line = |offer: &AccountProfile| {
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
    let (texts, platform) = (&page.brand.pages.choice, platforms::display_name(page.platform));
    let heading = format!("Choose what to connect on {platform}");
    let description = format!(
        "Your login on {platform} covers more than one account. Only accounts that you select are connected."
    );
    let html = Choice {
        brand: page.brand,
        heading: or(&texts.heading, &heading),
        description: or(&texts.description, &description),
        button: or(&texts.button, "Connect"),
        platform,
        error,
        lines,
        icon: icons::symbol(page.platform),
    };
    // Browsers apply `form-action` to the redirect after a form as well.
    let elsewhere = page.redirect_uri.and_then(|uri| Url::parse(uri).ok());
    respond(status, page.brand, &html, elsewhere.as_ref())
}

/// The page after a successful login.
pub(crate) fn finished(brand: &Brand, platform: &str, accounts: &[Account]) -> Response {
    let line = |account: &Account| AccountRow {
        id: account.id.to_string(),
        name: account.display_name.clone(),
        more: describe(&account.username, &account.display_name, &account.account_type),
        is_chosen: true,
    };
    let heading = match accounts.len() {
        1 => "Your account is connected",
        _ => "Your accounts are connected",
    };
    let title = format!("Connected on {}", platforms::display_name(platform));
    let texts = &brand.pages.success;
    let html = Finished {
        brand,
        title: or(&texts.heading, &title),
        heading: or(&texts.heading, heading),
        description: or(&texts.description, "You can close this window."),
        lines: accounts.iter().map(line).collect(),
        icon: icons::symbol(platform),
    };
    respond(StatusCode::OK, brand, &html, None)
}

/// The page after a failed login.
pub(crate) fn failed(brand: &Brand, platform: &str, error: LoginError) -> Response {
    let platform = platforms::display_name(platform);
    let (heading, text) = match error {
        LoginError::AccessDenied => (
            "Nothing was connected",
            format!("Access was not allowed on {platform}. If that was not intended, start again."),
        ),
        LoginError::StateExpired => (
            "This took too long",
            "A login must be finished within 15 minutes. Go back and start again.".to_owned(),
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
                "Publishing needs all permissions that {platform} asked for. Start again and grant all of them."
            ),
        ),
        LoginError::NoPages => (
            "There is nothing to connect",
            format!("Your login on {platform} has no account that can be posted to."),
        ),
        LoginError::QuotaExceeded => (
            "The account limit is reached",
            "The plan allows no further accounts. Contact the service that sent you here.".to_owned(),
        ),
        LoginError::WrongAccount => (
            "This is another account",
            format!("You logged in to {platform} with a different account than expected."),
        ),
    };
    let code = Some(error.as_str());
    let page = match error {
        LoginError::StateExpired => expired(brand, heading, &text, code),
        _ => failure(brand, heading, &text, code),
    };
    respond(StatusCode::BAD_REQUEST, brand, &page, None)
}

/// Returns the page of a failure, with an organization's heading, and its description below.
fn failure<'a>(brand: &'a Brand, heading: &'a str, text: &'a str, code: Option<&'a str>) -> Failed<'a> {
    let texts = &brand.pages.failure;
    Failed {
        brand,
        heading: or(&texts.heading, heading),
        text,
        description: texts.description.as_deref(),
        code,
    }
}

/// Returns the page of an expired login, with the organization's texts for it, if there are any, in place of these.
fn expired<'a>(brand: &'a Brand, heading: &'a str, text: &'a str, code: Option<&'a str>) -> Failed<'a> {
    let texts = &brand.pages.expired;
    Failed {
        brand,
        heading: or(&texts.heading, heading),
        text: or(&texts.description, text),
        description: None,
        code,
    }
}

/// The page for a callback with an invalid state.
pub(crate) fn invalid() -> Response {
    let brand = &Brand::none();
    let text = "The link is incomplete or was not issued by this service. Go back and start again.";
    let page = failure(brand, "This link is not valid", text, None);
    respond(StatusCode::BAD_REQUEST, brand, &page, None)
}

/// The page for a callback in another browser than the one in which the login began.
pub(crate) fn other_browser(brand: &Brand) -> Response {
    let text = "A login must be finished in the browser in which it began, and its cookies must be allowed. \
        Nothing was connected. If somebody else sent you here, they wanted to connect your account for themselves; \
        otherwise go back and start again.";
    let page = failure(brand, "This login began elsewhere", text, None);
    respond(StatusCode::BAD_REQUEST, brand, &page, None)
}

/// The page for a selection that takes a call with an API key.
pub(crate) fn elsewhere(brand: &Brand) -> Response {
    let texts = &brand.pages.confirm;
    let text = "Go back to the service that you came from: the accounts are selected and confirmed there.";
    let page = Failed {
        brand,
        heading: or(&texts.heading, "There is nothing to select here"),
        text: or(&texts.description, text),
        description: None,
        code: None,
    };
    respond(StatusCode::FORBIDDEN, brand, &page, None)
}

/// The page for an internal error or an unavailable service.
pub(crate) fn unavailable(status: StatusCode) -> Response {
    let text = "The service is temporarily unavailable. Reload this page in a moment.";
    let brand = &Brand::none();
    respond(status, brand, &failure(brand, "This did not work", text, None), None)
}

/// The page for an expired selection.
pub(crate) fn gone(brand: &Brand) -> Response {
    let text = "The selection must be made within 30 minutes. Go back and start again.";
    respond(StatusCode::NOT_FOUND, brand, &expired(brand, "There is nothing to select", text, None), None)
}

/// The page for a selection after a different one.
pub(crate) fn already_chosen(brand: &Brand) -> Response {
    let text = "Other accounts were selected before and are connected. To connect more, start again.";
    respond(StatusCode::CONFLICT, brand, &failure(brand, "The selection was already made", text, None), None)
}

/// The organization's text, or the default one.
fn or<'a>(own: &'a Option<String>, default: &'a str) -> &'a str {
    own.as_deref().unwrap_or(default)
}

fn respond(status: StatusCode, brand: &Brand, page: &impl Template, form_to: Option<&Url>) -> Response {
    let form_to = form_to.map(|url| format!(" {}", policy::source(url))).unwrap_or_default();
    let policy =
        format!("{}; form-action 'self'{form_to}; base-uri 'none'; frame-ancestors 'none'", brand.sources());
    private(Response::builder().status(status))
        .content_type("text/html; charset=utf-8")
        .header(header::CONTENT_SECURITY_POLICY, policy)
        .header(header::X_FRAME_OPTIONS, "DENY")
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .body(page.render().expect("writing to a string does not fail"))
}

/// Adds headers that keep the URL private and the response out of caches.
pub(crate) fn private(response: poem::ResponseBuilder) -> poem::ResponseBuilder {
    response.header(header::REFERRER_POLICY, "no-referrer").header(header::CACHE_CONTROL, "no-store")
}

/// Username and type of an account.
fn describe(username: &str, display_name: &str, account_type: &str) -> String {
    match username == display_name {
        true => account_type.to_owned(),
        false => format!("{username} · {account_type}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::{Engine, prelude::BASE64_STANDARD};
    use sha2::{Digest, Sha256};
    use store::accounts::branding::{Branding, Pages, Texts};

    async fn shown(brand: &Brand, error: Option<&str>, redirect_uri: Option<&str>) -> (Response, String) {
        let offer = |id: &str, name: &str| AccountProfile {
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
            brand,
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
        let (response, html) = shown(&Brand::none(), Some("Choose <one>"), None).await;
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
        for branded in ["<footer", "<img", "<a "] {
            assert!(!html.contains(branded), "{branded}: {html}");
        }
        assert!(html.contains("Fanfare</header>") && html.contains("<svg class=\"mark\""), "{html}");
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.contains(&format!("style-src {};", style_source(&html))), "{policy}");
        assert!(policy.contains("default-src 'none'") && policy.contains("form-action 'self';"), "{policy}");
        assert_eq!(response.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(response.header("cache-control"), Some("no-store"));
    }

    /// The policy source of the style in a page.
    fn style_source(html: &str) -> String {
        let style = html.split_once("<style>").unwrap().1.split_once("</style>").unwrap().0;
        format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(style)))
    }

    #[tokio::test]
    async fn a_branded_page_loads_its_logo_and_nothing_else() {
        let hostile =
            || Some("</p></title><script>alert(2)</script>\"'><img src=x onerror=alert(1)>".to_owned());
        let texts = || Texts { heading: hostile(), description: hostile(), button: hostile() };
        let brand = Brand::new(Branding {
            name: hostile(),
            logo_url: Some("https://cdn.example.com:8443/a.png?b=\"onerror=\"alert(1)&c='d'".to_owned()),
            accent_color: Some("#ffcc00".to_owned()),
            support_url: Some("https://help.example.com/\"onclick=\"alert(1)".to_owned()),
            imprint_url: Some("https://example.com/\"><script>".to_owned()),
            pages: Pages { choice: texts(), ..Pages::default() },
        });
        let (response, html) = shown(&brand, None, None).await;
        assert!(!html.contains("<script") && !html.contains("\"on") && !html.contains("'d'"), "{html}");
        assert_eq!((html.matches("<img").count(), html.matches("<a ").count()), (1, 2), "{html}");
        assert_eq!((html.matches("src=\"").count(), html.matches("https:").count()), (1, 3), "{html}");
        assert_eq!(html.matches("&#60;script&#62;alert(2)").count(), 6, "{html}");
        let colors = "--lead:#ffcc00;--on-lead:#000000;--link:#8c7000;--rim:var(--edge)}\n\
            @media (prefers-color-scheme:dark){:root{--link:#ffcc00}}";
        assert!(html.contains(colors) && !html.contains("Fanfare</header>"), "{html}");
        let expected = format!(
            "default-src 'none'; style-src {}; img-src https://cdn.example.com:8443; form-action 'self'; \
             base-uri 'none'; frame-ancestors 'none'",
            style_source(&html)
        );
        assert_eq!(response.header("content-security-policy"), Some(expected.as_str()));
        assert_eq!(response.header("referrer-policy"), Some("no-referrer"));
    }

    #[tokio::test]
    async fn a_form_may_lead_to_where_its_user_came_from() {
        let (response, _) = shown(&Brand::none(), None, Some("https://app.example:8443/done?a=b")).await;
        let policy = response.header("content-security-policy").unwrap();
        assert!(policy.contains("form-action 'self' https://app.example:8443;"), "{policy}");
    }

    #[tokio::test]
    async fn every_error_has_a_page() {
        for error in LoginError::ALL {
            let mut response = failed(&Brand::none(), "x", *error);
            assert_eq!(response.status(), StatusCode::BAD_REQUEST);
            let html = response.take_body().into_string().await.unwrap();
            assert!(html.contains(error.as_str()) && html.contains("<h1 "), "{html}");
        }
    }
}
