//! Writing a post: a form, a preview per account, then publishing.
//!
//! The form is converted to the request body of the API, so that preview and creation are validated like any
//! other call. It carries an idempotency key from the start: a second click publishes nothing.

use super::{
    context::{PageContext, done},
    fields::Fields,
    labels::{self, AbsoluteTime, Done, Label},
    layout::{self, Layout, PageError, render},
    media::Thumb,
    posts::Choice,
    routes::Route,
    zone,
};
use crate::{
    accounts,
    http::{
        body,
        problem::{Code, Issue, Problem, Segment},
    },
    media,
    posts::{
        self, checks,
        create::{self, NewMedia, NewPost, NewText},
        validate::{self, Verdict},
    },
    types::{enum_string::EnumString, timestamp::Timestamp},
};
use askama::Template;
use chrono_tz::Tz;
use domain::{MediaStatus, scope::Scope};
use platforms::check::Severity;
use poem::Response;
use poem_openapi::types::ToJSON;
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use store::posts::Created;
use uuid::Uuid;

/// Maximum number of texts of a post.
const MAX_TEXTS: usize = 10;
/// Maximum length of each text in a preview, in characters.
const PREVIEW_LENGTH: usize = 3000;

#[derive(Template)]
#[template(path = "dashboard/post_form.html")]
struct PostFormPage {
    layout: Layout,
    form: PostForm,
    accounts: Vec<Account>,
    media: Vec<Choice>,
}

#[derive(Template)]
#[template(path = "dashboard/preview.html")]
struct Preview {
    layout: Layout,
    form: PostForm,
    cards: Vec<Card>,
    is_valid: bool,
}

/// Contents of the form.
struct PostForm {
    accounts: Vec<String>,
    texts: Vec<String>,
    media: Vec<String>,
    /// Local time, as the field has it.
    scheduled_at: String,
    /// Its zone.
    zone: Tz,
    queue: String,
    is_draft: bool,
    settings: String,
    key: String,
}

/// An account that can be selected.
struct Account {
    choice: Choice,
    label: Label,
    is_active: bool,
}

/// Preview of a post on an account.
struct Card {
    who: String,
    name: String,
    username: String,
    pieces: Vec<Piece>,
    /// When it goes out; none for at once, or the next open slot.
    scheduled: Option<AbsoluteTime>,
    issues: Vec<IssueView>,
}

struct Piece {
    text: String,
    media: Vec<Thumb>,
    count: usize,
    max: usize,
    unit: &'static str,
    is_reply: bool,
}

struct IssueView {
    is_error: bool,
    message: String,
}

/// Shows the form, prefilled from the post that the URL names.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    let mut form = PostForm::of(&context.query);
    if let Some(id) = context.query.given("from") {
        context.may(Scope::PostsRead)?;
        let post = posts::find(&context.call(), id).await?;
        let main = post.containers.first();
        form.media =
            main.into_iter().flat_map(|main| &main.media).map(|media| media.id.to_string()).collect();
        form.texts = post.containers.into_iter().map(|container| container.content).collect();
        if form.accounts.is_empty() {
            form.accounts = post.targets.iter().map(|target| target.account_id.to_string()).collect();
        }
        if post.default_config.as_object().is_some_and(|settings| !settings.is_empty()) {
            form.settings = format!("{:#}", post.default_config);
        }
    }
    show_form(context, form, None).await
}

/// Shows the form with what was written before the session ended.
pub(crate) async fn show_kept(context: &PageContext<'_>) -> Result<Response, Problem> {
    let page = Route::of(true, &["compose"]).expect("there is this page");
    for scope in page.needed() {
        context.may(scope)?;
    }
    show_form(context, PostForm::of(&context.form), None).await
}

/// Handles the form: adds a text, shows the preview, goes back to editing, or publishes.
pub(crate) async fn act(context: &PageContext<'_>) -> Result<Response, Problem> {
    let mut form = PostForm::of(&context.form);
    match context.form.get("action") {
        "more" => {
            if form.texts.len() < MAX_TEXTS {
                form.texts.push(String::new());
            }
            show_form(context, form, None).await
        }
        "edit" => show_form(context, form, None).await,
        "publish" => publish(context, form).await,
        _ => preview(context, form).await,
    }
}

async fn show_form(
    context: &PageContext<'_>,
    form: PostForm,
    error: Option<PageError>,
) -> Result<Response, Problem> {
    let all = accounts::Filter { limit: Some(100), ..accounts::Filter::default() };
    let accounts = accounts::list(&context.call(), all).await?.data;
    let page = PostFormPage {
        layout: context.layout_with_error("New post", "/compose", error),
        media: media_choices(context, &form).await?,
        accounts: accounts
            .into_iter()
            .map(|account| {
                let (id, status) = (account.id.to_string(), account.status.value());
                Account {
                    choice: Choice {
                        name: format!(
                            "{} on {}",
                            account.username,
                            platforms::display_name(account.platform.as_str())
                        ),
                        is_chosen: form.accounts.contains(&id),
                        value: id,
                    },
                    label: labels::account(status),
                    is_active: status == store::accounts::AccountStatus::Active,
                }
            })
            .collect(),
        form,
    };
    Ok(render(page.layout.status(), &page))
}

