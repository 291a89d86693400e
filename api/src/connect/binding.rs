//! The cookie that binds a hosted login to the browser in which it began.
//!
//! It contains a digest of the login's state, so that it fits no other login, and is named after it, so that several
//! logins can be under way in one browser. `SameSite=Lax`: the platform's redirect to the callback is a navigation
//! from another site, which `Strict` would hide it from.

use crate::{connect::oauth_state, http::browser};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use poem::Request;
use sha2::{Digest, Sha256};

/// Associated data, so that the digest is that of nothing else.
const LABEL: &str = "fanfare login 1 ";
/// Number of characters of the digest in the cookie's name.
const NAME_LENGTH: usize = 16;

/// The `Set-Cookie` header for a login with this state; `is_plain` over http to a loopback address.
pub(crate) fn cookie(is_plain: bool, state: &str) -> String {
    let secure = if is_plain { "" } else { "; Secure" };
    let seconds = oauth_state::TTL.num_seconds();
    format!(
        "{}={}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}",
        name(is_plain, state),
        digest(state)
    )
}

/// True if the request is from the browser in which the login began.
pub(crate) fn is_same_browser(is_plain: bool, state: &str, request: &Request) -> bool {
    let sent = browser::cookie(request, &name(is_plain, state));
    sent.is_some_and(|sent| sent == digest(state))
}

fn name(is_plain: bool, state: &str) -> String {
    let prefix = if is_plain { "" } else { "__Host-" };
    format!("{prefix}fanfare-login-{}", &digest(state)[..NAME_LENGTH])
}

fn digest(state: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::new().chain_update(LABEL).chain_update(state).finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_fits_its_login_and_host_only() {
        for is_plain in [false, true] {
            let set = cookie(is_plain, "state");
            assert_eq!(set.starts_with("__Host-"), !is_plain, "{set}");
            assert_eq!(set.contains("; Secure"), !is_plain, "{set}");
            assert!(set.contains("; Path=/; Max-Age=900; HttpOnly; SameSite=Lax") && !set.contains("Domain"));
            let pair = set.split(';').next().unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            for (state, sent, is_fine) in [
                ("state", pair.to_owned(), true),
                ("state", format!("a=b; {pair}; c=d"), true),
                ("other", pair.to_owned(), false),
                ("state", format!("{name}={}", &value[1..]), false),
                ("state", format!("{name}="), false),
                ("state", cookie(!is_plain, "state").split(';').next().unwrap().to_owned(), false),
                ("state", String::new(), false),
            ] {
                let request = Request::builder().header("cookie", &sent).finish();
                assert_eq!(is_same_browser(is_plain, state, &request), is_fine, "{state}: {sent}");
            }
        }
    }
}
