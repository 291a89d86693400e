//! Form fields and query parameters: names with values, which can repeat.

use api::http::{
    body, browser, headers,
    problem::{Code, Problem},
};
use poem::{Body, FromRequest, Request, RequestBody, web::Multipart};
use url::form_urlencoded;

/// Maximum number of fields of a form: the accounts of a post and its settings. A field takes far more memory than its
/// text.
const MAX_FIELDS: usize = 2000;

/// Names with values, in the order sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Parses the query string of a request.
    pub(crate) fn of_query(request: &Request) -> Self {
        Self::parse(request.uri().query().unwrap_or_default().as_bytes())
    }

    /// Fields with these values.
    pub(crate) fn of<const N: usize>(fields: [(&str, &str); N]) -> Self {
        Self(fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into())
    }

    /// Parses fields as [`write`] serializes them.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().take(MAX_FIELDS).collect())
    }

    /// Fields with these names and values.
    pub(crate) fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// Adds a field.
    pub(crate) fn push(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    /// The names, in the order sent.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The values, in the order of the names.
    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(_, value)| value.as_str())
    }

    /// The last value of a name: a checkbox comes after the hidden field with the value that it has when it is off.
    pub(crate) fn last(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
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
    check_origin(request)?;
    read_form(request, body).await
}

/// Parses a form that a page of this origin or its script sent.
///
/// # Errors
///
/// If it comes from another origin or is no form.
pub(crate) async fn of_script(request: &Request, body: Body) -> Result<Fields, Problem> {
    check_script(request)?;
    read_form(request, body).await
}

/// Fails unless a form or a script of a page of this origin sent the request.
///
/// # Errors
///
/// `forbidden`.
pub(crate) fn check_script(request: &Request) -> Result<(), Problem> {
    if browser::is_of_our_pages(request) { Ok(()) } else { Err(foreign()) }
}

/// Fails unless a form of a page of this origin sent the request.
///
/// # Errors
///
/// `forbidden`.
pub(crate) fn check_origin(request: &Request) -> Result<(), Problem> {
    if browser::is_ours(request) { Ok(()) } else { Err(foreign()) }
}

/// Begins to read a form with files.
///
/// # Errors
///
/// If it has no files.
pub(crate) async fn of_files(request: &Request, body: Body) -> Result<Multipart, Problem> {
    let read = Multipart::from_request(request, &mut RequestBody::new(body)).await;
    read.map_err(|_| Problem::new(Code::InvalidRequest, "this is not a form with files"))
}

fn foreign() -> Problem {
    Problem::new(Code::Forbidden, "this form was not sent from the dashboard")
}

async fn read_form(request: &Request, body: Body) -> Result<Fields, Problem> {
    let is_form = headers::text(request.headers(), "Content-Type")?.is_some_and(|found| {
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

#[cfg(test)]
mod tests {
    use super::*;

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
