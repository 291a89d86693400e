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

#[cfg(test)]
impl Assets {
    /// Returns assets as if they had been found; the post has `own` already.
    pub(super) fn of(known: Vec<Asset>, own: Vec<Uuid>, imports: Imports) -> Self {
        Self { known: by_id(known), own: own.into_iter().collect(), imports }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::posts::samples::{asset, path};
    use domain::MediaStatus::{Failed, PendingUpload, Ready, Uploaded};

    /// Returns the content of a text whose reply names an asset.
    fn content(assets: &Assets, id: Uuid) -> (Content, Faults) {
        let named = NewMedia { id: Some(id.to_string()), url: None, alt_text: Some("Alt".to_owned()) };
        let texts = [Vec::new(), vec![named]].map(|media| NewText { content: "a".to_owned(), media });
        let mut faults = Faults::default();
        let content = assets.content(texts.to_vec(), &path("containers"), &mut faults);
        (content, faults)
    }

    #[test]
    fn only_media_that_can_be_published_is_attached() {
        let id = Uuid::from_u128(1);
        let fetched =
            || Asset { source_url: Some("https://a.example/b.jpg".to_owned()), ..asset(1, PendingUpload) };
        for (known, own, expected) in [
            (asset(1, Ready), vec![], Ok((1, false))),
            (asset(1, Uploaded), vec![], Ok((1, false))),
            (asset(1, PendingUpload), vec![id], Err("The media asset is pending_upload")),
            (asset(1, Failed), vec![], Err("The media asset is failed")),
            (asset(2, Ready), vec![], Err("The media asset does not exist")),
            (fetched(), vec![], Err("The media asset is pending_upload")),
            // The post named its address before.
            (fetched(), vec![id], Ok((0, true))),
        ] {
            let case = format!("{} {:?}", known.status, known.source_url);
            let (content, faults) = content(&Assets::of(vec![known], own, Imports::default()), id);
            let attached = &content.containers[1].media;
            match expected {
                Ok((known, is_partial)) => {
                    assert_eq!(*attached, [Attachment { id, alt_text: Some("Alt".to_owned()) }], "{case}");
                    assert_eq!((content.media[1].len(), content.is_partial), (known, is_partial), "{case}");
                    assert!(faults.reject().is_ok(), "{case}");
                }
                Err(message) => {
                    assert!(attached.is_empty(), "{case}");
                    let problem = faults.reject().unwrap_err();
                    assert_eq!(problem.code, Code::MediaNotReady, "{case}");
                    let expected = Issue::custom(path("containers.1.media.0.id"), message);
                    assert_eq!(problem.issues, [expected], "{case}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_known_of_the_file_at_an_address() {
        let mut imports = Imports::default();
        let id = imports.add("https://a.example/b.jpg").0;
        let (content, faults) = content(&Assets::of(Vec::new(), Vec::new(), imports), id);
        assert_eq!(content.containers[1].media[0].id, id);
        assert!(content.media[1].is_empty() && content.is_partial);
        assert!(faults.reject().is_ok());
    }

    #[test]
    fn an_address_that_cannot_be_fetched_is_a_fault_of_the_body() {
        for (has_bad_address, code) in [(true, Code::InvalidRequest), (false, Code::MediaNotReady)] {
            let faults = Faults { issues: vec![Issue::whole("a")], has_bad_address };
            assert_eq!(faults.reject().unwrap_err().code, code);
        }
    }
}
