//! How columns become values of the domain.
//!
//! `domain` knows nothing of SQL, so its enumerations arrive here as text and are read on the way in.

use domain::{ErrorSource, MediaKind, MediaStatus, Mode, PostStatus, TargetStatus};
use sqlx::{
    Decode, Postgres, Type,
    error::BoxDynError,
    postgres::{PgHasArrayType, PgTypeInfo, PgValueRef},
};
use std::{error::Error, str::FromStr};

/// A text column that holds one of an enumeration's words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<T>(pub(crate) T);

impl<T> Type<Postgres> for Word<T> {
    fn type_info() -> PgTypeInfo {
        <str as Type<Postgres>>::type_info()
    }

    fn compatible(ty: &PgTypeInfo) -> bool {
        <str as Type<Postgres>>::compatible(ty)
    }
}

impl<T> PgHasArrayType for Word<T> {
    fn array_type_info() -> PgTypeInfo {
        <String as PgHasArrayType>::array_type_info()
    }
}

impl<'r, T: FromStr<Err: Error + Send + Sync + 'static>> Decode<'r, Postgres> for Word<T> {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(Self(<&str as Decode<Postgres>>::decode(value)?.parse()?))
    }
}

macro_rules! words {
    ($($word:ty),+ $(,)?) => {$(
        impl From<Word<$word>> for $word {
            fn from(word: Word<$word>) -> Self {
                word.0
            }
        }
    )+};
}

words!(
    ErrorSource,
    MediaKind,
    MediaStatus,
    Mode,
    PostStatus,
    TargetStatus,
    crate::accounts::AccountStatus,
    crate::deliveries::DeliveryStatus,
    crate::imports::ImportStatus,
    crate::team::Role,
    crate::team::Status,
);

/// The values of a column of words.
pub(crate) fn unwrap<T>(words: Vec<Word<T>>) -> Vec<T> {
    words.into_iter().map(|word| word.0).collect()
}
