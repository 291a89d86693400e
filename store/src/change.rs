//! What a change does to a field that can be null.
//!
//! `Option` can say "to this" or "not at all", which is enough for a field that can't be null. Where
//! null is a value of its own, the third case needs a name.

/// What a change does to a field that can be null.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Change<T> {
    /// Nothing.
    #[default]
    Keep,
    /// It becomes null.
    Clear,
    /// It becomes this.
    Set(T),
}

impl<T> Change<T> {
    /// Whether anything is done to it.
    pub fn is_made(&self) -> bool {
        !matches!(self, Self::Keep)
    }

    /// What it becomes.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Keep | Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    /// The same change with another value.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Change<U> {
        match self {
            Self::Keep => Change::Keep,
            Self::Clear => Change::Clear,
            Self::Set(value) => Change::Set(convert(value)),
        }
    }
}

/// What a body says that makes something, or brings it up to date: null there is the same as absent.
impl<T> From<Option<T>> for Change<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Keep, Self::Set)
    }
}
