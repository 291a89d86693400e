//! Branding of the connect pages: the name, logo, color and texts of the organization that sends its users there.
//!
//! It belongs to the organization and is set by live keys; what a test key sets is a preview on the pages of test mode,
//! because a test key must not change what people see in live mode. A branding is data, never markup or a style, and takes away
//! nothing that protects the person who logs in: who asks for the access, what went wrong, and the warning of links
//! from others stay.

use crate::{
    connect::brand,
    http::{
        body::Json,
        caller::{Call, Caller, NetworksRead, NetworksWrite},
        problem::{Issue, Problem, Segment},
    },
    openapi::{tag::Tag, validate::Rules},
    types::{color::Color, url::Link},
};
use poem_openapi::{Object, OpenApi};
use serde_json::{Map, Value};
use store::accounts::branding::{self, Pages, Texts};

/// The members that are URLs.
const URLS: [&str; 3] = ["logo_url", "support_url", "imprint_url"];
/// The pages that have texts.
const PAGES: [&str; 6] = ["begin", "choice", "confirm", "success", "failure", "expired"];
/// The texts of a page.
const TEXTS: [&str; 3] = ["heading", "description", "button"];

/// The operations on the branding.
pub struct ConnectPages;

#[OpenApi(tag = "Tag::Accounts")]
impl ConnectPages {
    /// Get the branding
    ///
    /// Returns how the connect pages of the organization look; null stands for the default. A test key sees the preview
    /// that a test key has set, if there is one. Scope `networks:read`.
    #[oai(path = "/connect/branding", method = "get", operation_id = "getConnectBranding")]
    async fn get(&self, caller: Caller<NetworksRead>) -> Result<Json<Branding>, Problem> {
        Ok(Json(get(&caller.call()).await?))
    }

    /// Set the branding
    ///
    /// Replaces the branding of the pages that this service shows to people who connect an account; what is not sent
    /// becomes the default. A test key sets a preview, which the pages of test mode show until a live key sets the
    /// branding. The pages always say who asks for the access and what went wrong. Scope `networks:write`.
    #[oai(path = "/connect/branding", method = "put", operation_id = "setConnectBranding")]
    async fn set(
        &self,
        caller: Caller<NetworksWrite>,
        body: Json<NewBranding>,
    ) -> Result<Json<Branding>, Problem> {
        Ok(Json(set(&caller.call(), body.0).await?))
    }
}

/// Returns the branding.
pub async fn get(call: &Call<'_>) -> Result<Branding, Problem> {
    Ok(branding::get(call.db(), call.owner).await?.into())
}

/// Replaces the branding.
pub async fn set(call: &Call<'_>, body: NewBranding) -> Result<Branding, Problem> {
    let branding = branding::Branding::from(body);
    branding::set(call.db(), call.owner, &branding, call.by, call.now()).await?;
    Ok(branding.into())
}

