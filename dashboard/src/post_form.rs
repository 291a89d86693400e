//! Writing a post: a form, a preview per account, then publishing.
//!
//! The form is converted to the request body of the API, so that preview and creation are validated like any
//! other call. It carries an idempotency key from the start: a second click publishes nothing.

use crate::{
    choice::{self, Choice},
    context::{PageContext, done},
    fields::Fields,
    labels::{self, AbsoluteTime, Done, Label},
    layout::{self, Layout, PageError, render, render_uploading, sentence},
    media::{ChosenFile, Thumb},
    mock::Mock,
    settings_form::{self, Input, Section},
    zone,
};
use api::{
    accounts,
    http::{
        body,
        headers::Header,
        problem::{Code, Issue, Problem, Segment},
    },
    media,
    posts::{
        self,
        body::{NewMedia, NewText},
        content, create,
        validate::{self, Proposal, Verdict},
    },
    types::{enum_string::EnumString, timestamp::Timestamp},
};
use askama::Template;
use chrono_tz::Tz;
use domain::{MediaStatus, scope::Scope};
use platforms::{Adapter, check::Severity, look_up};
use poem::{Response, http::StatusCode};
use serde_json::{Map, Value, json};
use std::{
    collections::{HashMap, HashSet},
    mem,
};
use store::posts::{Attachment, Created};
use uuid::Uuid;

/// Maximum number of texts of a post.
const MAX_TEXTS: usize = 10;
/// Number of the latest files that are offered.
const LIBRARY: i64 = 24;
/// Maximum length of each text in a preview, in characters.
const PREVIEW_LENGTH: usize = 3000;
/// Maximum number of accounts in a preview. Those for which something was found come first.
const MAX_CARDS: usize = 30;

#[derive(Template)]
#[template(path = "post_form.html")]
struct PostFormPage {
    layout: Layout,
    form: PostForm,
    accounts: Vec<Account>,
    platforms: Vec<Platform>,
    chosen: Vec<ChosenFile>,
    library: Vec<LibraryFile>,
    errors: FieldErrors,
    /// Tells organizations and modes apart, in the copy that the script keeps.
    who: String,
}

#[derive(Template)]
#[template(path = "preview.html")]
struct Preview {
    layout: Layout,
    form: PostForm,
    cards: Vec<Card>,
    /// Number of accounts that it does not show.
    others: usize,
    is_valid: bool,
}

/// The preview beside the form, which its script renews.
#[derive(Template)]
#[template(path = "preview_live.html")]
struct LivePreview {
    layout: Layout,
    cards: Vec<Card>,
    /// Number of accounts that it does not show.
    others: usize,
    is_valid: bool,
    /// Problems with the input.
    hints: Vec<String>,
}

/// Contents of the form.
#[derive(Clone)]
struct PostForm {
    accounts: Vec<String>,
    texts: Vec<String>,
    media: Vec<MediaField>,
    /// Local time, as the field has it.
    scheduled_at: String,
    /// Its zone.
    zone: Tz,
    queue: String,
    is_draft: bool,
    settings: String,
    key: String,
    /// Texts of single platforms and settings, by the names of their fields.
    own: Fields,
}

/// A file of the post.
#[derive(Clone)]
pub(super) struct MediaField {
    pub(super) id: String,
    /// Alt text of this post; empty for the file's own.
    pub(super) alt: String,
    /// Platforms that don't get it.
    without: Vec<String>,
}

impl MediaField {
    /// The file of a post that is stored.
    pub(super) fn attached(file: &Attachment) -> Self {
        let alt = file.alt_text.clone().unwrap_or_default();
        Self { id: file.id.to_string(), alt, without: Vec::new() }
    }

    /// The files of a form.
    pub(super) fn all(fields: &Fields) -> Vec<Self> {
        let owned = |name: &str| fields.all(name).map(str::to_owned).collect::<Vec<_>>();
        let all = each_once(owned("media")).into_iter().map(|id| Self {
            alt: fields.given(&format!("alt-{id}")).unwrap_or_default().to_owned(),
            without: owned(&format!("without-{id}")),
            id,
        });
        all.collect()
    }

