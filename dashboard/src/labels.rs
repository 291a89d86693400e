//! Human-readable names of statuses, error codes and times.

use crate::zone;
use askama::filters::HtmlSafe;
use chrono::{DateTime, TimeDelta, Utc};
use domain::{MediaStatus, PostStatus, TargetStatus, appearance};
use std::fmt;
use store::{accounts::AccountStatus, webhooks::deliveries::DeliveryStatus};

domain::string_enum! {
    /// The result of an action, as a query parameter.
    Done, "notice" {
        /// A retry was started.
        Retried = "retried",
        /// Targets were started over.
        Revived = "revived",
        /// A published post was deleted from its platform.
        Unpublished = "unpublished",
        /// A published post was changed on its platform.
        Edited = "edited",
        /// A part that is missing of a published post was changed.
        Rewritten = "rewritten",
        /// A post was canceled.
        Canceled = "canceled",
        /// A draft was released.
        Released = "released",
        /// A post was moved to another time.
        Rescheduled = "rescheduled",
        /// Metrics were read from the platforms.
        Measured = "measured",
        /// A post was created.
        Created = "created",
        /// An account was connected.
        Connected = "connected",
        /// An account was disconnected.
        Disconnected = "disconnected",
        /// A delivery was repeated.
        Redelivered = "redelivered",
        /// Deliveries of a time are repeated.
        Replayed = "replayed",
        /// The prepared signing secret is used.
        SecretRotated = "secret_rotated",
        /// An endpoint was paused.
        Paused = "paused",
        /// An endpoint was resumed.
        Resumed = "resumed",
        /// An endpoint was deleted.
        Deleted = "deleted",
        /// A key was revoked.
        Revoked = "revoked",
        /// A team member was removed.
        Removed = "removed",
        /// The role of a team member was changed.
        RoleChanged = "role_changed",
        /// A passkey was added.
        PasskeyAdded = "passkey_added",
        /// A passkey was removed.
        PasskeyRemoved = "passkey_removed",
        /// An identity was linked.
        IdentityLinked = "identity_linked",
        /// An identity was not linked: it belongs to another person.
        IdentityTaken = "identity_taken",
        /// An identity was not linked: there are too many.
        IdentityTooMany = "identity_too_many",
        /// An identity was not linked: the provider did not vouch for it.
        IdentityRefused = "identity_refused",
        /// An identity was unlinked.
        IdentityUnlinked = "identity_unlinked",
        /// The time zone of the pages was set.
        ZoneSet = "zone_set",
        /// Sessions were ended.
        SessionsEnded = "sessions_ended",
        /// A file is being fetched.
        Fetching = "fetching",
        /// Files were uploaded.
        Uploaded = "uploaded",
        /// The alt text of a file was changed.
        Described = "described",
        /// A file was deleted.
        Discarded = "discarded",
    }
}

impl Done {
    /// The notice to show.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Retried => "The next attempt starts now.",
            Self::Revived => "It starts over now. A post that may be live is looked up first.",
            Self::Unpublished => "The post was removed from the platform.",
            Self::Edited => "The post was changed on the platform.",
            Self::Rewritten => "The part is kept. Publish what is missing when it is right.",
            Self::Canceled => {
                "The post was deleted. Pending targets are canceled; published posts stay live."
            }
            Self::Released => "The draft was released.",
            Self::Rescheduled => "The post was moved.",
            Self::Measured => "The platforms were asked for the latest figures.",
            Self::Created => "The post was created.",
            Self::Connected => "The account is connected.",
            Self::Disconnected => "The account was disconnected.",
            Self::Redelivered => "The delivery was queued again.",
            Self::Replayed => "The deliveries were queued again, oldest first.",
            Self::SecretRotated => "Every delivery from now on is signed with the prepared secret.",
            Self::Paused => "Nothing is delivered to this endpoint until it is resumed.",
            Self::Resumed => "Events are delivered to this endpoint again.",
            Self::Deleted => "The endpoint was removed.",
            Self::Revoked => "The key was revoked.",
            Self::Removed => "The member was removed from the team.",
            Self::RoleChanged => "The role was changed. It applies from the member’s next request on.",
            Self::PasskeyAdded => "The passkey was added.",
            Self::PasskeyRemoved => "The passkey was removed. Delete it on your device as well.",
            Self::IdentityLinked => "Your identity at the provider signs you in from now on.",
            Self::IdentityTaken => {
                "Nothing was linked: this identity at the provider belongs to another person here."
            }
            Self::IdentityTooMany => "Nothing was linked: you have too many identities. Unlink one first.",
            Self::IdentityRefused => "Nothing was linked: the provider did not sign you in.",
            Self::IdentityUnlinked => "The identity at the provider does not sign you in any more.",
            Self::ZoneSet => "Times are shown and read in this zone from now on.",
            Self::SessionsEnded => "The sessions were ended.",
            Self::Fetching => "The file is being fetched. Check again in a moment.",
            Self::Uploaded => "The files were uploaded.",
            Self::Described => "The alt text was saved.",
            Self::Discarded => "The file was deleted.",
        }
    }
}

