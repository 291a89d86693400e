//! Presigned URLs that also fix the length of the body.
//!
//! `object_store` signs no `content-length`. Its URL has all that a signature needs but the secret, so it is signed
//! again, with that header. A library that signs from the start, such as `rusty-s3`, would need the endpoint, the region
//! and the style of addresses once more, which `object_store` reads from its variables and does not tell.
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html>

use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};
use url::{Position, Url};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SIGNED_HEADERS: &str = "X-Amz-SignedHeaders";
const SIGNATURE: &str = "X-Amz-Signature";
/// All but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Signs a presigned URL again for a `PUT` of exactly `length` bytes. Returns `None` if it is none.
pub(crate) fn with_length(url: &Url, length: u64, secret_key: &str) -> Option<Url> {
    sign(url, "PUT", &[("content-length", length.to_string())], secret_key)
}

/// Signs a presigned URL again, with these headers besides `host`, which come before it in the alphabet.
fn sign(url: &Url, method: &str, headers: &[(&str, String)], secret_key: &str) -> Option<Url> {
    let host = url[Position::BeforeHost..Position::AfterPort].to_owned();
    let headers: Vec<_> = headers.iter().cloned().chain([("host", host)]).collect();
    let names = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
    let mut query: Vec<(String, String)> = url
        .query_pairs()
        .into_owned()
        .filter(|(name, _)| name != SIGNED_HEADERS && name != SIGNATURE)
        .chain([(SIGNED_HEADERS.to_owned(), names.clone())])
        .collect();
    let of = |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let (date, credential) = (of("X-Amz-Date")?, of("X-Amz-Credential")?);
    let (_, scope) = credential.split_once('/')?;

    query.sort();
    let pairs = query.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    let query = pairs.collect::<Vec<_>>().join("&");
    let canonical_headers: String = headers.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let request =
        format!("{method}\n{}\n{query}\n{canonical_headers}\n{names}\nUNSIGNED-PAYLOAD", url.path());
    let digest = hex::encode(Sha256::digest(request));
    let text = format!("{ALGORITHM}\n{date}\n{scope}\n{digest}");
    let first = format!("AWS4{secret_key}").into_bytes();
    let key = scope.split('/').fold(first, |key, part| mac(&key, part));
    let mut signed = url.clone();
    signed.set_query(Some(&format!("{query}&{SIGNATURE}={}", hex::encode(mac(&key, &text)))));
    Some(signed)
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html#query-string-auth-v4-signing-example>
    const EXAMPLE: &str = "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256\
        &X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request\
        &X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=old";
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

    fn parameter(url: &Url, name: &str) -> String {
        let mut all = url.query_pairs().filter(|(known, _)| known == name);
        let found = all.next().unwrap().1.into_owned();
        assert!(all.next().is_none(), "{name} is there twice");
        found
    }

    #[test]
    fn the_documented_example_has_its_signature() {
        let signed = sign(&Url::parse(EXAMPLE).unwrap(), "GET", &[], SECRET).unwrap();
        let expected = "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
        assert_eq!(parameter(&signed, SIGNATURE), expected);
    }

    #[test]
    fn the_length_is_signed() {
        let url = Url::parse(EXAMPLE).unwrap();
        let [one, other] = [7, 8].map(|length| with_length(&url, length, SECRET).unwrap());
        assert_eq!(parameter(&one, SIGNED_HEADERS), "content-length;host");
        assert_ne!(parameter(&one, SIGNATURE), parameter(&other, SIGNATURE));
        assert_eq!(with_length(&Url::parse("https://a.test/b").unwrap(), 7, SECRET), None);
    }
}
