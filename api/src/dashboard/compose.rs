//! Writing a post: first what each platform would make of it, then publishing.
//!
//! The form becomes the very body that the API takes, so that the preview and the creation are checked
//! like any other. It carries an idempotency key from its first page on: a second click publishes nothing.

use super::{
    fields::Fields,
    frame::{self, Fault, Frame, render},
    posts::Choice,
    visit::{Visit, done},
    words::{self, Done, Label},
};
use crate::{
    accounts,
    http::{
        body,
        problem::{Code, Issue, Problem, Segment},
    },
    media,
    posts::{
        self,
        create::{self, NewPost},
        validate::{self, Verdict},
    },
    types::enum_string::EnumString,
};
use askama::Template;
use domain::MediaStatus;
use platforms::check::Severity;
use poem::Response;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use store::posts::Created;
use uuid::Uuid;

/// Texts that a post has at most.
const MOST: usize = 10;
/// How many characters of each text a preview shows, for each account.
const SHOWN: usize = 3000;

#[derive(Template)]
#[template(path = "dashboard/compose.html")]
struct Compose {
    frame: Frame,
    sketch: Sketch,
    accounts: Vec<Account>,
    media: Vec<Choice>,
}

#[derive(Template)]
#[template(path = "dashboard/preview.html")]
struct Preview {
    frame: Frame,
    sketch: Sketch,
    cards: Vec<Card>,
    is_valid: bool,
}

/// What is filled in so far.
struct Sketch {
    accounts: Vec<String>,
    texts: Vec<String>,
    media: Vec<String>,
    scheduled_at: String,
    queue: String,
    is_draft: bool,
    settings: String,
    key: String,
}

/// An account that can be chosen.
struct Account {
    choice: Choice,
    label: Label,
    is_active: bool,
}

/// What a post would look like on an account.
struct Card {
    who: String,
    name: String,
    username: String,
    pieces: Vec<Piece>,
    remarks: Vec<Remark>,
}

struct Piece {
    text: String,
    media: Vec<String>,
    count: usize,
    max: usize,
    unit: &'static str,
    is_reply: bool,
}

struct Remark {
    is_error: bool,
    words: String,
}

/// Shows the form; with a post in the address, filled in like it.
pub(crate) async fn show(visit: &Visit<'_>) -> Result<Response, Problem> {
    let mut sketch = Sketch::of(&visit.query);
    if let Some(id) = visit.query.given("from") {
        let post = posts::find(&visit.call(), id).await?;
        let main = post.containers.first();
        sketch.media =
            main.into_iter().flat_map(|main| &main.media).map(|media| media.id.to_string()).collect();
        sketch.texts = post.containers.into_iter().map(|container| container.content).collect();
        if sketch.accounts.is_empty() {
            sketch.accounts = post.targets.iter().map(|target| target.account_id.to_string()).collect();
        }
        if post.default_config.as_object().is_some_and(|settings| !settings.is_empty()) {
            sketch.settings = format!("{:#}", post.default_config);
        }
    }
    draw(visit, sketch, None).await
}

/// Goes on with what is filled in: another text, the preview, back from it, or publishing.
pub(crate) async fn act(visit: &Visit<'_>) -> Result<Response, Problem> {
    let mut sketch = Sketch::of(&visit.form);
    match visit.form.get("action") {
        "more" => {
            if sketch.texts.len() < MOST {
                sketch.texts.push(String::new());
            }
            draw(visit, sketch, None).await
        }
        "edit" => draw(visit, sketch, None).await,
        "publish" => publish(visit, sketch).await,
        _ => look(visit, sketch).await,
    }
}

async fn draw(visit: &Visit<'_>, sketch: Sketch, fault: Option<Fault>) -> Result<Response, Problem> {
    let all = accounts::Filter { limit: Some(100), ..accounts::Filter::default() };
    let accounts = accounts::list(&visit.call(), all).await?.data;
    let page = Compose {
        frame: visit.faulty("New post", "/compose", fault),
        media: shelf(visit, &sketch).await?,
        accounts: accounts
            .into_iter()
            .map(|account| {
                let (id, status) = (account.id.to_string(), account.status.value());
                Account {
                    choice: Choice {
                        name: format!(
                            "{} on {}",
                            account.username,
                            words::platform(account.platform.as_str())
                        ),
                        is_chosen: sketch.accounts.contains(&id),
                        value: id,
                    },
                    label: words::account(status),
                    is_active: status == store::accounts::AccountStatus::Active,
                }
            })
            .collect(),
        sketch,
    };
    Ok(render(page.frame.status(), &page))
}