/// Severity of a label, shown by its color.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Success.
    Good,
    /// Neutral or in progress.
    Calm,
    /// Warning.
    Warn,
    /// Error.
    Bad,
}

/// A status label.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Label(Tone, &'static str);

impl Label {
    /// The label's text.
    pub(crate) fn name(self) -> &'static str {
        self.1
    }

    /// The class that the style sheet colors by severity.
    pub(crate) fn class(self) -> &'static str {
        match self.0 {
            Tone::Good => "good",
            Tone::Calm => "calm",
            Tone::Warn => "warn",
            Tone::Bad => "bad",
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<span class=\"label {}\">{}</span>", self.class(), self.1)
    }
}

// Consists only of constant text.
impl HtmlSafe for Label {}

/// Label of a post's status.
pub(crate) fn post(status: PostStatus) -> Label {
    match status {
        PostStatus::Draft => Label(Tone::Calm, "Draft"),
        PostStatus::Scheduled => Label(Tone::Calm, "Scheduled"),
        PostStatus::Queued => Label(Tone::Calm, "Queued"),
        PostStatus::Publishing => Label(Tone::Calm, "Publishing"),
        PostStatus::Published => Label(Tone::Good, "Published"),
        PostStatus::Partial => Label(Tone::Warn, "Partly published"),
        PostStatus::Failed => Label(Tone::Bad, "Failed"),
        PostStatus::Canceled => Label(Tone::Calm, "Canceled"),
    }
}

/// Label of a target's status.
pub(crate) fn target(status: TargetStatus) -> Label {
    match status {
        TargetStatus::Pending => Label(Tone::Calm, "Waiting"),
        TargetStatus::Queued => Label(Tone::Calm, "Queued"),
        TargetStatus::Published => Label(Tone::Good, "Published"),
        TargetStatus::Failed => Label(Tone::Warn, "Retrying"),
        TargetStatus::Dead => Label(Tone::Bad, "Failed"),
        TargetStatus::Canceled => Label(Tone::Calm, "Canceled"),
    }
}

/// Label of a target whose post was deleted from its platform.
pub(crate) fn unpublished() -> Label {
    Label(Tone::Calm, "Removed")
}

/// Label of an account's status.
pub(crate) fn account(status: AccountStatus) -> Label {
    match status {
        AccountStatus::Active => Label(Tone::Good, "Active"),
        AccountStatus::TokenExpired => Label(Tone::Bad, "Access expired"),
        AccountStatus::ReauthRequired => Label(Tone::Bad, "Access revoked"),
        AccountStatus::Disconnected => Label(Tone::Calm, "Disconnected"),
    }
}

/// Label of a media asset's status.
pub(crate) fn medium(status: MediaStatus) -> Label {
    match status {
        MediaStatus::PendingUpload => Label(Tone::Calm, "Waiting for upload"),
        MediaStatus::Uploaded => Label(Tone::Calm, "Processing"),
        MediaStatus::Ready => Label(Tone::Good, "Ready"),
        MediaStatus::Failed => Label(Tone::Bad, "Rejected"),
    }
}

/// The letter that stands for a name.
pub(crate) fn initial(name: &str) -> String {
    Some(appearance::initial(name)).filter(|letter| !letter.is_empty()).unwrap_or_else(|| "?".to_owned())
}

/// The name and kind of a file.
pub(crate) fn file(file: &store::media::Media) -> String {
    format!("{} ({})", file.filename, file.kind)
}

/// A file size with unit.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// A duration in milliseconds as minutes and seconds.
pub(crate) fn length(millis: u64) -> String {
    let seconds = millis.div_ceil(1_000);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Label of a delivery's status.
pub(crate) fn delivery(status: DeliveryStatus, attempts: i32) -> Label {
    match status {
        DeliveryStatus::Pending if attempts > 0 => Label(Tone::Warn, "Retrying"),
        DeliveryStatus::Pending => Label(Tone::Calm, "Waiting"),
        DeliveryStatus::Delivering => Label(Tone::Calm, "Delivering"),
        DeliveryStatus::Delivered => Label(Tone::Good, "Delivered"),
        DeliveryStatus::Failed => Label(Tone::Bad, "Failed"),
    }
}

/// Label of an active or paused endpoint.
pub(crate) fn activity(is_active: bool) -> Label {
    if is_active { Label(Tone::Good, "Active") } else { Label(Tone::Warn, "Paused") }
}

/// The label of a webhook endpoint.
pub(crate) fn endpoint(is_active: bool, is_failing: bool) -> Label {
    if is_active && is_failing { Label(Tone::Bad, "Failing") } else { activity(is_active) }
}

/// A time relative to now, with the absolute time as its title.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RelativeTime {
    at: DateTime<Utc>,
    now: DateTime<Utc>,
}

