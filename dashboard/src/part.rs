//! A part that is missing of a live post: its text and files, which a retry publishes.
//!
//! It has a page of its own, where files are put in order and described as in the composer, without scripts as well.
//! Saving publishes nothing.

use crate::{
    context::{PageContext, done},
    fields::Fields,
    labels::Done,
    layout::{Layout, PageError, render_uploading},
    media::ChosenFile,
    post,
    post_form::{self, FieldErrors, Files, LibraryFile, MediaField},
};
use api::{
    http::{
        body,
        problem::{Code, Problem},
    },
    media,
    posts::{self, edit_target},
};
use askama::Template;
use poem::Response;
use serde_json::{Value, json};
use store::dashboard::overview;

#[derive(Template)]
#[template(path = "part.html")]
struct Page {
    layout: Layout,
    part: Part,
    text: String,
    chosen: Vec<ChosenFile>,
    library: Vec<LibraryFile>,
    errors: FieldErrors,
}

/// A missing part as it is stored.
struct Part {
    post: String,
    target: String,
    position: u16,
    /// The account and its platform.
    who: String,
    /// Why the part is missing.
    reason: String,
    stored: Form,
}

/// Contents of the form.
#[derive(Clone)]
struct Form {
    text: String,
    media: Vec<MediaField>,
}

impl Form {
    fn of(fields: &Fields) -> Self {
        // Browsers submit line breaks as CRLF.
        Self { text: fields.get("text").replace("\r\n", "\n"), media: MediaField::all(fields) }
    }

    /// The reply of a PATCH of the target; `None` if nothing differs from what is stored.
    fn changes(&self, part: &Part) -> Option<Value> {
        let files = |form: &Self| -> Vec<_> {
            form.media.iter().map(|file| (file.id.clone(), file.alt.clone())).collect()
        };
        let mut reply = json!({ "position": part.position, "content": self.text });
        if files(self) != files(&part.stored) {
            let media = self.media.iter().map(|file| {
                let alt = Some(&file.alt).filter(|alt| !alt.is_empty());
                json!({ "id": file.id, "alt_text": alt })
            });
            reply["media"] = media.collect();
        } else if self.text == part.stored.text {
            return None;
        }
        Some(reply)
    }
}

impl Part {
    /// Finds a part that is missing.
    ///
    /// # Errors
    ///
    /// If there is no such target, or the part is live, awaited or one that the platform has no place for.
    async fn find(
        context: &PageContext<'_>,
        id: &str,
        target: &str,
        position: &str,
    ) -> Result<Self, Problem> {
        let call = context.call();
        let post = posts::find(&call, id).await?;
        let nothing = || Problem::not_found("missing part");
        let found = post.targets.iter().find(|found| found.id.to_string() == target && found.is_torn());
        let (target, position) = found.zip(position.parse().ok()).ok_or_else(nothing)?;
        if !target.misses(position) {
            return Err(nothing());
        }
        let texts = edit_target::live_texts(&post, target);
        let (_, text) = texts.into_iter().find(|(other, _)| *other == position).ok_or_else(nothing)?;
        let container = post.containers_of(target).iter().find(|container| container.position == position);
        let media = container.into_iter().flat_map(|container| &container.media).map(MediaField::attached);
        let names = overview::names(context.db(), context.whole()?, &[target.account_id]).await?;
        Ok(Self {
            who: post::who(&names, target),
            reason: post::missing(&post, target, position).unwrap_or_default(),
            post: post.id.to_string(),
            target: target.id.to_string(),
            position,
            stored: Form { text, media: media.collect() },
        })
    }
}

/// Shows the form.
pub(crate) async fn show(
    context: &PageContext<'_>,
    id: &str,
    target: &str,
    position: &str,
) -> Result<Response, Problem> {
    let part = Part::find(context, id, target, position).await?;
    let form = part.stored.clone();
    draw(context, part, form, None).await
}

/// Puts the files in order, or keeps the text and the files.
pub(crate) async fn act(
    context: &PageContext<'_>,
    id: &str,
    target: &str,
    position: &str,
) -> Result<Response, Problem> {
    let part = Part::find(context, id, target, position).await?;
    let mut form = Form::of(&context.form);
    let action = context.form.get("action");
    if post_form::arrange(&mut form.media, action) || action == "show" {
        return draw(context, part, form, None).await;
    }
    let edited = match form.changes(&part).map(|reply| body::read(json!({ "replies": [reply] }))) {
        Some(Ok(wish)) => edit_target::edit(&context.call(), id, target, wish).await.map(drop),
        Some(Err(problem)) => Err(problem),
        None => Err(Problem::new(Code::InvalidRequest, "the text and the files are the same as before")),
    };
    match edited {
        Ok(()) => Ok(done(&format!("/posts/{}", part.post), Done::Rewritten)),
        Err(problem) => draw(context, part, form, Some(problem)).await,
    }
}

async fn draw(
    context: &PageContext<'_>,
    part: Part,
    form: Form,
    mut problem: Option<Problem>,
) -> Result<Response, Problem> {
    let mut errors = problem.as_mut().map(FieldErrors::take).unwrap_or_default();
    let error = problem.map(|problem| PageError::of("form", problem));
    let Files { chosen, library, has_lost } = post_form::files(context, &form.media, &[]).await?;
    if has_lost {
        errors.add_lost_file();
    }
    let title = format!("Part {}", part.position + 1);
    let layout = context.layout_with_error(title, "/posts", error);
    let layout = Layout { takes_files: true, ..layout };
    let page = Page { layout, part, text: form.text, chosen, library, errors };
    let bucket = media::upload_origin(&context.call()).await?;
    Ok(render_uploading(page.layout.status(), &page, bucket.as_deref()))
}
