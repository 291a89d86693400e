//! Crossposts: of an existing post as the post itself, and of the published post to further subreddits.
//! <https://praw.readthedocs.io/en/stable/code_overview/models/submission.html#praw.models.Submission.crosspost>
//!
//! Reddit takes the same crosspost as often as it is sent (<https://github.com/praw-dev/praw/issues/1023>). So each one to a
//! further subreddit is noted in the checkpoint before its call, and never sent again unless its answer says that nothing
//! was published. One without an answer is searched for in the list of the author's posts, which names what each
//! crossposts. Whether or not they succeed, the post is live, and its owner is told.

use super::{
    API, SITE, Settings, Step,
    content::{PostKind, title_and_text},
    ids::{fullname, named_post, short_path},
    named,
    posts::{Published, Thing, thing},
    rules, same,
    subreddit::{own, place},
    unreadable,
};
use crate::{
    Call, Found, Located, PublishRequest, Reply, Result, Session,
    listing::{self, Search},
    look_up::{self, Findings, Subject},
    required,
};
use chrono::{DateTime, TimeDelta, Utc};
use domain::ErrorCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Maximum number of further subreddits of a post; Reddit documents none.
pub(super) const MAX_SUBREDDITS: usize = 10;
/// Time limit of all crossposts together, after which those that are left are not made. Shorter than the window of the
/// post.
const TIMEOUT: TimeDelta = TimeDelta::minutes(20);
/// Time limit of the search for a crosspost without an answer: its call has ended, and the lists show it.
const SEARCH_TIMEOUT: TimeDelta = TimeDelta::minutes(2);
/// Pause before the next step where Reddit names none.
const PAUSE: Duration = Duration::from_secs(10);

/// A crosspost of the published post whose call was begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Crosspost {
    subreddit: String,
    begun_at: DateTime<Utc>,
    /// True when its result is known, or given up, and told.
    is_done: bool,
}

impl Crosspost {
    fn is_to(&self, subreddit: &str) -> bool {
        self.subreddit.eq_ignore_ascii_case(subreddit)
    }
}

impl Settings {
    /// Returns the further subreddits, each once.
    pub(super) fn crosspost_to(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for name in self.crosspost_to.iter().flatten().map(|name| place(name)) {
            if !names.iter().any(|other| other.eq_ignore_ascii_case(&name)) {
                names.push(name);
            }
        }
        names
    }
}

/// Returns the settings of crossposts that Reddit would refuse, by their path, with the reason.
pub(super) fn objections(settings: &Settings) -> Vec<(Vec<Value>, String)> {
    let mut found = Vec::new();
    if settings.crosspost.as_deref().is_some_and(|written| named_post(written).is_none()) {
        let message =
            "takes crosspost as the id or the URL of a post on Reddit, and not as a link to share it";
        found.push((vec!["crosspost".into()], message.to_owned()));
    }
    let own = settings.subreddit.as_deref().map(place);
    let names: Vec<_> = settings.crosspost_to.iter().flatten().map(|name| place(name)).collect();
    for (index, name) in names.iter().enumerate() {
        let is_name = |other: &String| other.eq_ignore_ascii_case(name);
        let message = if names[..index].iter().any(is_name) {
            format!("takes r/{name} once in crosspost_to")
        } else if own.as_ref().is_some_and(is_name) {
            format!("takes no crosspost to r/{name}, where the post itself is")
        } else {
            continue;
        };
        found.push((vec!["crosspost_to".into(), index.into()], message));
    }
    found
}

/// Asks whether the post that is to be crossposted exists, and whether the further subreddits take crossposts.
pub(super) async fn look_up(
    cx: &Session<'_>,
    subject: &Subject,
    settings: &Settings,
    found: &mut Findings,
) -> Result<()> {
    let main = settings.subreddit(cx);
    if let Some(id) = settings.crosspost.as_deref().and_then(named_post) {
        let (code, message) = match look_up::found(thing(cx, &id).await)? {
            None => (look_up::NOT_FOUND, format!("shows the account no post {id}")),
            Some(post) if post.is_crosspostable == Some(false) => {
                (look_up::NOT_ALLOWED, format!("does not let the account crosspost {id}"))
            }
            Some(post) if post.is_in(&main) => {
                (look_up::NOT_ALLOWED, format!("takes no crosspost of {id} to r/{main}, where it is"))
            }
            Some(_) => ("", String::new()),
        };
        if !code.is_empty() {
            found.error(code, "crosspost", &message);
        }
    }
    let kind = subject.media.as_deref().and_then(|media| PostKind::of(media, &subject.text, settings).ok());
    for name in settings.crosspost_to() {
        for (code, message) in objections_of(cx, &name, &main, kind.as_ref()).await? {
            // The post itself is published.
            found.warning(code, "crosspost_to", &message);
        }
    }
    Ok(())
}

