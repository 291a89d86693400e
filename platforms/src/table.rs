//! Generates the tables of capabilities and settings in `platforms/README.md`, and the tables of limits in
//! `docs/platforms`, from the adapters, so that they agree.

use crate::{
    Adapter, Auth, Content, Counted, Idempotency, Limits, MediaKind, MediaLimit, Number, OAuth2, Publishing,
    Refresh, Replies, Window,
};
use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

/// Begins a generated table; the name of the table is in between.
const BEGIN: (&str, &str) = ("<!-- The table of ", " is generated: `just platforms`. -->\n");
/// Ends a generated table.
const END: &str = "<!-- The end of the table. -->\n";

const COLUMNS: [&str; 16] = [
    "Platform",
    "Text",
    "Needs",
    "Media in one post",
    "Kinds mixed",
    "Alt text",
    "Below it",
    "Publishing",
    "The same call twice",
    "Connected by",
    "Grant renewed",
    "Metrics",
    "History",
    "Deletion",
    "Editing",
    "Lists",
];

/// Returns the generated tables with their names.
fn tables() -> [(&'static str, String); 2] {
    [("capabilities", capabilities()), ("settings", settings())]
}

fn settings() -> String {
    let mut out = "| Platform | Settings |\n|---|---|\n".to_owned();
    for platform in crate::all() {
        let schema = (platform.settings)();
        let names = schema["properties"].as_object().into_iter().flat_map(|members| members.keys());
        let names = names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        writeln!(out, "| {} | {names} |", platform.id).expect("a string takes everything");
    }
    out
}

fn capabilities() -> String {
    let mut out = format!("| {} |\n|{}\n", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len()));
    for platform in crate::all() {
        writeln!(out, "| {} |", cells(platform).join(" | ")).expect("a string takes everything");
    }
    out
}

/// Returns the table of a platform's limits, for its operators, with the pages that name them.
fn limits(platform: &Adapter) -> String {
    let can = &platform.limits;
    let mut rows = Vec::new();
    let texts = match (text(can), platform.text_limit("premium")) {
        (usual, premium) if premium.max != can.text.max => {
            format!("{usual}; {} for accounts of type `premium`", premium.max)
        }
        (usual, _) => usual,
    };
    rows.push(("Text".to_owned(), texts));
    rows.extend(can.media.iter().map(|limit| (capital(limit.kind.as_str()), requirements(limit))));
    if let Some(alt_text) = &can.alt_text {
        let kinds = described(platform);
        rows.push(("Alt text".to_owned(), format!("{} characters: {kinds}", alt_text.max)));
    }
    rows.extend(can.numbers.iter().map(|number| (capital(number.of), most(number))));
    let replies = match can.replies {
        Replies::None => "no replies",
        Replies::FirstComment => "a first comment",
        Replies::Thread => "a thread",
    };
    let of_reply =
        can.comment.as_ref().map(|comment| format!(", {} {}", comment.text.max, comment.text.unit));
    rows.push(("Below a post".to_owned(), format!("{replies}{}", of_reply.unwrap_or_default())));
    for cap in platform.caps {
        let window = match cap.window {
            Window::Rolling(length) => format!("in {}", time(length)),
            Window::Day(zone) => format!("a day of {zone}"),
        };
        let counted = match cap.counts {
            Counted::Posts => "posts of an account".to_owned(),
            Counted::Replies => "replies of an account".to_owned(),
            Counted::All => "posts and replies of an account".to_owned(),
            Counted::PostsOfApp => "posts of all accounts of an app".to_owned(),
            Counted::PostsWith { setting, value } => {
                format!("posts of an account with the {setting} {value}")
            }
        };
        rows.push((format!("Limit `{}`", cap.name), format!("{} {counted} {window}", cap.limit)));
    }
    let mut out = "| | |\n|---|---|\n".to_owned();
    for (what, limit) in rows.into_iter().filter(|(_, limit)| !limit.is_empty()) {
        writeln!(out, "| {what} | {limit} |").expect("a string takes everything");
    }
    let sources: Vec<_> =
        can.sources.iter().map(|source| format!("<{}> ({})", source.url, source.checked)).collect();
    assert!(!sources.is_empty(), "{} names no page with its limits", platform.id);
    out + &format!("\nFrom, and last compared with: {}.\n", sources.join(", "))
}

