//! An organization's branding as its pages use it: a style, a policy source and some texts.
//!
//! The values are checked when they are set (`crate::branding`) and read again here, so that a row never becomes
//! markup, a style or a part of the content security policy because of a rule that changed since.

use crate::{
    app::App,
    connect::policy,
    http::problem::Problem,
    types::{color::Color, url::Link},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use domain::Owner;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;
use store::accounts::branding::{self, Branding, Pages};
use url::{Host, Url};

const STYLE: &str = include_str!("../../templates/page.css");
/// The color of the paper in light mode, `--paper` of the style.
const LIGHT: Color = Color::of(0xff, 0xff, 0xff);
/// The color of the paper in dark mode.
const DARK: Color = Color::of(0x1d, 0x1a, 0x22);

/// The policy source of the style of pages without an accent color.
static STYLE_SOURCE: LazyLock<String> = LazyLock::new(|| source(STYLE));

/// How a page looks.
#[derive(Clone, Debug)]
pub(crate) struct Brand {
    /// Content of the style element. It contains nothing that was written by others.
    pub(crate) style: String,
    /// Name of the product, if one is set.
    pub(crate) name: Option<String>,
    /// URL of the logo.
    pub(crate) logo: Option<Url>,
    /// URL of a page with help.
    pub(crate) support: Option<Url>,
    /// URL of the imprint.
    pub(crate) imprint: Option<Url>,
    /// Texts of the pages.
    pub(crate) pages: Pages,
    style_source: String,
}

impl Brand {
    /// The brand of an owner's pages.
    pub(crate) async fn of(app: &App, owner: Owner) -> Result<Self, Problem> {
        Ok(Self::new(branding::get(&app.db, owner).await?))
    }

    /// The brand of pages whose organization is unknown.
    pub(crate) fn none() -> Self {
        Self::new(Branding::default())
    }

    pub(crate) fn new(branding: Branding) -> Self {
        let url = |text: Option<String>| {
            let link = text.as_deref().and_then(Link::read)?;
            error(&link.url).is_none().then_some(link.url)
        };
        let (style, style_source) = match branding.accent_color.as_deref().and_then(Color::read) {
            None => (STYLE.to_owned(), STYLE_SOURCE.clone()),
            Some(accent) => {
                let style = format!("{STYLE}{}", colors(accent));
                let source = source(&style);
                (style, source)
            }
        };
        Self {
            style,
            style_source,
            name: branding.name,
            logo: url(branding.logo_url),
            support: url(branding.support_url),
            imprint: url(branding.imprint_url),
            pages: branding.pages,
        }
    }

    /// The directives of the content security policy for what is loaded.
    pub(crate) fn sources(&self) -> String {
        let images = self.logo.as_ref().map(|logo| format!("; img-src {}", policy::source(logo)));
        format!("default-src 'none'; style-src {}{}", self.style_source, images.unwrap_or_default())
    }
}

/// The colors that follow from the accent: it is that of buttons as it is, and that of links and outlines as far as
/// they are readable on the paper. A button that has the color of the paper is still seen by its rim.
fn colors(accent: Color) -> String {
    format!(
        ":root{{--lead:{accent};--on-lead:{};--link:{};--rim:var(--edge)}}\n\
         @media (prefers-color-scheme:dark){{:root{{--link:{}}}}}\n",
        accent.of_text(),
        accent.readable_on(LIGHT),
        accent.readable_on(DARK)
    )
}

fn source(style: &str) -> String {
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(style)))
}

/// Returns what is wrong with the URL of a logo or a link, or `None`.
pub(crate) fn error(url: &Url) -> Option<&'static str> {
    match url.host() {
        _ if url.scheme() != "https" => Some("Must be an https URL"),
        _ if !url.username().is_empty() || url.password().is_some() => Some("Must not contain credentials"),
        Some(host @ Host::Domain(_)) if policy::can_name(&host) => None,
        _ => Some("Must contain the name of a host"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_host_that_a_policy_can_name() {
        for (url, is_fine) in [
            ("https://cdn.example.com/logo.png?v=2", true),
            ("https://cdn.example.com:8443/logo.png", true),
            ("https://bücher.example/logo.png", true),
            ("http://cdn.example.com/logo.png", false),
            ("javascript://cdn.example.com/%0aalert(1)", false),
            ("ftp://cdn.example.com/logo.png", false),
            ("https://ada@cdn.example.com/logo.png", false),
            ("https://:secret@cdn.example.com/logo.png", false),
            ("https://*.example.com/logo.png", false),
            ("https://*/logo.png", false),
            ("https://a;sandbox/logo.png", false),
            ("https://a,b/logo.png", false),
            ("https://'self'/logo.png", false),
            ("https://a_b.example.com/logo.png", false),
            ("https://example.com./logo.png", false),
            ("https://127.0.0.1/logo.png", false),
            ("https://[::1]/logo.png", false),
        ] {
            assert_eq!(error(&Url::parse(url).unwrap()).is_none(), is_fine, "{url}");
        }
    }

    #[test]
    fn a_row_with_invalid_values_changes_neither_style_nor_policy() {
        let brand = Brand::new(Branding {
            logo_url: Some("https://a;script-src */x".to_owned()),
            accent_color: Some("red}</style><script>".to_owned()),
            support_url: Some("javascript:alert(1)".to_owned()),
            imprint_url: Some("data:text/html,a".to_owned()),
            ..Branding::default()
        });
        assert_eq!((brand.style.as_str(), brand.sources()), (STYLE, Brand::none().sources()));
        assert_eq!((brand.logo, brand.support, brand.imprint), (None, None, None));
        assert!(!STYLE.contains('<'));
    }

    #[test]
    fn the_colors_are_adjusted_to_the_paper_of_the_style() {
        let papers: Vec<_> = STYLE
            .split("--paper:")
            .skip(1)
            .map(|rest| rest.split(';').next().unwrap().replace("#fff", "#ffffff"))
            .collect();
        assert_eq!(papers, [LIGHT.to_string(), DARK.to_string()]);
    }
}