    /// The file, as a request body has it.
    fn wish(&self) -> Value {
        match self.alt.as_str() {
            "" => json!({ "id": self.id }),
            alt => json!({ "id": self.id, "alt_text": alt }),
        }
    }
}

/// Moves or removes a file, if that is the action of the form. Returns false for another action.
pub(super) fn arrange(media: &mut Vec<MediaField>, action: &str) -> bool {
    let Some((verb, id)) = action.split_once(':') else { return false };
    let at = media.iter().position(|file| file.id == id);
    match (verb, at) {
        ("earlier", Some(index @ 1..)) => media.swap(index, index - 1),
        ("later", Some(index)) if index + 1 < media.len() => media.swap(index, index + 1),
        ("remove", Some(index)) => drop(media.remove(index)),
        ("earlier" | "later" | "remove", _) => {}
        _ => return false,
    }
    true
}

/// An account that can be selected.
struct Account {
    choice: Choice,
    platform: String,
    label: Label,
    is_active: bool,
}

/// A platform of one of the accounts: its own text and settings.
struct Platform {
    id: &'static str,
    name: &'static str,
    /// Its own text; empty for the post's.
    text: String,
    section: Section,
    /// True if anything is its own.
    is_open: bool,
}

/// A file that can be added.
pub(super) struct LibraryFile {
    pub(super) id: String,
    pub(super) thumb: Thumb,
}

/// The files of a form.
pub(super) struct Files {
    /// Those that are chosen.
    pub(super) chosen: Vec<ChosenFile>,
    /// The latest others.
    pub(super) library: Vec<LibraryFile>,
    /// True if a file that was chosen has been deleted.
    pub(super) has_lost: bool,
}

/// Preview of a post on an account.
struct Card {
    who: String,
    platform: String,
    pieces: Vec<Piece>,
    /// When it goes out; none for at once, or the next open slot.
    scheduled: Option<AbsoluteTime>,
    issues: Vec<IssueView>,
}

struct Piece {
    mock: Mock,
    count: usize,
    max: usize,
    unit: &'static str,
}

struct IssueView {
    is_error: bool,
    /// True if the platform was asked for it.
    is_looked_up: bool,
    message: String,
}

/// Errors of a form, by the names of the fields that they concern.
#[derive(Default)]
pub(super) struct FieldErrors(HashMap<String, Vec<String>>);

impl FieldErrors {
    /// Takes the errors out of a problem that concern a field.
    pub(super) fn take(problem: &mut Problem) -> Self {
        let mut found: HashMap<String, Vec<String>> = HashMap::new();
        problem.issues.retain(|issue| {
            let Some(field) = field(&issue.path) else { return true };
            let message = match (field.as_str(), issue.code.as_str()) {
                ("accounts", "too_small") => "Choose at least one account.".to_owned(),
                ("text-1", "too_small") => "Write something, or add media.".to_owned(),
                _ => sentence(&issue.message),
            };
            found.entry(field).or_default().push(message);
            false
        });
        if !found.is_empty() && problem.code == Code::InvalidRequest {
            "some fields need a change".clone_into(&mut problem.detail);
        }
        Self(found)
    }

    /// The errors of a text, counted from 1.
    fn of_text(&self, number: &usize) -> &[String] {
        self.of(&format!("text-{number}"))
    }

    /// The errors of a platform's own text.
    fn of_own_text(&self, platform: &str) -> &[String] {
        self.of(&format!("text:{platform}"))
    }

    /// Adds that a file has been deleted.
    pub(super) fn add_lost_file(&mut self) {
        let words = "A file has been deleted since; choose another one.";
        self.0.entry("media".to_owned()).or_default().push(words.to_owned());
    }

    /// The errors of a field.
    pub(super) fn of(&self, field: &str) -> &[String] {
        self.0.get(field).map_or(&[], Vec::as_slice)
    }
}

