//! Reading of request headers: the only code that does.
//!
//! A header is bytes. What a client sends to be followed is [`text`]: one line of UTF-8, or the request is refused. A
//! header that can't be read must never count as one that was not sent, because its sender relies on it. What only
//! describes a request, or has a meaning where it is malformed, is read by [`lines`] with replacement characters.

use crate::http::problem::{Code, Issue, Problem};
use poem::{
    Request, RequestBody,
    http::{HeaderMap, HeaderValue},
};
use poem_openapi::{
    ApiExtractor, ApiExtractorType, ExtractParamOptions,
    registry::{MetaParamIn, MetaSchemaRef, Registry},
    types::Type,
};
use std::{borrow::Cow, str};

/// Returns the text of a header; `None` if it was not sent.
///
/// # Errors
///
/// `invalid_request` naming the header, if it is not UTF-8 or was sent more than once.
pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    single(name, headers.get_all(name).iter())
}

/// Returns the announced length of the body.
///
/// # Errors
///
/// `invalid_request` if it is no number.
pub(crate) fn length(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let name = "Content-Length";
    let Some(sent) = text(headers, name)? else { return Ok(None) };
    sent.parse().map(Some).map_err(|_| invalid(name, Issue::custom([name], "The header must be a number")))
}

/// Returns the lines of a header, with replacement characters for what is not UTF-8.
pub(crate) fn lines<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = Cow<'a, str>> {
    headers.get_all(name).iter().map(|line| String::from_utf8_lossy(line.as_bytes()))
}

/// Returns the bytes of a header's lines.
pub(crate) fn bytes<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a [u8]> {
    headers.get_all(name).iter().map(HeaderValue::as_bytes)
}

fn single<'a>(
    name: &str,
    mut lines: impl Iterator<Item = &'a HeaderValue>,
) -> Result<Option<&'a str>, Problem> {
    let Some(line) = lines.next() else { return Ok(None) };
    let read = match (str::from_utf8(line.as_bytes()), lines.next()) {
        (Ok(text), None) => return Ok(Some(text)),
        (Err(_), None) => "The header must be UTF-8",
        (_, Some(_)) => "The header must not be repeated",
    };
    Err(invalid(name, Issue::custom([name], read)))
}

/// 400: a header has an invalid value.
pub(crate) fn invalid(name: &str, issue: Issue) -> Problem {
    Problem::new(Code::InvalidRequest, format!("invalid {name} header")).with_issues(vec![issue])
}

/// A header of an operation, which reads it by [`Header::text`]: the body decides whether it is needed at all.
#[derive(Debug, Default)]
pub struct Header {
    name: &'static str,
    lines: Vec<HeaderValue>,
}

impl Header {
    /// Name of the header.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the header's text, as [`text`] does.
    ///
    /// # Errors
    ///
    /// `invalid_request` naming the header, if it is not UTF-8 or was sent more than once.
    pub(crate) fn text(&self) -> Result<Option<&str>, Problem> {
        single(self.name, self.lines.iter())
    }
}

impl<'a> ApiExtractor<'a> for Header {
    const TYPES: &'static [ApiExtractorType] = &[ApiExtractorType::Parameter];
    const PARAM_IS_REQUIRED: bool = false;

    type ParamType = Option<String>;
    type ParamRawType = String;

    fn register(registry: &mut Registry) {
        <String as Type>::register(registry);
    }

    fn param_in() -> Option<MetaParamIn> {
        Some(MetaParamIn::Header)
    }

    fn param_schema_ref() -> Option<MetaSchemaRef> {
        Some(String::schema_ref())
    }

    async fn from_request(
        request: &'a Request,
        _: &mut RequestBody,
        options: ExtractParamOptions<Self::ParamType>,
    ) -> poem::Result<Self> {
        let lines = request.headers().get_all(options.name).iter().cloned().collect();
        Ok(Self { name: options.name, lines })
    }
}

#[cfg(test)]
impl Header {
    /// A header with these lines.
    pub(crate) fn of(name: &'static str, lines: &[&[u8]]) -> Self {
        let lines = lines.iter().map(|line| HeaderValue::from_bytes(line).unwrap()).collect();
        Self { name, lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_one_line_of_utf8_or_an_error() {
        let name = "Idempotency-Key";
        for (sent, expected) in [
            (&[][..], Ok(None)),
            (&[&b""[..]], Ok(Some(""))),
            (&[b"order-7"], Ok(Some("order-7"))),
            (&["commande-été-7".as_bytes()], Ok(Some("commande-été-7"))),
            (&[b"commande-\xe9t\xe9-7"], Err("The header must be UTF-8")),
            (&[b"a", b"a"], Err("The header must not be repeated")),
            (&[b"\xff", b"a"], Err("The header must not be repeated")),
        ] {
            let header = Header::of(name, sent);
            let headers: HeaderMap =
                header.lines.iter().map(|line| (name.parse().unwrap(), line.clone())).collect();
            for found in [header.text(), text(&headers, name)] {
                let found = found.map_err(|problem| {
                    assert_eq!(problem.detail, "invalid Idempotency-Key header");
                    problem.issues[0].message.clone()
                });
                assert_eq!(found, expected.map_err(str::to_owned), "{sent:?}");
            }
            assert_eq!(lines(&headers, name).count(), sent.len());
        }
    }
}
