//! Scalars and small shapes of the wire: each parses, validates and documents itself.

pub mod bounded_string;
pub mod color;
pub mod deleted;
pub mod email;
pub mod enum_string;
pub mod json_object;
pub mod metadata;
pub mod metrics;
pub(crate) mod scalar;
pub mod time_of_day;
pub(crate) mod time_zone;
pub mod timestamp;
pub mod url;