/// Returns the name of the field that an error concerns.
fn field(path: &[Segment]) -> Option<String> {
    let text = |segment: &Segment| match segment {
        Segment::Key(key) => key.clone(),
        Segment::Index(index) => index.to_string(),
    };
    let keys: Vec<_> = path.iter().map(text).collect();
    let keys: Vec<_> = keys.iter().map(String::as_str).collect();
    let name = match &keys[..] {
        ["content", ..] => "text-1".to_owned(),
        ["containers", index, "content", ..] => format!("text-{}", index.parse::<usize>().ok()? + 1),
        // A form with a reply has one text.
        ["replies", _, "content", ..] => "text-1".to_owned(),
        ["containers" | "replies", _, "media", ..] => "media".to_owned(),
        ["accounts", ..] => "accounts".to_owned(),
        ["scheduled_at"] => "scheduled_at".to_owned(),
        ["queued_from_account"] => "queue".to_owned(),
        ["settings"] => "settings".to_owned(),
        ["config", platform, "content"] => format!("text:{platform}"),
        ["config", platform, rest @ ..] if !rest.is_empty() => {
            let rest: Vec<_> = rest.iter().filter(|key| key.parse::<usize>().is_err()).copied().collect();
            format!("set:{platform}:{}", rest.join("."))
        }
        _ => return None,
    };
    Some(name)
}

/// Shows the form, prefilled from the post that the URL names.
pub(crate) async fn show(context: &PageContext<'_>) -> Result<Response, Problem> {
    let mut form = PostForm::of(&context.query);
    if let Some(id) = context.query.given("from") {
        context.may(Scope::PostsRead)?;
        let post = posts::find(&context.call(), id).await?;
        let main = post.containers.first();
        form.media = main.into_iter().flat_map(|main| &main.media).map(MediaField::attached).collect();
        form.texts = post.containers.into_iter().map(|container| container.content).collect();
        if form.accounts.is_empty() {
            form.accounts = post.targets.iter().map(|target| target.account_id.to_string()).collect();
        }
        let mut settings = post.default_config;
        for (name, text) in settings_form::take(&mut settings) {
            form.own.push(name, text);
        }
        for platform in platforms::IDS {
            let block = settings.get_mut(platform).and_then(Value::as_object_mut);
            if let Some(Value::String(text)) = block.and_then(|block| block.remove("content")) {
                form.own.push(format!("text:{platform}"), text);
            }
        }
        let is_kept = |block: &Value| block.as_object().is_none_or(|block| !block.is_empty());
        if settings.as_object().is_some_and(|blocks| blocks.values().any(is_kept)) {
            form.settings = format!("{settings:#}");
        }
    }
    show_form(context, form, None).await
}

/// Shows the form with what was written before the session ended.
pub(crate) async fn show_kept(context: &PageContext<'_>) -> Result<Response, Problem> {
    show_form(context, PostForm::of(&context.form), None).await
}

/// Handles the form: adds a text, shows the preview, goes back to editing, or publishes.
pub(crate) async fn act(context: &PageContext<'_>) -> Result<Response, Problem> {
    let mut form = PostForm::of(&context.form);
    let action = context.form.get("action");
    if arrange(&mut form.media, action) {
        return show_form(context, form, None).await;
    }
    match action {
        "more" => {
            if form.texts.len() < MAX_TEXTS {
                form.texts.push(String::new());
            }
            show_form(context, form, None).await
        }
        "edit" => show_form(context, form, None).await,
        "publish" => publish(context, form).await,
        "draft" => {
            form.is_draft = true;
            publish(context, form).await
        }
        _ => preview(context, form).await,
    }
}