/// Asks for the reasons for which a further subreddit would refuse a crosspost of a post of this kind.
async fn objections_of(
    cx: &Session<'_>,
    name: &str,
    main: &str,
    kind: Option<&PostKind>,
) -> Result<Vec<(&'static str, String)>> {
    if name.eq_ignore_ascii_case(main) {
        let message = format!("takes no crosspost to r/{name}, where the post itself is");
        return Ok(vec![(look_up::NOT_ALLOWED, message)]);
    }
    // A profile has no rules but Reddit's own.
    if name.eq_ignore_ascii_case(&own(cx)) {
        return Ok(Vec::new());
    }
    let about = match rules::about(cx, name).await? {
        Ok(about) => about,
        Err(objection) => return Ok(vec![objection]),
    };
    let mut found = Vec::new();
    let closed_to = kind.and_then(|kind| rules::closed_to(&about, kind));
    if let Some(what) = rules::closed_to_crossposts(&about).or(closed_to) {
        found.push((look_up::NOT_ALLOWED, format!("says that r/{name} takes no {what}")));
    }
    if rules::needs_flair(cx, name).await? {
        let message = format!("takes a post to r/{name} only with a flair, and a crosspost there has none");
        found.push((look_up::NOT_ALLOWED, message));
    }
    Ok(found)
}

/// Makes the crossposts of a live post. Returns what was located, or the time until the next step.
pub(super) async fn follow(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    mut step: Step,
    located: Located,
) -> Result<Located> {
    let names = settings.crosspost_to();
    let Located::Live(found) = &located else { return Ok(located) };
    if names.is_empty() {
        return Ok(located);
    }
    let id = match found {
        Found::Certain(id) if !post.is_restored => id.clone(),
        // It may be another post with the same words, or the crossposts were made before.
        _ => {
            let all = names.iter().map(|name| format!("r/{name}")).collect::<Vec<_>>().join(", ");
            let message = format!(
                "The post is live, and is not crossposted to {all}: the answer to its publication was lost, and it was \
                 found by its words"
            );
            cx.note(&message).await?;
            return Ok(located);
        }
    };
    if step.post.is_none() {
        step.post = Some(id.clone());
        cx.save(&step).await?;
    }
    let mut rest: Option<Duration> = None;
    for name in &names {
        let known = step.crossposts.iter().find(|known| known.is_to(name)).cloned();
        let pause = match known {
            Some(known) if known.is_done => None,
            Some(begun) => search(cx, post, settings, &mut step, &id, begun).await?,
            None => send(cx, post, settings, &mut step, &id, name).await?,
        };
        rest = pause.map_or(rest, |pause| Some(rest.map_or(pause, |rest| rest.min(pause))));
    }
    Ok(rest.map_or(located, |poll_after| Located::Processing { poll_after }))
}

