//! Form fields and query parameters: names with values, which can repeat.

use crate::http::{
    body,
    problem::{Code, Problem},
};
use poem::{
    Body, Request,
    http::{HeaderName, header},
};
use url::{Url, form_urlencoded};

/// The header in which browsers report which site a request came from.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Maximum number of fields of a form; a field takes far more memory than its text.
const MAX_FIELDS: usize = 500;

/// Names with values, in the order sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Parses the query string of a request.
    pub(crate) fn of_query(request: &Request) -> Self {
        Self::parse(request.uri().query().unwrap_or_default().as_bytes())
    }

    fn parse(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().take(MAX_FIELDS).collect())
    }

    /// The first value of a name, or an empty string.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value)
    }

    /// The trimmed value of a name; `None` if empty.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name).trim()).filter(|value| !value.is_empty())
    }

    /// All values of a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Names and values of those of the given names that are not empty.
    pub(crate) fn only<'a>(&'a self, names: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        names.iter().filter_map(|name| Some((*name, self.given(name)?)))
    }

    /// All fields except those named.
    pub(crate) fn without(&self, names: &[&str]) -> impl Iterator<Item = (&str, &str)> {
        let kept = self.0.iter().filter(move |(name, _)| !names.contains(&name.as_str()));
        kept.map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Serializes fields as a query string.
pub(crate) fn write<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Parses a form that a page of this origin sent.
///
/// # Errors
///
/// If it comes from another origin or is no form.
pub(crate) async fn of_form(request: &Request, body: Body) -> Result<Fields, Problem> {
    if !is_ours(request) {
        return Err(Problem::new(Code::Forbidden, "this form was not sent from the dashboard"));
    }
    let is_form = request.content_type().is_some_and(|found| {
        found.split(';').next().unwrap_or_default().trim() == "application/x-www-form-urlencoded"
    });
    if !is_form {
        return Err(Problem::new(Code::InvalidRequest, "this is not a form"));
    }
    let bytes = body.into_bytes_limit(body::MAX_BYTES).await.map_err(|_| Problem::too_large())?;
    if form_urlencoded::parse(&bytes).nth(MAX_FIELDS).is_some() {
        let detail = format!("a form has at most {MAX_FIELDS} fields");
        return Err(Problem::new(Code::InvalidRequest, detail));
    }
    Ok(Fields::parse(&bytes))
}

/// True if a page of this origin sent the request, by its `Origin` and, if present, `Sec-Fetch-Site`. All
/// current browsers send `Origin` with a form; a request without it is refused.
fn is_ours(request: &Request) -> bool {
    let text = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    if text(SEC_FETCH_SITE).is_some_and(|site| site != "same-origin") {
        return false;
    }
    let (Some(origin), Some(host)) = (text(header::ORIGIN), text(header::HOST)) else { return false };
    // Only a proxy in front knows the scheme, so host and port are compared.
    let Ok(origin) = Url::parse(origin) else { return false };
    let same = |scheme: &str| {
        Url::parse(&format!("{scheme}://{host}")).is_ok_and(|ours| ours.origin() == origin.origin())
    };
    same("http") || same("https")
}

/// True if the request was navigated to from another origin.
pub(crate) fn is_cross_site(request: &Request) -> bool {
    let site = request.headers().get(SEC_FETCH_SITE).and_then(|value| value.to_str().ok());
    matches!(site, Some("cross-site" | "same-site"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_origin_send_forms() {
        for (origin, site, is_fine) in [
            (Some("http://localhost:8080"), Some("same-origin"), true),
            (Some("http://localhost:8080"), None, true),
            (Some("https://localhost:8080"), Some("same-origin"), true),
            (Some("http://localhost:8090"), None, false),
            (Some("http://localhost:8080"), Some("same-site"), false),
            (Some("http://localhost:8080"), Some("cross-site"), false),
            (Some("http://localhost:8080"), Some("none"), false),
            (Some("null"), Some("same-origin"), false),
            (Some("http://localhost.evil.example:8080"), None, false),
            (None, Some("same-origin"), false),
            (None, None, false),
        ] {
            let mut request = Request::builder().header("host", "localhost:8080");
            if let Some(origin) = origin {
                request = request.header("origin", origin);
            }
            if let Some(site) = site {
                request = request.header("sec-fetch-site", site);
            }
            assert_eq!(is_ours(&request.finish()), is_fine, "{origin:?} {site:?}");
        }
    }

    #[tokio::test]
    async fn a_form_has_so_many_fields_and_no_more() {
        let request = Request::builder()
            .header("host", "localhost:8080")
            .header("origin", "http://localhost:8080")
            .content_type("application/x-www-form-urlencoded")
            .finish();
        let form = async |count: usize| of_form(&request, "a&".repeat(count).into()).await;
        assert_eq!(form(MAX_FIELDS).await.unwrap().all("a").count(), MAX_FIELDS);
        assert_eq!(form(MAX_FIELDS + 1).await.unwrap_err().code, Code::InvalidRequest);
    }

    #[test]
    fn fields_are_read_as_browsers_write_them() {
        let fields = Fields::parse(b"text=a+b&text=%3Cscript%3E&empty=+&more");
        assert_eq!(fields.get("text"), "a b");
        assert_eq!(fields.all("text").collect::<Vec<_>>(), ["a b", "<script>"]);
        assert_eq!((fields.given("empty"), fields.given("more"), fields.given("none")), (None, None, None));
        assert_eq!(fields.without(&["text", "empty"]).collect::<Vec<_>>(), [("more", "")]);
    }
}