/// Shows the preview beside the form as it is.
pub(crate) async fn show_live(context: &PageContext<'_>) -> Result<Response, Problem> {
    let form = PostForm::of(&context.form);
    let call = context.call();
    let looks_up = context.form.get("look_up") == "true";
    let checked = match form.wish().and_then(body::read::<Proposal>) {
        Ok(body) => validate::validate(&call, body.looking_up(looks_up)).await,
        Err(problem) => Err(problem),
    };
    let (verdict, hints) = match checked {
        Ok(verdict) => (verdict, Vec::new()),
        Err(mut problem) => {
            let FieldErrors(found) = FieldErrors::take(&mut problem);
            let mut hints: Vec<_> = found.into_values().flatten().collect();
            hints.extend(problem.issues.iter().map(|issue| sentence(&issue.message)));
            if hints.is_empty() {
                hints.push(sentence(&problem.detail));
            }
            hints.sort();
            let verdict =
                Verdict { valid: false, issues: Vec::new(), variants: Vec::new(), targets: Vec::new() };
            (verdict, hints)
        }
    };
    let (cards, others) = cards(context, &form, &verdict).await?;
    let layout = context.layout("Preview", "/compose");
    Ok(render(StatusCode::OK, &LivePreview { layout, cards, others, is_valid: verdict.valid, hints }))
}

async fn show_form(
    context: &PageContext<'_>,
    form: PostForm,
    problem: Option<Problem>,
) -> Result<Response, Problem> {
    let call = context.call();
    let accounts = choice::accounts(&call).await?;
    let mut problem = problem;
    let mut errors = problem.as_mut().map(FieldErrors::take).unwrap_or_default();
    let error = problem.map(|problem| PageError::of("form", problem));
    let Files { chosen, library, has_lost } = files(context, &form.media, &accounts).await?;
    if has_lost {
        errors.add_lost_file();
    }
    let mut known: Vec<_> =
        accounts.iter().filter_map(|account| platforms::get(account.platform.as_str())).collect();
    known.sort_by_key(|platform| platforms::IDS.iter().position(|id| *id == platform.id));
    known.dedup_by_key(|platform| platform.id);
    let layout = context.layout_with_error("New post", "/compose", error);
    let page = PostFormPage {
        layout: Layout { takes_files: true, composes: true, ..layout },
        chosen,
        library,
        platforms: known
            .into_iter()
            .map(|platform| {
                let (text, prefix) = (format!("text:{}", platform.id), format!("set:{}:", platform.id));
                let is_given = |name: &str| {
                    form.own.all(name).any(|value| !["", "false"].contains(&value.trim()))
                        || !errors.of(name).is_empty()
                };
                let names = form.own.names().chain(errors.0.keys().map(String::as_str));
                Platform {
                    id: platform.id,
                    name: platform.name,
                    text: form.own.get(&text).to_owned(),
                    section: settings_form::section(platform, &form.own),
                    is_open: names.filter(|name| *name == text || name.starts_with(&prefix)).any(is_given),
                }
            })
            .collect(),
        accounts: accounts
            .into_iter()
            .map(|account| {
                let (id, status) = (account.id.to_string(), account.status.value());
                Account {
                    choice: Choice::account(&account, form.accounts.contains(&id)),
                    platform: account.platform.as_str().to_owned(),
                    label: labels::account(status),
                    is_active: status == store::accounts::AccountStatus::Active,
                }
            })
            .collect(),
        form,
        errors,
        who: format!("{} {}", call.owner.org, call.owner.mode),
    };
    let bucket = media::upload_origin(&call).await?;
    Ok(render_uploading(page.layout.status(), &page, bucket.as_deref()))
}

/// Returns something that a form names, unless it was deleted since the form was opened: the others are still shown.
fn unless_gone<T>(found: Result<T, Problem>) -> Result<Option<T>, Problem> {
    match found {
        Err(problem) if problem.code == Code::NotFound => Ok(None),
        found => found.map(Some),
    }
}

