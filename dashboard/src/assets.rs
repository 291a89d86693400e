//! Static files. Each is named after a hash of its content, so that browsers can cache it forever.

use api::http::problem::Problem;
use poem::{Response, http::header};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const STYLE: &str = include_str!("../../look/style.css");
const SCRIPT: &str = include_str!("../templates/live.js");
const PASSKEYS: &str = include_str!("../templates/passkeys.js");
const PAGE: &str = include_str!("../templates/page.js");
const IDIOMORPH: &str = include_str!("../templates/vendor/idiomorph.min.js");
const CHARTS: &str = include_str!("../templates/charts.js");
const UPLOT: &str = include_str!("../templates/vendor/uplot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../templates/vendor/uplot.min.css");
const KEYS: &str = include_str!("../templates/keys.js");
const CALENDAR: &str = include_str!("../templates/calendar.js");
const UPLOAD: &str = include_str!("../templates/upload.js");
const COMPOSE: &str = include_str!("../templates/compose.js");
const PLATFORMS: &str = include_str!("../../look/platforms.css");
const ICONS: &str = include_str!("../../look/icons.svg");
const ICON: &str = include_str!("../../look/icon.svg");

/// Hashes of the files.
pub(crate) struct Versions {
    /// The style sheet.
    pub(crate) style: String,
    /// The script of pages that update themselves.
    pub(crate) script: String,
    /// The script of every page.
    pub(crate) page: String,
    /// The library that the script updates pages with.
    pub(crate) idiomorph: String,
    /// The script of keyboard shortcuts.
    pub(crate) keys: String,
    /// The script of the calendar.
    pub(crate) calendar: String,
    /// The script of pages with passkeys.
    pub(crate) passkeys: String,
    /// The script that draws charts.
    pub(crate) charts: String,
    /// The library that it draws them with.
    pub(crate) uplot: String,
    /// The style sheet of the library.
    pub(crate) uplot_style: String,
    /// The script of pages that take files.
    pub(crate) upload: String,
    /// The script of the form of a post.
    pub(crate) compose: String,
    /// The style sheet of previews.
    pub(crate) platforms: String,
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
        page: version(PAGE),
        idiomorph: version(IDIOMORPH),
        keys: version(KEYS),
        calendar: version(CALENDAR),
        passkeys: version(PASSKEYS),
        charts: version(CHARTS),
        uplot: version(UPLOT),
        uplot_style: version(UPLOT_STYLE),
        upload: version(UPLOAD),
        compose: version(COMPOSE),
        platforms: version(PLATFORMS),
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
        "page.js" => (&versions.page, "text/javascript; charset=utf-8", PAGE),
        "idiomorph.js" => (&versions.idiomorph, "text/javascript; charset=utf-8", IDIOMORPH),
        "charts.js" => (&versions.charts, "text/javascript; charset=utf-8", CHARTS),
        "uplot.js" => (&versions.uplot, "text/javascript; charset=utf-8", UPLOT),
        "uplot.css" => (&versions.uplot_style, "text/css; charset=utf-8", UPLOT_STYLE),
        "upload.js" => (&versions.upload, "text/javascript; charset=utf-8", UPLOAD),
        "compose.js" => (&versions.compose, "text/javascript; charset=utf-8", COMPOSE),
        "platforms.css" => (&versions.platforms, "text/css; charset=utf-8", PLATFORMS),
        "calendar.js" => (&versions.calendar, "text/javascript; charset=utf-8", CALENDAR),
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::{collections::BTreeSet, fs, path::Path};

    #[test]
    fn vendored_files_are_those_of_the_table() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/vendor");
        let table = fs::read_to_string(folder.join("README.md")).unwrap();
        let rows = table.lines().filter(|line| line.starts_with("| ")).skip(1);
        let mut listed = BTreeSet::from(["README.md".to_owned()]);
        for row in rows {
            let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
            let [file, package, version, license, sum] = cells[..] else { panic!("{row}") };
            assert!(package.contains("https://www.npmjs.com/package/") && !version.is_empty(), "{row}");
            assert_eq!(hex::encode(Sha256::digest(fs::read(folder.join(file)).unwrap())), sum, "{file}");
            let license = license.split('`').nth(1).unwrap_or_else(|| panic!("{row} names no license file"));
            assert!(!fs::read_to_string(folder.join(license)).unwrap().is_empty(), "{license}");
            listed.extend([file.to_owned(), license.to_owned()]);
        }
        let names =
            fs::read_dir(&folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.collect::<BTreeSet<_>>(), listed);
    }
}