/// What can be shown with a post: the latest files, and those that were chosen before.
async fn shelf(visit: &Visit<'_>, sketch: &Sketch) -> Result<Vec<Choice>, Problem> {
    let call = visit.call();
    let latest =
        media::Filter { status: Some(EnumString::of(MediaStatus::Ready.as_str())), ..Default::default() };
    let mut files = media::list(&call, latest).await?.data;
    for id in &sketch.media {
        if !files.iter().any(|file| file.id.to_string() == *id) {
            files.push(media::get(&call, id).await?);
        }
    }
    let choice = |file: media::Media| {
        let value = file.id.to_string();
        let is_chosen = sketch.media.contains(&value);
        Choice { name: format!("{} ({})", file.filename, file.kind.as_str()), value, is_chosen }
    };
    Ok(files.into_iter().map(choice).collect())
}

async fn look(visit: &Visit<'_>, sketch: Sketch) -> Result<Response, Problem> {
    let checked = match sketch.body() {
        Ok(body) => validate::validate(&visit.call(), body).await,
        Err(problem) => Err(problem),
    };
    match checked {
        Ok(verdict) => shown(visit, sketch, verdict, None).await,
        Err(problem) => draw(visit, sketch, Some(Fault::of("form", problem))).await,
    }
}

async fn shown(
    visit: &Visit<'_>,
    sketch: Sketch,
    verdict: Verdict,
    fault: Option<Fault>,
) -> Result<Response, Problem> {
    let call = visit.call();
    let mut files = Vec::new();
    for choice in shelf(visit, &sketch).await? {
        files.extend(choice.is_chosen.then_some(choice.name));
    }
    let mut cards = Vec::new();
    // Counted once for all accounts of a platform.
    let mut counts = HashMap::new();
    for id in &sketch.accounts {
        let account = accounts::get(&call, id).await?;
        let platform = account.platform.as_str();
        let remarks = verdict.issues.iter().filter(|remark| remark.account == account.id).map(|remark| {
            let is_error = remark.severity.value() == Severity::Error;
            // It begins with the platform's identifier, as a program knows it.
            let words = remark.message.strip_prefix(platform);
            let words = words.map(|rest| format!("{}{rest}", words::platform(platform)));
            Remark {
                is_error,
                words: format!("{}{}", words.as_deref().unwrap_or(&remark.message), place(&remark.path)),
            }
        });
        let limit = platforms::get(platform).map(|adapter| &adapter.capabilities().text);
        let counts = counts.entry(platform.to_owned()).or_insert_with(|| {
            let count = |text: &String| match limit {
                Some(limit) => limit.measure(text).unwrap_or_else(|| text.chars().count()),
                None => 0,
            };
            sketch.filled().iter().map(count).collect::<Vec<_>>()
        });
        let pieces = sketch.filled().iter().zip(counts).enumerate().map(|(index, (text, count))| Piece {
            text: text
                .chars()
                .take(SHOWN)
                .chain((text.chars().nth(SHOWN).is_some()).then_some('…'))
                .collect(),
            media: if index == 0 { files.clone() } else { Vec::new() },
            count: *count,
            max: limit.map_or(0, |limit| limit.max),
            unit: limit.map_or("characters", |limit| limit.unit),
            is_reply: index > 0,
        });
        cards.push(Card {
            who: format!("{} on {}", account.username, words::platform(platform)),
            name: account.display_name.clone(),
            remarks: remarks.collect(),
            pieces: pieces.collect(),
            username: account.username,
        });
    }
    let page =
        Preview { frame: visit.faulty("Preview", "/compose", fault), sketch, cards, is_valid: verdict.valid };
    Ok(render(page.frame.status(), &page))
}

async fn publish(visit: &Visit<'_>, sketch: Sketch) -> Result<Response, Problem> {
    let created = match sketch.body() {
        Ok(body) => create::create(&visit.call(), body, None).await,
        Err(problem) => Err(problem),
    };
    match created {
        Ok(Created::New(post) | Created::Replay(post)) => {
            Ok(done(&format!("/posts/{}", post.id), Done::Created))
        }
        Err(problem) => draw(visit, sketch, Some(Fault::of("form", problem))).await,
    }
}