/// Reads the files of a form, and the latest others.
pub(super) async fn files(
    context: &PageContext<'_>,
    media: &[MediaField],
    accounts: &[accounts::Account],
) -> Result<Files, Problem> {
    let call = context.call();
    let latest = media::Filter {
        status: Some(EnumString::of(MediaStatus::Ready.as_str())),
        limit: Some(LIBRARY),
        ..Default::default()
    };
    let latest = media::list(&call, latest).await?.data;
    let mut chosen = Vec::new();
    for field in media {
        let known = latest.iter().find(|file| file.asset.id.to_string() == field.id);
        let other = match known {
            Some(_) => None,
            None => unless_gone(media::get(&call, &field.id, media::Wait::default()).await)?,
        };
        let found = known.or(other.as_ref());
        let choice = found.map(|file| ChosenFile::of(&file.asset, &field.alt, &field.without, accounts));
        chosen.extend(choice);
    }
    let others = latest.iter().filter(|file| chosen.iter().all(|one| one.id != file.asset.id.to_string()));
    let library = others
        .map(|file| LibraryFile { id: file.asset.id.to_string(), thumb: Thumb::of_asset(&file.asset) })
        .collect();
    Ok(Files { has_lost: chosen.len() < media.len(), chosen, library })
}

async fn preview(context: &PageContext<'_>, form: PostForm) -> Result<Response, Problem> {
    let checked = match form.wish().and_then(body::read::<Proposal>) {
        Ok(body) => validate::validate(&context.call(), body.looking_up(true)).await,
        Err(problem) => Err(problem),
    };
    match checked {
        Ok(verdict) => show_preview(context, form, verdict).await,
        Err(problem) => show_form(context, form, Some(problem)).await,
    }
}

async fn show_preview(
    context: &PageContext<'_>,
    form: PostForm,
    verdict: Verdict,
) -> Result<Response, Problem> {
    let (cards, others) = cards(context, &form, &verdict).await?;
    let layout = context.layout("Preview", "/compose");
    let page = Preview { layout, form, cards, others, is_valid: verdict.valid };
    Ok(render(StatusCode::OK, &page))
}

/// Returns the accounts that a preview shows, and the number of the others.
fn shown<'a>(accounts: &'a [String], verdict: &Verdict) -> (Vec<&'a String>, usize) {
    let found: HashSet<_> = verdict.issues.iter().map(|issue| issue.account.to_string()).collect();
    let (mut shown, others): (Vec<_>, Vec<_>) = accounts.iter().partition(|id| found.contains(*id));
    shown.extend(others);
    let others = shown.len().saturating_sub(MAX_CARDS);
    shown.truncate(MAX_CARDS);
    (shown, others)
}