/// Media that can be selected: the latest files and those selected before.
async fn media_choices(context: &PageContext<'_>, form: &PostForm) -> Result<Vec<Choice>, Problem> {
    let call = context.call();
    let latest =
        media::Filter { status: Some(EnumString::of(MediaStatus::Ready.as_str())), ..Default::default() };
    let mut files = media::list(&call, latest).await?.data;
    for id in &form.media {
        if !files.iter().any(|file| file.asset.id.to_string() == *id) {
            files.push(media::get(&call, id, media::Wait::default()).await?);
        }
    }
    let choice = |media::Media { asset: file, .. }: media::Media| {
        let value = file.id.to_string();
        let is_chosen = form.media.contains(&value);
        Choice { name: format!("{} ({})", file.filename, file.kind.as_str()), value, is_chosen }
    };
    Ok(files.into_iter().map(choice).collect())
}

async fn preview(context: &PageContext<'_>, form: PostForm) -> Result<Response, Problem> {
    let checked = match form.body() {
        Ok(body) => validate::validate(&context.call(), body).await,
        Err(problem) => Err(problem),
    };
    match checked {
        Ok(verdict) => show_preview(context, form, verdict, None).await,
        Err(problem) => show_form(context, form, Some(PageError::of("form", problem))).await,
    }
}

async fn show_preview(
    context: &PageContext<'_>,
    form: PostForm,
    verdict: Verdict,
    error: Option<PageError>,
) -> Result<Response, Problem> {
    let call = context.call();
    let own = form.containers();
    let contained = own.iter().chain(verdict.variants.iter().flat_map(|variant| &variant.containers));
    let ids = contained.flat_map(|text| &text.media).filter_map(|media| media.id.as_ref()?.parse().ok());
    let files = checks::find_media(&call, &ids.collect::<Vec<_>>()).await?;
    let file = |media: &NewMedia| {
        let id = media.id.as_ref().and_then(|id| id.parse().ok());
        match (&media.url, id.and_then(|id: Uuid| files.get(&id))) {
            (Some(url), _) => Thumb::named(&url.text),
            (None, Some(file)) => Thumb::of(file, media.alt_text.as_deref()),
            (None, None) => Thumb::named("A deleted file"),
        }
    };
    let mut cards = Vec::new();
    // Each text is counted once per platform.
    let mut counts = HashMap::new();
    for id in &form.accounts {
        let account = accounts::get(&call, id).await?;
        let platform = account.platform.as_str();
        let issues = verdict.issues.iter().filter(|issue| issue.account == account.id).map(|issue| {
            let is_error = issue.severity.value() == Severity::Error;
            // The message begins with the platform's id, which is replaced by its name.
            let message = issue.message.strip_prefix(platform);
            let message = message.map(|rest| format!("{}{rest}", platforms::display_name(platform)));
            IssueView {
                is_error,
                message: format!("{}{}", message.as_deref().unwrap_or(&issue.message), place(&issue.path)),
            }
        });
        let limit = platforms::get(platform).map(|adapter| adapter.text_limit(&account.account_type));
        let target = verdict.targets.iter().find(|target| target.accounts.contains(&account.id));
        let number = target.map_or(0, |target| target.variant);
        let variant = verdict.variants.iter().find(|variant| variant.variant == number);
        let texts = variant.map_or(&own[..], |variant| &variant.containers);
        let counts = counts.entry((platform.to_owned(), number)).or_insert_with(|| {
            let count = |text: &NewText| match limit {
                Some(limit) => limit.measure(&text.content).unwrap_or_else(|| text.content.chars().count()),
                None => 0,
            };
            texts.iter().map(count).collect::<Vec<_>>()
        });
        let pieces = texts.iter().zip(counts).enumerate().map(|(index, (text, count))| Piece {
            text: text
                .content
                .chars()
                .take(PREVIEW_LENGTH)
                .chain((text.content.chars().nth(PREVIEW_LENGTH).is_some()).then_some('…'))
                .collect(),
            media: text.media.iter().map(file).collect(),
            count: *count,
            max: limit.map_or(0, |limit| limit.max),
            unit: limit.map_or("characters", |limit| limit.unit),
            is_reply: index > 0,
        });
        let at = target.and_then(|target| target.scheduled_at);
        cards.push(Card {
            who: format!("{} on {}", account.username, platforms::display_name(platform)),
            name: account.display_name.clone(),
            issues: issues.collect(),
            pieces: pieces.collect(),
            scheduled: at.map(|Timestamp(at)| AbsoluteTime(at)),
            username: account.username,
        });
    }
    let page = Preview {
        layout: context.layout_with_error("Preview", "/compose", error),
        form,
        cards,
        is_valid: verdict.valid,
    };
    Ok(render(page.layout.status(), &page))
}