impl RelativeTime {
    pub(crate) fn of(at: DateTime<Utc>, now: DateTime<Utc>) -> Self {
        Self { at, now }
    }
}

impl fmt::Display for RelativeTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        time(f, self.at, &full(self.at), &distance(self.at - self.now))
    }
}

// Consists only of digits and constant text.
impl HtmlSafe for RelativeTime {}

/// Writes a time of a page.
fn time(f: &mut fmt::Formatter<'_>, at: DateTime<Utc>, title: &str, text: &str) -> fmt::Result {
    let iso = at.format("%Y-%m-%dT%H:%M:%SZ");
    write!(f, "<time datetime=\"{iso}\" title=\"{title}\">{text}</time>")
}

/// A time in UTC, as those of all zones hover it.
fn utc(at: DateTime<Utc>) -> String {
    at.format("%-d %b %Y, %H:%M:%S UTC").to_string()
}

/// A time in the zone of the page.
pub(crate) fn local(at: DateTime<Utc>) -> String {
    at.with_timezone(&zone::current()).format("%-d %b %Y, %H:%M:%S %Z").to_string()
}

/// A time in the zone of the page and in UTC.
fn full(at: DateTime<Utc>) -> String {
    let (local, utc) = (local(at), utc(at));
    if local == utc { utc } else { format!("{local} · {utc}") }
}

/// Formats a duration in words.
fn distance(delta: TimeDelta) -> String {
    let seconds = delta.num_seconds();
    let (count, unit) = match seconds.abs() {
        seconds @ 0..60 => (seconds, "second"),
        seconds @ 60..3_600 => (seconds / 60, "minute"),
        seconds @ 3_600..86_400 => (seconds / 3_600, "hour"),
        seconds => (seconds / 86_400, "day"),
    };
    let plural = if count == 1 { "" } else { "s" };
    match seconds {
        0 => "now".to_owned(),
        1.. => format!("in {count} {unit}{plural}"),
        _ => format!("{count} {unit}{plural} ago"),
    }
}

/// An absolute time in the zone of the page, with that in UTC as its title.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AbsoluteTime(pub(crate) DateTime<Utc>);

impl fmt::Display for AbsoluteTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        time(f, self.0, &utc(self.0), &local(self.0))
    }
}

// Consists only of digits and names of months and zones.
impl HtmlSafe for AbsoluteTime {}

/// An absolute time in a list: to the minute, with the whole time as its title.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortTime(pub(crate) DateTime<Utc>);

impl fmt::Display for ShortTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.with_timezone(&zone::current()).format("%-d %b %Y, %H:%M");
        time(f, self.0, &full(self.0), &text.to_string())
    }
}

// Consists only of digits and names of months.
impl HtmlSafe for ShortTime {}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn times_are_local_and_tell_utc() {
        let at: DateTime<Utc> = "2026-07-01T22:30:05Z".parse().unwrap();
        let request = |cookie: &str| poem::Request::builder().header("cookie", cookie).finish();
        let written = async || {
            let relative = RelativeTime::of(at, at - TimeDelta::hours(1));
            [AbsoluteTime(at).to_string(), ShortTime(at).to_string(), relative.to_string()]
        };
        let [absolute, short, relative] =
            zone::scope(&request("fanfare-zone=Europe/Berlin"), written()).await;
        let start = "<time datetime=\"2026-07-01T22:30:05Z\" title=";
        let utc = "1 Jul 2026, 22:30:05 UTC";
        assert_eq!(absolute, format!("{start}\"{utc}\">2 Jul 2026, 00:30:05 CEST</time>"));
        let both = format!("{start}\"2 Jul 2026, 00:30:05 CEST · {utc}\">");
        assert_eq!(short, format!("{both}2 Jul 2026, 00:30</time>"));
        assert_eq!(relative, format!("{both}in 1 hour</time>"));
        let [absolute, short, _] = zone::scope(&request(""), written()).await;
        assert_eq!(absolute, format!("{start}\"{utc}\">{utc}</time>"));
        assert_eq!(short, format!("{start}\"{utc}\">1 Jul 2026, 22:30</time>"));
    }

    #[test]
    fn times_are_told_as_one_says_them() {
        for (seconds, expected) in [
            (0, "now"),
            (1, "in 1 second"),
            (59, "in 59 seconds"),
            (-60, "1 minute ago"),
            (7_199, "in 1 hour"),
            (-172_800, "2 days ago"),
        ] {
            assert_eq!(distance(TimeDelta::seconds(seconds)), expected);
        }
    }
}
