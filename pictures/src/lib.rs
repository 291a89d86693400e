//! Scales and converts pictures.
//!
//! A crate of its own, because the codecs' generic code is compiled with it: it is optimized in the dev profile too,
//! where a picture takes tens of times longer otherwise.

pub mod heif;
mod output;
mod rendition;

pub use rendition::{CPU_LIMIT, Halt, Rendition, Structure, animation, still};
