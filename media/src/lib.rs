//! The bytes of media: where they are kept, who may fetch them, and what they are.
//!
//! The store is a directory or a bucket; a file passes through as a stream, so that memory does not grow
//! with it. What a file is, its bytes decide: a name or a declared type only ever narrows what is
//! accepted. Nothing here decodes a picture or a sound; a probe reads headers, within bounds.

mod caps;
mod format;
mod inspect;
mod pass;
mod probe;
mod shelf;
mod window;

pub use caps::SizeLimits;
pub use format::{Format, claimed, format};
pub use inspect::{DeclaredFile, Fault, FileProperties, Refusal};
pub use pass::{Key, Permission, SignedToken};
pub use shelf::{Digest, FileStore, HELD, Location, Name, Piece, StoredFile, Tempo, UploadError};
