//! Scales and converts pictures.
//!
//! A crate of its own, because the codecs' generic code is compiled with it: it is optimized in the dev profile too,
//! where a picture takes tens of times longer otherwise.

mod halt;
pub mod heif;
mod output;
mod rendition;

pub use halt::Halt;
pub use rendition::{CPU_LIMIT, Rendition, Structure, animation, still};
