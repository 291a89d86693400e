//! Generates the tables of capabilities and settings in `platforms/README.md` from the adapters, so that both agree.

use crate::{
    Adapter, Auth, Content, Idempotency, Limits, MediaKind, MediaLimit, OAuth2, Publishing, Refresh, Replies,
};
use std::{fmt::Write, fs, path::Path, time::Duration};

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

fn cells(platform: &Adapter) -> [String; COLUMNS.len()] {
    let can = &platform.limits;
    [
        format!("[{}](src/{0}.rs)", platform.id),
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

#[test]
fn the_tables_of_platforms_are_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let mut drawn = page.clone();
    for (name, table) in tables() {
        let begin = format!("{}{name}{}", BEGIN.0, BEGIN.1);
        let (before, rest) = drawn.split_once(&begin).expect("the page marks where the table begins");
        let (_, after) = rest.split_once(END).expect("the page marks where the table ends");
        drawn = format!("{before}{begin}\n{table}\n{END}{after}");
    }
    if std::env::var_os("FANFARE_RECORD").is_some() {
        fs::write(&path, drawn).expect("the page can be written");
    } else {
        assert!(page == drawn, "platforms/README.md is out of date: run `just platforms`");
    }
}
