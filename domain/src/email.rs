//! E-mail addresses.
//!
//! Accepts the addresses that a browser's e-mail field accepts, if the host has a dot: no mail reaches
//! `ada@localhost`. Delivery is not checked.
//! <https://html.spec.whatwg.org/multipage/input.html#valid-e-mail-address>

use std::{fmt, str::FromStr};

/// Maximum length of an address, in bytes (RFC 5321, section 4.5.3.1.3, without its brackets).
const MAX_LENGTH: usize = 254;
/// Maximum length of the part before the `@`.
const MAX_LOCAL_LENGTH: usize = 64;
/// Maximum length of one label of the host name.
const MAX_LABEL_LENGTH: usize = 63;

/// A valid e-mail address, in the spelling that was entered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email(String);

/// The error of parsing a text that is not a valid address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnEmail;

impl Email {
    /// Returns the address in the spelling that was entered.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Email {
    type Err = NotAnEmail;

    fn from_str(text: &str) -> Result<Self, NotAnEmail> {
        let (local, host) = text.rsplit_once('@').ok_or(NotAnEmail)?;
        let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+/=?^_`{|}~-".contains(&byte);
        let is_local = (1..=MAX_LOCAL_LENGTH).contains(&local.len()) && local.bytes().all(is_sign);
        let is_host = host.contains('.') && host.split('.').all(is_label);
        if text.len() <= MAX_LENGTH && is_local && is_host {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotAnEmail)
        }
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for NotAnEmail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not an e-mail address such as ada@example.com")
    }
}

impl std::error::Error for NotAnEmail {}

fn is_label(label: &str) -> bool {
    (1..=MAX_LABEL_LENGTH).contains(&label.len())
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