/// Returns the preview on each of the accounts that it shows, and the number of the others.
async fn cards(
    context: &PageContext<'_>,
    form: &PostForm,
    verdict: &Verdict,
) -> Result<(Vec<Card>, usize), Problem> {
    let call = context.call();
    let (shown, others) = shown(&form.accounts, verdict);
    let own = form.containers();
    let contained = own.iter().chain(verdict.variants.iter().flat_map(|variant| &variant.containers));
    let ids = contained.flat_map(|text| &text.media).filter_map(|media| media.id.as_ref()?.parse().ok());
    let files = content::find_media(&call, &ids.collect::<Vec<_>>()).await?;
    let file = |media: &NewMedia| {
        let id = media.id.as_ref().and_then(|id| id.parse().ok());
        match (&media.url, id.and_then(|id: Uuid| files.get(&id))) {
            (Some(url), _) => Thumb::named(&url.text),
            (None, Some(file)) => Thumb::of(file, media.alt_text.as_deref()),
            (None, None) => Thumb::named("A deleted file"),
        }
    };
    // How the pictures of a text are fitted, which may depend on all of them.
    let fits = |adapter: Option<&Adapter>, position: usize, settings: &Value, media: &[NewMedia]| {
        let known = media.iter().map(|media| {
            let id = media.id.as_ref().and_then(|id| id.parse().ok());
            Some(id.and_then(|id: Uuid| files.get(&id))?.medium(None))
        });
        let known: Option<Vec<_>> = known.collect();
        adapter.zip(known).map_or_else(Vec::new, |(adapter, media)| adapter.fits(position, settings, &media))
    };
    let mut cards = Vec::new();
    // Each text is counted once per platform.
    let mut counts = HashMap::new();
    for id in shown {
        let Some(account) = unless_gone(accounts::get(&call, id).await)? else { continue };
        let platform = account.platform.as_str();
        let issues = verdict.issues.iter().filter(|issue| issue.account == account.id).map(|issue| {
            let is_error = issue.severity.value() == Severity::Error;
            // The message begins with the platform's id, which is replaced by its name.
            let message = issue.message.strip_prefix(platform);
            let message = message.map(|rest| format!("{}{rest}", platforms::display_name(platform)));
            IssueView {
                is_error,
                is_looked_up: look_up::is_looked_up(&issue.code),
                message: format!("{}{}", message.as_deref().unwrap_or(&issue.message), place(&issue.path)),
            }
        });
        let adapter = platforms::get(platform);
        let limit = adapter.map(|adapter| adapter.text_limit(&account.account_type));
        let target = verdict.targets.iter().find(|target| target.accounts.contains(&account.id));
        let number = target.map_or(0, |target| target.variant);
        let settings = target.map(|target| Value::from_iter(target.settings.clone())).unwrap_or_default();
        let variant = verdict.variants.iter().find(|variant| variant.variant == number);
        let texts = variant.map_or(&own[..], |variant| &variant.containers);
        let counts = counts.entry((platform.to_owned(), number)).or_insert_with(|| {
            let count = |(position, text): (usize, &NewText)| {
                let (kind, text) = (&account.account_type, &text.content);
                adapter.map_or(0, |adapter| {
                    let length = adapter.text_length(kind, position, text, &settings);
                    length.unwrap_or_else(|| text.chars().count())
                })
            };
            texts.iter().enumerate().map(count).collect::<Vec<_>>()
        });
        let is_series = adapter.is_some_and(|adapter| adapter.publisher.is_series(&settings));
        let who = (account.display_name.as_str(), account.username.as_str());
        let pieces = texts.iter().zip(counts).enumerate().map(|(index, (text, count))| {
            let beginning = text.content.chars().take(PREVIEW_LENGTH);
            let is_cut = text.content.chars().nth(PREVIEW_LENGTH).is_some();
            let shown: String = beginning.chain(is_cut.then_some('…')).collect();
            // Each text of a series is a post of its own.
            let place = if is_series { 0 } else { index };
            let fits = fits(adapter, place, &settings, &text.media);
            let fits = fits.iter().map(Option::as_ref).chain(std::iter::repeat(None));
            let media = text.media.iter().map(file).zip(fits).map(|(thumb, fit)| thumb.fitted(fit)).collect();
            Piece {
                mock: Mock::of(
                    adapter.map_or("", |adapter| adapter.id),
                    who,
                    &shown,
                    media,
                    &settings,
                    place > 0,
                ),
                count: *count,
                max: limit.map_or(0, |limit| limit.usual.unwrap_or(limit.max)),
                unit: limit.map_or("characters", |limit| limit.unit),
            }
        });
        let at = target.and_then(|target| target.scheduled_at);
        cards.push(Card {
            who: format!("{} on {}", account.username, platforms::display_name(platform)),
            issues: issues.collect(),
            pieces: pieces.collect(),
            scheduled: at.map(|Timestamp(at)| AbsoluteTime(at)),
            platform: platform.to_owned(),
        });
    }
    Ok((cards, others))
}

async fn publish(context: &PageContext<'_>, form: PostForm) -> Result<Response, Problem> {
    let created = match form.wish().and_then(body::read) {
        Ok(body) => create::create(&context.call(), body, &Header::default()).await,
        Err(problem) => Err(problem),
    };
    match created {
        Ok(Created::New(post) | Created::Replay(post)) => {
            Ok(done(&format!("/posts/{}", post.id), Done::Created))
        }
        Err(problem) => show_form(context, form, Some(problem)).await,
    }
}

