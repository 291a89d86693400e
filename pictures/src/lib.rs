//! Scales and converts pictures within limits of memory and CPU time.
//!
//! A crate of its own, because the codecs' generic code is compiled with it: it is optimized in the dev profile too,
//! where a picture takes tens of times longer otherwise.

mod deadline;
mod rendition;

pub use deadline::{Deadline, Stop};
pub use rendition::{CPU_LIMIT, Halt, Rendition, Structure, animation, still};