/// Crossposts to one subreddit. Returns the pause before the next step, if its result is not final.
async fn send(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    step: &mut Step,
    id: &str,
    name: &str,
) -> Result<Option<Duration>> {
    let left = TIMEOUT - ((cx.now)() - post.begun());
    let without = |why: &str| format!("The post is live without its crosspost to r/{name}: {why}");
    let refused = if left < TimeDelta::zero() {
        Some("the time for its crossposts was over")
    } else if !cx.may_publish().await? {
        Some("nothing more may be published for it")
    } else {
        None
    };
    step.crossposts.push(Crosspost { subreddit: name.to_owned(), begun_at: (cx.now)(), is_done: false });
    if let Some(why) = refused {
        return conclude(cx, step, name, &without(why)).await;
    }
    cx.save(step).await?;
    let parent = step.parents.first().map_or(id, String::as_str);
    let (title, _) = title_and_text(&post.text, &post.media, settings);
    // From here until the answer the crosspost may be live.
    let answer = call(cx, settings, name, title, parent).reply().await.and_then(|reply| address(cx, &reply));
    let failure = match answer {
        Ok(address) => {
            return conclude(cx, step, name, &format!("Crossposted to r/{name}: {address}")).await;
        }
        Err(failure) => failure,
    };
    let is_token = failure.code == ErrorCode::TokenExpired && !failure.is_revoked();
    let wait = failure.retry_after.unwrap_or(PAUSE);
    let is_too_long = TimeDelta::from_std(wait).map_or(true, |wait| wait > left);
    if !is_token && (failure.code.is_permanent() || failure.is_revoked()) {
        return conclude(cx, step, name, &without(&failure.message)).await;
    }
    if failure.is_ambiguous() {
        return Ok(Some(PAUSE));
    }
    if is_too_long && !is_token {
        return conclude(cx, step, name, &without(&failure.message)).await;
    }
    // Nothing was published.
    step.crossposts.retain(|known| !known.is_to(name));
    cx.save(step).await?;
    if is_token { Err(failure) } else { Ok(Some(wait)) }
}

/// Searches for a crosspost whose answer was lost.
async fn search(
    cx: &Session<'_>,
    post: &PublishRequest,
    settings: &Settings,
    step: &mut Step,
    id: &str,
    begun: Crosspost,
) -> Result<Option<Duration>> {
    let (title, _) = title_and_text(&post.text, &post.media, settings);
    let (name, parents) = (begun.subreddit.as_str(), step.parents_of(id));
    let is_ours =
        |thing: &Thing| thing.is_in(name) && thing.is_crosspost_of(&parents) && same(&thing.title, &title);
    let message = match listing::find(&Published { cx, list: "submitted", is_ours }, post).await {
        Ok(Search::Post(found)) => format!("Crossposted to r/{name}: {}", found.address(cx)),
        // A refused token is exchanged.
        Err(failure) if failure.code == ErrorCode::TokenExpired && !failure.is_revoked() => {
            return Err(failure);
        }
        _ if (cx.now)() - begun.begun_at < SEARCH_TIMEOUT => return Ok(Some(PAUSE)),
        _ => format!(
            "The post is live. No answer came to its crosspost to r/{name}, and the account's posts do not show it: it \
             may be live, and is not sent again"
        ),
    };
    conclude(cx, step, name, &message).await
}

/// Tells the owner of the result of a crosspost, which is final then.
async fn conclude(cx: &Session<'_>, step: &mut Step, name: &str, message: &str) -> Result<Option<Duration>> {
    cx.note(message).await?;
    if let Some(known) = step.crossposts.iter_mut().find(|known| known.is_to(name)) {
        known.is_done = true;
    }
    cx.save(step).await?;
    Ok(None)
}

/// Returns the call that crossposts a post.
fn call(cx: &Session<'_>, settings: &Settings, name: &str, title: String, parent: &str) -> Call {
    named(cx, cx.post(format!("{API}/api/submit"))).form(&form(settings, name.to_owned(), title, parent))
}

/// Returns the fields of a crosspost: it has no text of its own.
pub(super) fn form(
    settings: &Settings,
    name: String,
    title: String,
    parent: &str,
) -> Vec<(&'static str, String)> {
    let mut form = vec![
        ("api_type", "json".to_owned()),
        ("kind", "crosspost".to_owned()),
        ("sr", name),
        ("title", title),
        ("crosspost_fullname", parent.to_owned()),
    ];
    let flags = settings.flags().into_iter().filter(|(flag, _)| *flag != "resubmit");
    form.extend(flags.map(|(flag, value)| (flag, value.to_string())));
    form
}

/// Returns the address of a new crosspost.
fn address(cx: &Session<'_>, reply: &Reply) -> Result<String> {
    let data = &reply.body["json"]["data"];
    let id = data["name"].as_str().or(data["id"].as_str()).filter(|id| required::is_id(id));
    let id = id.ok_or_else(unreadable)?;
    Ok(match data["url"].as_str() {
        Some(url) => cx.transport.rewrite_url(url),
        None => cx.transport.rewrite_url(&format!("{}{}", SITE, short_path(&fullname("t3", id)))),
    })
}
