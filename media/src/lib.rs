//! Media files: storage, signed access and inspection.
//!
//! The store is a directory or a bucket; files are streamed, so that memory use does not grow with them.
//! A file's bytes determine its type: a name or a declared type only narrows what is accepted. Nothing
//! here decodes audio or video; probes read a bounded number of headers. Pictures are decoded (crate `pictures`) in
//! [confined processes](worker) of their own, by [turns](turns) of their owners.

mod buffered;
mod container;
mod file;
mod file_store;
mod format;
mod inspect;
mod metadata;
mod patience;
mod presign;
mod probe;
mod rendition;
mod signed_token;
mod size_limits;
mod turns;
mod window;
mod worker;

pub use file::{FileProperties, Refusal};
pub use file_store::{
    BUFFER_BYTES, Credentials, Digest, FileStore, FitError, FittedFile, Location, MinRate, Name, Piece,
    StoredFile, UploadError, needs_operator,
};
pub use format::{Format, claimed, format};
pub use inspect::Fault;
pub use object_store::Error as StoreError;
pub use signed_token::{Key, Permission, SignedToken};
pub use size_limits::SizeLimits;
pub use worker::{Confinement, Decoders, serve};
