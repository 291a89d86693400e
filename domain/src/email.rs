//! Addresses of people.
//!
//! What browsers take in a field for an address is taken here, for that is what people can type, and
//! only hosts with a dot: nobody is reached at `ada@localhost`. Whether an address works shows when
//! somebody writes to it. <https://html.spec.whatwg.org/multipage/input.html#valid-e-mail-address>

use std::{fmt, str::FromStr};

/// The longest address, in characters (RFC 5321, section 4.5.3.1.3, without its brackets).
const LENGTH: usize = 254;
/// The longest part before the `@`.
const LOCAL_LENGTH: usize = 64;
/// The longest part of a host between two dots.
const LABEL_LENGTH: usize = 63;

/// An address, kept as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email(String);

/// A text that is no address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnEmail;

impl Email {
    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Email {
    type Err = NotAnEmail;

    fn from_str(text: &str) -> Result<Self, NotAnEmail> {
        let (local, host) = text.rsplit_once('@').ok_or(NotAnEmail)?;
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte);
        let is_local = (1..=LOCAL_LENGTH).contains(&local.len()) && local.bytes().all(is_sign);
        let is_host = host.contains('.') && host.split('.').all(is_label);
        if text.len() <= LENGTH && is_local && is_host { Ok(Self(text.to_owned())) } else { Err(NotAnEmail) }
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for NotAnEmail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an address such as ada@example.com")
    }
}

impl std::error::Error for NotAnEmail {}

fn is_label(label: &str) -> bool {
    (1..=LABEL_LENGTH).contains(&label.len())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_name_and_a_host_with_a_dot() {
        for text in ["ada@example.com", "Ada.Lovelace+x@a-b.example.co.uk", "o'hara@xn--bcher-kva.example"] {
            assert_eq!(text.parse::<Email>().map(|email| email.to_string()), Ok(text.to_owned()));
        }
        let long = format!("{}@example.com", "a".repeat(65));
        let label = format!("a@{}.com", "a".repeat(64));
        for text in [
            "",
            "ada",
            "@example.com",
            "ada@",
            "ada@localhost",
            "ada@example..com",
            "ada@.com",
            "ada@-a.com",
            "ada@a-.com",
            "a b@example.com",
            "ada@exa mple.com",
            "a@b@example.com",
            "ada@example.com\n",
            "ada@example.com\u{0}",
            "Ada <ada@example.com>",
            "ada@[127.0.0.1]",
            &long,
            &label,
        ] {
            assert_eq!(text.parse::<Email>(), Err(NotAnEmail), "{text:?}");
        }
    }
}