/// Returns true if a text contains a character that is not for people to read: a control character, a line or
/// paragraph separator, or one that reorders the text around it.
/// <https://www.unicode.org/reports/tr9/#Directional_Formatting_Characters>
fn has_controls(text: &str) -> bool {
    // U+0000 is reported for every body.
    text.chars().any(|c| {
        c != '\0' && c.is_control()
            || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

/// A branding to set. Texts without a visible character are the same as none.
#[derive(Debug, Object)]
#[oai(rename = "NewConnectBranding")]
pub struct NewBranding {
    /// Name of your product, shown above each page and as the one that asks for the access; the organization's name by
    /// default.
    #[oai(validator(max_length = 60))]
    pub name: Option<String>,
    /// https URL of your logo, shown in place of the name, 48 pixels high.
    #[oai(validator(max_length = 2048))]
    pub logo_url: Option<Link>,
    /// Color of buttons, `#rrggbb`. Their text is black or white, and links and outlines take the color as far as
    /// they are readable.
    pub accent_color: Option<Color>,
    /// https URL of a page with help, linked below each page.
    #[oai(validator(max_length = 2048))]
    pub support_url: Option<Link>,
    /// https URL of your imprint, linked below each page.
    #[oai(validator(max_length = 2048))]
    pub imprint_url: Option<Link>,
    /// Texts of the pages.
    pub pages: Option<NewPages>,
}

impl Rules for NewBranding {
    fn check(body: &Map<String, Value>, issues: &mut Vec<Issue>) {
        let mut refuse = |path: &[&str], text: &str| {
            if has_controls(text) {
                let message = "Must not contain control characters or ones that change the direction of text";
                issues.push(Issue::custom(path.iter().map(|part| Segment::from(*part)), message));
            }
        };
        for name in ["name"].iter().chain(&URLS) {
            refuse(&[name], body.get(*name).and_then(Value::as_str).unwrap_or_default());
        }
        let pages = body.get("pages").unwrap_or(&Value::Null);
        for page in PAGES {
            for name in TEXTS {
                refuse(&["pages", page, name], pages[page][name].as_str().unwrap_or_default());
            }
        }
        for name in URLS {
            let link = body.get(name).and_then(Value::as_str).and_then(Link::read);
            if let Some(message) = link.and_then(|link| brand::error(&link.url)) {
                issues.push(Issue::new([name], "invalid_string", message).with("validation", "url"));
            }
        }
    }
}

/// Texts to set, by page.
#[derive(Debug, Default, Object)]
#[oai(rename = "NewConnectPages")]
pub struct NewPages {
    /// The page on which a `hosted` login begins. It also says who asks for the access and for which tenant, and warns
    /// of links that somebody else sent.
    pub begin: Option<NewFormTexts>,
    /// The page on which accounts are selected.
    pub choice: Option<NewFormTexts>,
    /// The page of a login with `confirm`, whose accounts are selected on your own page.
    pub confirm: Option<NewTexts>,
    /// The page after a login that connected accounts, which are listed.
    pub success: Option<NewTexts>,
    /// The page after a login that failed. It also says what went wrong; the description follows that.
    pub failure: Option<NewTexts>,
    /// The page of a login or a selection that took too long.
    pub expired: Option<NewTexts>,
}

/// Texts to set for a page with a button.
#[derive(Debug, Default, Object)]
#[oai(rename = "NewConnectFormTexts")]
pub struct NewFormTexts {
    /// Heading.
    #[oai(validator(max_length = 120))]
    pub heading: Option<String>,
    /// Text below the heading.
    #[oai(validator(max_length = 500))]
    pub description: Option<String>,
    /// Words on the button.
    #[oai(validator(max_length = 40))]
    pub button: Option<String>,
}

/// Texts to set for a page.
#[derive(Debug, Default, Object)]
#[oai(rename = "NewConnectTexts")]
pub struct NewTexts {
    /// Heading.
    #[oai(validator(max_length = 120))]
    pub heading: Option<String>,
    /// Text on the page.
    #[oai(validator(max_length = 500))]
    pub description: Option<String>,
}

/// Returns a text without the space around it, or `None` if nothing is left.
fn trimmed(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

impl From<NewBranding> for branding::Branding {
    fn from(new: NewBranding) -> Self {
        let text = |link: Option<Link>| link.map(|link| link.text);
        let pages = new.pages.unwrap_or_default();
        Self {
            name: trimmed(new.name),
            logo_url: text(new.logo_url),
            accent_color: new.accent_color.map(|color| color.to_string()),
            support_url: text(new.support_url),
            imprint_url: text(new.imprint_url),
            pages: Pages {
                begin: pages.begin.unwrap_or_default().into(),
                choice: pages.choice.unwrap_or_default().into(),
                confirm: pages.confirm.unwrap_or_default().into(),
                success: pages.success.unwrap_or_default().into(),
                failure: pages.failure.unwrap_or_default().into(),
                expired: pages.expired.unwrap_or_default().into(),
            },
        }
    }
}

impl From<NewFormTexts> for Texts {
    fn from(new: NewFormTexts) -> Self {
        Self {
            heading: trimmed(new.heading),
            description: trimmed(new.description),
            button: trimmed(new.button),
        }
    }
}

impl From<NewTexts> for Texts {
    fn from(new: NewTexts) -> Self {
        Self { heading: trimmed(new.heading), description: trimmed(new.description), button: None }
    }
}

/// The branding of the connect pages.
#[derive(Debug, Object)]
#[oai(rename = "ConnectBranding")]
pub struct Branding {
    /// Name of the product.
    #[oai(nullable)]
    pub name: Option<String>,
    /// URL of the logo.
    #[oai(nullable)]
    pub logo_url: Option<String>,
    /// Color of buttons.
    #[oai(nullable)]
    pub accent_color: Option<String>,
    /// URL of a page with help.
    #[oai(nullable)]
    pub support_url: Option<String>,
    /// URL of the imprint.
    #[oai(nullable)]
    pub imprint_url: Option<String>,
    /// Texts of the pages.
    pub pages: PageTexts,
}

/// Texts, by page.
#[derive(Debug, Object)]
#[oai(rename = "ConnectPages")]
pub struct PageTexts {
    /// The page on which a `hosted` login begins.
    pub begin: FormTexts,
    /// The page on which accounts are selected.
    pub choice: FormTexts,
    /// The page of a login with `confirm`.
    pub confirm: PlainTexts,
    /// The page after a login that connected accounts.
    pub success: PlainTexts,
    /// The page after a login that failed.
    pub failure: PlainTexts,
    /// The page of a login or a selection that took too long.
    pub expired: PlainTexts,
}

/// Texts of a page with a button.
#[derive(Debug, Object)]
#[oai(rename = "ConnectFormTexts")]
pub struct FormTexts {
    /// Heading.
    #[oai(nullable)]
    pub heading: Option<String>,
    /// Text below the heading.
    #[oai(nullable)]
    pub description: Option<String>,
    /// Words on the button.
    #[oai(nullable)]
    pub button: Option<String>,
}

/// Texts of a page.
#[derive(Debug, Object)]
#[oai(rename = "ConnectTexts")]
pub struct PlainTexts {
    /// Heading.
    #[oai(nullable)]
    pub heading: Option<String>,
    /// Text on the page.
    #[oai(nullable)]
    pub description: Option<String>,
}

impl From<branding::Branding> for Branding {
    fn from(set: branding::Branding) -> Self {
        Self {
            name: set.name,
            logo_url: set.logo_url,
            accent_color: set.accent_color,
            support_url: set.support_url,
            imprint_url: set.imprint_url,
            pages: PageTexts {
                begin: set.pages.begin.into(),
                choice: set.pages.choice.into(),
                confirm: set.pages.confirm.into(),
                success: set.pages.success.into(),
                failure: set.pages.failure.into(),
                expired: set.pages.expired.into(),
            },
        }
    }
}

impl From<Texts> for FormTexts {
    fn from(Texts { heading, description, button }: Texts) -> Self {
        Self { heading, description, button }
    }
}

impl From<Texts> for PlainTexts {
    fn from(Texts { heading, description, .. }: Texts) -> Self {
        Self { heading, description }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reorders_or_breaks_a_text_is_found_and_what_languages_need_is_not() {
        for text in ["a\nb", "a\tb", "\u{7f}", "\u{85}", "\u{202e}", "\u{2066}", "\u{2069}", "\u{2028}"] {
            assert!(has_controls(text), "{text:?}");
        }
        // A joiner in an emoji and in Persian, a mark of direction in Hebrew, a soft hyphen.
        for text in ["", "Grüße & <b>", "👩\u{200d}💻", "می\u{200c}خواهم", "א\u{200f}!", "co\u{ad}op"]
        {
            assert!(!has_controls(text), "{text:?}");
        }
    }
}