/// Returns the number above which a post is refused, and the one above which it gets a warning.
fn most(number: &Number) -> String {
    let usual = number.usual.map(|usual| format!("a warning above {usual}"));
    number.max.map(|max| max.to_string()).into_iter().chain(usual).collect::<Vec<_>>().join("; ")
}

/// Returns everything that a medium must be.
fn requirements(limit: &MediaLimit) -> String {
    let (least, most) = (limit.count.start(), limit.count.end());
    let count = match (least, most) {
        (_, 1) => "1".to_owned(),
        (0 | 1, most) => format!("up to {most}"),
        (least, most) => format!("{least} to {most}"),
    };
    let mimes = limit.mimes.iter().map(|mime| format!("`{mime}`")).collect::<Vec<_>>().join(", ");
    let bytes = match limit.min_bytes {
        0 => size(limit.max_bytes),
        least => format!("{} to {}", size(least), size(limit.max_bytes)),
    };
    let mut all = vec![count, mimes, format!("{bytes} each")];
    all.extend(limit.duration.as_ref().map(|range| match range.start().as_secs() == 0 {
        true => format!("up to {}", time(*range.end())),
        false => format!("{} to {}", time(*range.start()), time(*range.end())),
    }));
    all.extend(limit.usual_duration.map(|usual| format!("a warning above {}", time(usual))));
    all.extend(limit.pixels.as_ref().map(|(long, short)| {
        let side = |range: &std::ops::RangeInclusive<u32>| match (range.start(), range.end()) {
            (least, &u32::MAX) => format!("at least {least}"),
            (0 | 1, most) => format!("at most {most}"),
            (least, most) => format!("{least} to {most}"),
        };
        format!("longer side {} pixels, shorter {}", side(long), side(short))
    }));
    all.extend(limit.max_width.map(|max| format!("at most {max} pixels wide")));
    all.extend(limit.max_frames.map(|max| format!("{max} frames")));
    all.extend(limit.max_frame_pixels.map(|max| format!("{max} pixels in all frames")));
    all.extend(
        limit
            .aspect_ratio
            .as_ref()
            .map(|ratio| format!("width by height {:.2} to {:.2}", ratio.start(), ratio.end())),
    );
    all.extend(limit.max_text.map(|max| format!("a text of {max} beside it")));
    all.join("; ")
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

fn cells(platform: &Adapter) -> [String; COLUMNS.len()] {
    let can = &platform.limits;
    [
        format!("[{}]({})", platform.id, source_path(platform)),
        text(can),
        match can.content {
            Content::TextOrMedia => "text or media",
            Content::Text => "text",
            Content::Media => "media",
        }
        .to_owned(),
        can.media.iter().map(medium).collect::<Vec<_>>().join(", "),
        yes(can.mixed_media),
        can.alt_text
            .as_ref()
            .map_or_else(String::new, |alt_text| format!("{}: {}", described(platform), alt_text.max)),
        match can.replies {
            Replies::None => "",
            Replies::FirstComment => "first comment",
            Replies::Thread => "thread",
        }
        .to_owned(),
        match can.publishing {
            Publishing::Immediate => "at once".to_owned(),
            Publishing::Asynchronous { window } => format!("within {}", time(window)),
        },
        match can.idempotency {
            Idempotency::Idempotent => "one post".to_owned(),
            Idempotency::MayDuplicate { read_lag } => format!("two; a look is sure after {}", time(read_lag)),
        },
        match &platform.auth {
            Auth::OAuth2(OAuth2 { pkce: true, .. }) => "OAuth 2.0, PKCE",
            Auth::OAuth2(_) => "OAuth 2.0",
            Auth::AppPassword { .. } => "app password",
        }
        .to_owned(),
        match platform.auth.refresh() {
            Refresh::Anytime => "at any time",
            Refresh::BeforeExpiry { .. } => "while it lives",
            Refresh::Never => "has no end",
        }
        .to_owned(),
        yes(platform.analytics.is_some()),
        yes(platform.history.is_some()),
        yes(platform.deletion.is_some()),
        editing(platform),
        platform.options.map_or_else(String::new, |options| options.kinds().join(", ")),
    ]
}

/// Returns the path of an adapter's source from the crate on: its one file, or the main one of its folder.
fn source_path(platform: &Adapter) -> String {
    let file = format!("src/{}.rs", platform.id);
    if Path::new(env!("CARGO_MANIFEST_DIR")).join(&file).is_file() {
        file
    } else {
        format!("src/{}/mod.rs", platform.id)
    }
}

fn editing(platform: &Adapter) -> String {
    platform
        .editing
        .map_or_else(|_| String::new(), |editing| [&["text"][..], editing.settings()].concat().join(", "))
}

fn text(can: &Limits) -> String {
    match (can.text.max, can.text.max_bytes) {
        (0, _) => String::new(),
        (max, None) => format!("{max} {}", can.text.unit),
        (max, Some(bytes)) => format!("{max} {}, {bytes} bytes", can.text.unit),
    }
}

fn medium(limit: &MediaLimit) -> String {
    let (least, most) = (limit.count.start(), limit.count.end());
    let count = if least == most || *least <= 1 { most.to_string() } else { format!("{least} to {most}") };
    let longest = limit.usual_duration.or(limit.duration.as_ref().map(|range| *range.end()));
    let length = longest.map_or_else(String::new, |longest| format!(", {}", time(longest)));
    format!("{count} {} ({}{length})", limit.kind, size(limit.max_bytes))
}

fn described(platform: &Adapter) -> String {
    let kinds = platform.limits.media.iter().map(|limit| limit.kind);
    let mut kinds: Vec<_> =
        kinds.filter(|kind| platform.limits.supports_alt_text(*kind)).map(MediaKind::as_str).collect();
    kinds.dedup();
    kinds.join(", ")
}

fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (1 << 30, "GiB"),
        (1_000_000_000, "GB"),
        (1 << 20, "MiB"),
        (1_000_000, "MB"),
        (1 << 10, "KiB"),
        (1000, "kB"),
    ];
    UNITS
        .iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit))
        .map_or_else(|| format!("{bytes} bytes"), |(unit, name)| format!("{} {name}", bytes / unit))
}

