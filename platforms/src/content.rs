//! The content of a container, as a check and the rules of an adapter see it.

use domain::Media;

/// A container as the author wrote it.
#[derive(Clone, Copy, Debug)]
pub struct ContainerContent<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its media.
    pub media: &'a [Media],
}
