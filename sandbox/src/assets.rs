//! Files of the pages: the style sheets and icons of `look/`, which the dashboard has as well, so that both look alike.

use poem::{
    IntoResponse, Response, handler,
    http::{StatusCode, header},
    web::Path,
};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// The style sheets of the dashboard, of posts as platforms show them, and of the sandbox.
pub(crate) const STYLE: &str = concat!(
    include_str!("../../look/style.css"),
    include_str!("../../look/platforms.css"),
    include_str!("../templates/sandbox.css"),
);
const ICONS: &str = include_str!("../../look/icons.svg");
const ICON: &str = include_str!("../../look/icon.svg");

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let hash = [STYLE, ICONS, ICON].iter().fold(Sha256::new(), |hash, file| hash.chain_update(file));
    hex::encode(&hash.finalize()[..6])
});

/// Returns a hash of the files, which is part of their addresses, so that browsers can cache them forever.
pub(crate) fn version() -> &'static str {
    &VERSION
}

/// Serves a file.
#[handler]
pub(super) fn serve(file: Path<String>) -> Response {
    let (content_type, text) = match file.as_str() {
        "style.css" => ("text/css; charset=utf-8", STYLE),
        "icons.svg" => ("image/svg+xml", ICONS),
        "icon.svg" => ("image/svg+xml", ICON),
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    Response::builder()
        .content_type(content_type)
        .header(header::CACHE_CONTROL, "public, max-age=31536000, immutable")
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .body(text)
}