impl PostForm {
    fn of(fields: &Fields) -> Self {
        let owned = |name: &str| fields.all(name).map(str::to_owned).collect::<Vec<_>>();
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
            media: MediaField::all(fields),
            own: Fields::from_pairs(
                fields
                    .names()
                    .zip(fields.values())
                    .filter(|(name, _)| name.starts_with("text:") || name.starts_with("set:")),
            ),
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
        let media = self.media.iter().map(|media| NewMedia {
            id: Some(media.id.clone()),
            url: None,
            alt_text: Some(media.alt.clone()).filter(|alt| !alt.is_empty()),
        });
        let mut media = Some(media.collect());
        let text =
            |content: &String| NewText { content: content.clone(), media: media.take().unwrap_or_default() };
        self.filled().iter().map(text).collect()
    }

    /// The same, as a request body has them.
    fn wished_containers(&self) -> Value {
        let mut media = self.media.iter().map(MediaField::wish).collect::<Vec<_>>();
        let text = |text: &String| json!({ "content": text, "media": mem::take(&mut media) });
        self.filled().iter().map(text).collect()
    }

    /// Adds the texts, media and settings of single platforms.
    fn add_own(&self, blocks: &mut Map<String, Value>) {
        settings_form::apply(&self.own, blocks);
        for platform in platforms::IDS {
            let text = self.own.get(&format!("text:{platform}")).replace("\r\n", "\n");
            let is_for = |media: &&MediaField| !media.without.iter().any(|other| other == platform);
            let media: Vec<_> = self.media.iter().filter(is_for).collect();
            let has_own_media = media.len() < self.media.len();
            if text.trim().is_empty() && !has_own_media {
                continue;
            }
            let block = blocks.entry(platform).or_insert_with(|| json!({}));
            let Some(block) = block.as_object_mut() else { continue };
            if !text.trim().is_empty() {
                block.insert("content".to_owned(), json!(text));
            }
            if has_own_media {
                block.insert("media".to_owned(), media.into_iter().map(MediaField::wish).collect());
            }
        }
    }

    /// The fields of a hidden form that says the same.
    fn hidden(&self) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        let mut add = |name: &str, value: &str| fields.push((name.to_owned(), value.to_owned()));
        for account in &self.accounts {
            add("account", account);
        }
        for text in &self.texts {
            add("text", text);
        }
        for media in &self.media {
            add("media", &media.id);
            add(&format!("alt-{}", media.id), &media.alt);
            for platform in &media.without {
                add(&format!("without-{}", media.id), platform);
            }
        }
        for (name, value) in self.own.names().zip(self.own.values()) {
            add(name, value);
        }
        add("queue", &self.queue);
        add("zone", self.zone.name());
        add("scheduled_at", &self.scheduled_at);
        add("is_draft", if self.is_draft { "true" } else { "" });
        add("settings", &self.settings);
        add("key", &self.key);
        fields
    }

    /// Converts the form to a request body.
    fn wish(&self) -> Result<Value, Problem> {
        let mut body = Map::new();
        match self.filled() {
            [text] if self.media.is_empty() => body.insert("content".to_owned(), json!(text)),
            _ => body.insert("containers".to_owned(), self.wished_containers()),
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
            let at = zone::read(&self.scheduled_at, self.zone).map_err(|problem| {
                let issue = Issue::custom(["scheduled_at"], problem.detail.clone());
                problem.with_issues(vec![issue])
            })?;
            body.insert("scheduled_at".to_owned(), json!(domain::event::timestamp(at)));
        }
        let mut blocks = match self.settings.as_str() {
            "" => Value::Object(Map::new()),
            settings => body::parse(settings.as_bytes()).map_err(|unread| {
                let issue = Issue::custom(["settings"], format!("The text {unread}"));
                Problem::new(Code::InvalidRequest, "the settings can't be read").with_issues(vec![issue])
            })?,
        };
        // Settings that are no object are refused as they are.
        if let Some(blocks) = blocks.as_object_mut() {
            self.add_own(blocks);
        }
        if blocks.as_object().is_none_or(|blocks| !blocks.is_empty()) {
            body.insert("config".to_owned(), blocks);
        }
        Ok(Value::Object(body))
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