fn time(length: Duration) -> String {
    match length.as_secs() {
        0 => "0 s".to_owned(),
        secs if secs.is_multiple_of(3600) => format!("{} h", secs / 3600),
        secs if secs.is_multiple_of(60) => format!("{} min", secs / 60),
        secs => format!("{secs} s"),
    }
}

fn yes(holds: bool) -> String {
    if holds { "yes".to_owned() } else { String::new() }
}

/// Returns the pages with generated tables, each with the names of its tables.
fn pages() -> Vec<(PathBuf, Vec<(&'static str, String)>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of_platform = |platform: &&Adapter| {
        let page = root.join(format!("../docs/platforms/{}.md", platform.id));
        (page, vec![("limits", limits(platform))])
    };
    let overview = (root.join("README.md"), tables().to_vec());
    crate::all().iter().map(of_platform).chain([overview]).collect()
}

#[test]
fn the_tables_of_platforms_are_current() {
    for (path, tables) in pages() {
        let page = fs::read_to_string(&path).expect("the page is there");
        let mut drawn = page.clone();
        for (name, table) in tables {
            let begin = format!("{}{name}{}", BEGIN.0, BEGIN.1);
            let (before, rest) = drawn.split_once(&begin).expect("the page marks where the table begins");
            let (_, after) = rest.split_once(END).expect("the page marks where the table ends");
            drawn = format!("{before}{begin}\n{table}\n{END}{after}");
        }
        if std::env::var_os("FANFARE_RECORD").is_some() {
            fs::write(&path, drawn).expect("the page can be written");
        } else {
            assert!(page == drawn, "{} is out of date: run `just platforms`", path.display());
        }
    }
}
