//! The other side of the wire.