impl Sketch {
    fn of(fields: &Fields) -> Self {
        let owned = |name| fields.all(name).map(str::to_owned).collect::<Vec<_>>();
        let mut texts = owned("text");
        texts.truncate(MOST);
        if texts.is_empty() {
            texts.push(String::new());
        }
        let fresh = || format!("dashboard-{}", Uuid::new_v4());
        Self {
            accounts: each_once(owned("account")),
            // Browsers end the lines of a text as the standard of forms says, not as people write.
            texts: texts.into_iter().map(|text| text.replace("\r\n", "\n")).collect(),
            media: each_once(owned("media")),
            scheduled_at: fields.given("scheduled_at").unwrap_or_default().to_owned(),
            queue: fields.given("queue").unwrap_or_default().to_owned(),
            is_draft: fields.get("is_draft") == "true",
            settings: fields.given("settings").unwrap_or_default().to_owned(),
            key: fields.given("key").map_or_else(fresh, str::to_owned),
        }
    }

    /// The texts, without those at the end that were left empty.
    fn filled(&self) -> &[String] {
        let end = self.texts.iter().rposition(|text| !text.trim().is_empty()).map_or(1, |last| last + 1);
        &self.texts[..end]
    }

    /// The body that the API takes.
    fn body(&self) -> Result<NewPost, Problem> {
        let mut body = Map::new();
        match self.filled() {
            [text] if self.media.is_empty() => body.insert("content".to_owned(), json!(text)),
            texts => {
                let mut containers: Vec<_> = texts.iter().map(|text| json!({ "content": text })).collect();
                if let (Some(main), false) = (containers.first_mut(), self.media.is_empty()) {
                    main["media"] = self.media.iter().map(|id| json!({ "id": id })).collect();
                }
                body.insert("containers".to_owned(), json!(containers))
            }
        };
        if !self.queue.is_empty() {
            body.insert("queued_from_account".to_owned(), json!(self.queue));
        }
        body.insert("accounts".to_owned(), json!(self.accounts));
        body.insert("is_draft".to_owned(), json!(self.is_draft));
        body.insert("external_ref".to_owned(), json!(self.key));
        if !self.scheduled_at.is_empty() {
            // The field has no offset, and no seconds where they are zero; its label says that it is UTC.
            let seconds = if self.scheduled_at.len() == 16 { ":00" } else { "" };
            body.insert("scheduled_at".to_owned(), json!(format!("{}{seconds}Z", self.scheduled_at)));
        }
        if !self.settings.is_empty() {
            let settings = body::parse(self.settings.as_bytes()).map_err(|error| {
                let issue = Issue::custom(["settings"], format!("Is no valid JSON: {error}"));
                Problem::new(Code::InvalidRequest, "the settings can't be read").with_issues(vec![issue])
            })?;
            body.insert("config".to_owned(), settings);
        }
        body::read(Value::Object(body))
    }
}

fn each_once(ids: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    ids.into_iter().filter(|id| seen.insert(id.clone())).collect()
}

/// Where in a post an issue is; nothing where it is the whole, or its only text.
fn place(path: &[Segment]) -> String {
    let at = match path {
        [Segment::Key(list), Segment::Index(index), rest @ ..] if list == "containers" => {
            let part = part(&usize::try_from(*index).unwrap_or(usize::MAX));
            let rest = rest.strip_suffix(&["content".into()]).unwrap_or(rest);
            format!("{part} {}", frame::path(rest))
        }
        [Segment::Key(field)] if field == "content" => String::new(),
        _ => frame::path(path),
    };
    if at.is_empty() { at } else { format!(" ({})", at.trim_end()) }
}

/// What the text at a place of a post is.
fn part(index: &usize) -> &'static str {
    match index {
        0 => "Text",
        1 => "First comment",
        _ => "Thread",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issues_are_placed_as_people_name_the_parts_of_a_post() {
        for (path, words) in [
            (vec![], ""),
            (vec!["content".into()], ""),
            (vec!["containers".into(), 0.into(), "content".into()], " (Text)"),
            (vec!["containers".into(), 1.into(), "media".into(), 0.into()], " (First comment media 1)"),
            (vec!["config".into(), "x".into()], " (config x)"),
        ] {
            assert_eq!(place(&path), words);
        }
    }
}
