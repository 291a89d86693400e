//! Static files. Each is named after a hash of its content, so that browsers can cache it forever.

use crate::http::problem::Problem;
use poem::{Response, http::header};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const STYLE: &str = include_str!("../../templates/dashboard/style.css");
const SCRIPT: &str = include_str!("../../templates/dashboard/live.js");
const PASSKEYS: &str = include_str!("../../templates/dashboard/passkeys.js");
const KEYS: &str = include_str!("../../templates/dashboard/keys.js");
const ICONS: &str = include_str!("../../templates/dashboard/icons.svg");
const ICON: &str = include_str!("../../templates/dashboard/icon.svg");

/// Hashes of the files.
pub(crate) struct Versions {
    /// The style sheet.
    pub(crate) style: String,
    /// The script.
    pub(crate) script: String,
    /// The script of keyboard shortcuts and of the calendar.
    pub(crate) keys: String,
    /// The script of pages with passkeys.
    pub(crate) passkeys: String,
    /// Icons of platforms and pages, each a symbol.
    pub(crate) icons: String,
    /// The icon.
    pub(crate) icon: String,
}

static VERSIONS: LazyLock<Versions> = LazyLock::new(|| {
    let version = |text: &str| hex::encode(&Sha256::digest(text)[..6]);
    Versions {
        style: version(STYLE),
        script: version(SCRIPT),
        keys: version(KEYS),
        passkeys: version(PASSKEYS),
        icons: version(ICONS),
        icon: version(ICON),
    }
});

/// Hashes of the files.
pub(crate) fn versions() -> &'static Versions {
    &VERSIONS
}

/// Serves a file.
pub(crate) fn serve(name: &str) -> Result<Response, Problem> {
    let (version, kind) = name.split_once('.').unwrap_or_default();
    let versions = versions();
    let (known, content_type, text) = match kind {
        "css" => (&versions.style, "text/css; charset=utf-8", STYLE),
        "passkeys.js" => (&versions.passkeys, "text/javascript; charset=utf-8", PASSKEYS),
        "keys.js" => (&versions.keys, "text/javascript; charset=utf-8", KEYS),
        "js" => (&versions.script, "text/javascript; charset=utf-8", SCRIPT),
        "icons.svg" => (&versions.icons, "image/svg+xml", ICONS),
        "svg" => (&versions.icon, "image/svg+xml", ICON),
        _ => return Err(Problem::not_found("file")),
    };
    // During a deployment, a page of another version may request its own files.
    let keep = if version == known { "public, max-age=31536000, immutable" } else { "no-cache" };
    Ok(Response::builder()
        .content_type(content_type)
        .header(header::CACHE_CONTROL, keep)
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .body(text))
}