async fn publish(context: &PageContext<'_>, form: PostForm) -> Result<Response, Problem> {
    let created = match form.body() {
        Ok(body) => create::create(&context.call(), body, None).await,
        Err(problem) => Err(problem),
    };
    match created {
        Ok(Created::New(post) | Created::Replay(post)) => {
            Ok(done(&format!("/posts/{}", post.id), Done::Created))
        }
        Err(problem) => show_form(context, form, Some(PageError::of("form", problem))).await,
    }
}

impl PostForm {
    fn of(fields: &Fields) -> Self {
        let owned = |name| fields.all(name).map(str::to_owned).collect::<Vec<_>>();
        let mut texts = owned("text");
        texts.truncate(MAX_TEXTS);
        if texts.is_empty() {
            texts.push(String::new());
        }
        let fresh = || format!("dashboard-{}", Uuid::new_v4());
        Self {
            accounts: each_once(owned("account")),
            // Browsers submit line breaks as CRLF.
            texts: texts.into_iter().map(|text| text.replace("\r\n", "\n")).collect(),
            media: each_once(owned("media")),
            scheduled_at: fields.given("scheduled_at").unwrap_or_default().to_owned(),
            zone: fields.get("zone").parse().unwrap_or_else(|_| zone::current()),
            queue: fields.given("queue").unwrap_or_default().to_owned(),
            is_draft: fields.get("is_draft") == "true",
            settings: fields.given("settings").unwrap_or_default().to_owned(),
            key: fields.given("key").map_or_else(fresh, str::to_owned),
        }
    }

    /// The texts, without empty ones at the end.
    fn filled(&self) -> &[String] {
        let end = self.texts.iter().rposition(|text| !text.trim().is_empty()).map_or(1, |last| last + 1);
        &self.texts[..end]
    }

    /// The main post, which has the media, and the replies.
    fn containers(&self) -> Vec<NewText> {
        let media = self.media.iter().map(|id| NewMedia { id: Some(id.clone()), url: None, alt_text: None });
        let mut media = Some(media.collect());
        let text =
            |content: &String| NewText { content: content.clone(), media: media.take().unwrap_or_default() };
        self.filled().iter().map(text).collect()
    }

    /// Converts the form to a request body.
    fn body(&self) -> Result<NewPost, Problem> {
        let mut body = Map::new();
        match self.filled() {
            [text] if self.media.is_empty() => body.insert("content".to_owned(), json!(text)),
            _ => body.insert("containers".to_owned(), self.containers().to_json().unwrap_or_default()),
        };
        if !self.queue.is_empty() {
            body.insert("queued_from_account".to_owned(), json!(self.queue));
            // The slots are local times, like all others of the page.
            body.insert("queue_timezone".to_owned(), json!(self.zone.name()));
        }
        body.insert("accounts".to_owned(), json!(self.accounts));
        body.insert("is_draft".to_owned(), json!(self.is_draft));
        body.insert("external_ref".to_owned(), json!(self.key));
        if !self.scheduled_at.is_empty() {
            let at = zone::read(&self.scheduled_at, self.zone)?;
            body.insert("scheduled_at".to_owned(), json!(domain::event::timestamp(at)));
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

/// The place of an issue in a post; empty for the whole post or its only text.
fn place(path: &[Segment]) -> String {
    let at = match path {
        [Segment::Key(list), Segment::Index(index), rest @ ..] if list == "containers" => {
            let part = part(&usize::try_from(*index).unwrap_or(usize::MAX));
            let rest = rest.strip_suffix(&["content".into()]).unwrap_or(rest);
            format!("{part} {}", layout::path(rest))
        }
        [Segment::Key(field)] if field == "content" => String::new(),
        _ => layout::path(path),
    };
    if at.is_empty() { at } else { format!(" ({})", at.trim_end()) }
}

/// Label of the text at a position.
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
        for (path, message) in [
            (vec![], ""),
            (vec!["content".into()], ""),
            (vec!["containers".into(), 0.into(), "content".into()], " (Text)"),
            (vec!["containers".into(), 1.into(), "media".into(), 0.into()], " (First comment media 1)"),
            (vec!["config".into(), "x".into()], " (config x)"),
        ] {
            assert_eq!(place(&path), message);
        }
    }
}
