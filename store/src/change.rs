//! Changes to nullable columns.
//!
//! `Option` can express "set" and "keep", which suffices for a field that is never null. Where null is a
//! value of its own, there is a third case.

/// A change to a nullable field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// Leaves the field as it is.
    #[default]
    Keep,
    /// Sets the field to null.
    Clear,
    /// Sets the field to a value.
    Set(T),
}

impl<T> Change<T> {
    /// Returns whether the field is written.
    pub fn is_change(&self) -> bool {
        !matches!(self, Self::Keep)
    }

    /// Returns the new value; `None` is null, or no change.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Keep | Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    /// Converts the new value.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Change<U> {
        match self {
            Self::Keep => Change::Keep,
            Self::Clear => Change::Clear,
            Self::Set(value) => Change::Set(convert(value)),
        }
    }
}

/// For bodies in which null means the same as an absent field.
impl<T> From<Option<T>> for Change<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Keep, Self::Set)
    }
}
