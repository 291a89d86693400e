//! Content of a post: its containers with the media assets that they name.
//!
//! Assets are looked up once for everything that a request names. An address stands for an asset that is created with the
//! post; nothing is known about its file yet.

use crate::{
    http::{
        caller::Call,
        problem::{Code, Issue, Problem, Segment},
    },
    posts::{
        body::{NewMedia, NewText},
        imports::Imports,
    },
};
use domain::{Media, PostId};
use std::collections::{HashMap, HashSet};
use store::{
    media::{self as assets, Media as Asset},
    posts::{Attachment, Container},
};
use uuid::Uuid;

/// Containers, each with its media.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    /// The main text, then the replies.
    pub containers: Vec<Container>,
    /// The media of each container.
    pub media: Vec<Vec<Media>>,
    /// True if some of the files are still to be fetched; `media` lacks them.
    pub is_partial: bool,
}

/// The media assets that a request names.
#[derive(Debug, Default)]
pub(crate) struct Assets {
    known: HashMap<Uuid, Asset>,
    /// Assets that the post has already, of which some may still be fetched from addresses that it named.
    own: HashSet<Uuid>,
    /// Files to fetch, with what is wrong with their addresses.
    pub imports: Imports,
}

/// Faults of the media assets that were attached.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Issues in the order of the request.
    pub issues: Vec<Issue>,
    has_bad_address: bool,
}

impl Faults {
    /// Fails if one of the attached assets can't be published.
    ///
    /// # Errors
    ///
    /// `media_not_ready` with all of them; `invalid_request` if an address can't be fetched.
    pub(crate) fn reject(self) -> Result<(), Problem> {
        match &self.issues[..] {
            [] => Ok(()),
            _ if self.has_bad_address => Err(Problem::invalid_body(self.issues)),
            _ => Err(media_not_ready().with_issues(self.issues)),
        }
    }
}

impl Assets {
    /// Finds the assets.
    ///
    /// # Errors
    ///
    /// If the database is unavailable.
    pub(crate) async fn find<'a>(
        call: &Call<'_>,
        named: impl Iterator<Item = &'a NewMedia>,
        mut imports: Imports,
    ) -> Result<Self, Problem> {
        let ids: Vec<Uuid> = named.filter_map(|media| media.id.as_ref()?.parse().ok()).collect();
        imports.check(call).await?;
        let known = find_media(call, &ids).await?;
        Ok(Self { known, imports, ..Self::default() })
    }

    /// Accepts these assets also while they are fetched.
    #[must_use]
    pub(crate) fn with_own(self, own: HashSet<Uuid>) -> Self {
        Self { own, ..self }
    }

    /// Returns the containers that `texts`, found at `path`, stand for.
    pub(crate) fn content(&self, texts: Vec<NewText>, path: &[Segment], faults: &mut Faults) -> Content {
        let mut content = Content::default();
        for (position, text) in (0..).zip(texts) {
            let path = [path, &[usize::from(position).into(), "media".into()]].concat();
            let (attached, media, is_partial) = self.attach(text.media, &path, faults);
            content.containers.push(Container::new(position, text.content, attached));
            content.media.push(media);
            content.is_partial |= is_partial;
        }
        content
    }

    /// Returns the assets of a container, what is known about them, and whether some are still to be fetched; `path`
    /// leads to the list of them.
    pub(crate) fn attach(
        &self,
        named: Vec<NewMedia>,
        path: &[Segment],
        faults: &mut Faults,
    ) -> (Vec<Attachment>, Vec<Media>, bool) {
        let (mut attached, mut media, mut is_partial) = (Vec::new(), Vec::new(), false);
        for (index, named) in named.into_iter().enumerate() {
            let id: Option<Uuid> = named.id.and_then(|id| id.parse().ok());
            if let Some(id) = id.filter(|id| self.imports.contains(*id)) {
                if let Some(fault) = self.imports.fault(id) {
                    faults.issues.push(fault.clone().under(&[path, &[index.into()]].concat()));
                    faults.has_bad_address = true;
                }
                attached.push(Attachment { id, alt_text: named.alt_text });
                is_partial = true;
                continue;
            }
            let asset = id.and_then(|id| self.known.get(&id));
            let message = match asset {
                Some(asset) if asset.is_being_fetched() && self.own.contains(&asset.id.0) => {
                    attached.push(Attachment { id: asset.id.0, alt_text: named.alt_text });
                    is_partial = true;
                    continue;
                }
                Some(asset) if asset.status.is_usable() => {
                    media.push(asset.medium(named.alt_text.clone()));
                    attached.push(Attachment { id: asset.id.0, alt_text: named.alt_text });
                    continue;
                }
                Some(asset) => format!("The media asset is {}", asset.status),
                None => "The media asset does not exist".to_owned(),
            };
            faults.issues.push(Issue::custom([path, &[index.into(), "id".into()]].concat(), message));
        }
        (attached, media, is_partial)
    }
}

/// Finds the media assets with these ids that the caller reaches, in any status.
///
/// # Errors
///
/// If the database is unavailable.
pub async fn find_media(call: &Call<'_>, ids: &[Uuid]) -> Result<HashMap<Uuid, Asset>, Problem> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    Ok(by_id(assets::find(call.db(), call.access(), ids).await?))
}

fn by_id(assets: Vec<Asset>) -> HashMap<Uuid, Asset> {
    assets.into_iter().map(|asset| (asset.id.0, asset)).collect()
}

/// Loads the media of containers of a stored post, also of those that another key of the organization attached.
///
/// # Errors
///
/// If the database is unavailable.
pub(crate) async fn stored(
    call: &Call<'_>,
    post: PostId,
    containers: Vec<Container>,
) -> Result<Content, Problem> {
    let references = containers.iter().flat_map(|container| &container.media);
    let ids: Vec<_> = references.map(|reference| reference.id).collect();
    let mut known = by_id(assets::attached(call.db(), call.access(), post, &ids).await?);
    let all = known.len();
    known.retain(|_, asset| !asset.is_being_fetched());
    let medium = |reference: &Attachment| Some(known.get(&reference.id)?.medium(reference.alt_text.clone()));
    let media =
        containers.iter().map(|container| container.media.iter().filter_map(medium).collect()).collect();
    Ok(Content { containers, media, is_partial: known.len() < all })
}

/// 422: a referenced media asset is missing or not ready.
pub fn media_not_ready() -> Problem {
    Problem::new(Code::MediaNotReady, "one or more media items are missing or not ready")
}
