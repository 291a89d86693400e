//! Decoding columns into the enumerations of the domain, which knows no SQL.

use domain::{ErrorSource, MediaKind, MediaStatus, Mode, PostStatus, TargetStatus};
use sqlx::{
    Decode, Postgres, Type,
    error::BoxDynError,
    postgres::{PgHasArrayType, PgTypeInfo, PgValueRef},
};
use std::{error::Error, str::FromStr};

/// A text column that is parsed on the way in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parsed<T>(pub(crate) T);

impl<T> Type<Postgres> for Parsed<T> {
    fn type_info() -> PgTypeInfo {
        <str as Type<Postgres>>::type_info()
    }

    fn compatible(ty: &PgTypeInfo) -> bool {
        <str as Type<Postgres>>::compatible(ty)
    }
}

impl<T> PgHasArrayType for Parsed<T> {
    fn array_type_info() -> PgTypeInfo {
        <String as PgHasArrayType>::array_type_info()
    }
}

impl<'r, T: FromStr<Err: Error + Send + Sync + 'static>> Decode<'r, Postgres> for Parsed<T> {
    fn decode(value: PgValueRef<'r>) -> Result<Self, BoxDynError> {
        Ok(Self(<&str as Decode<Postgres>>::decode(value)?.parse()?))
    }
}

/// Makes columns of these types readable as [`Parsed`]. Each module does that for its own.
macro_rules! into_inner {
    ($($inner:ty),+ $(,)?) => {$(
        impl From<$crate::decode::Parsed<$inner>> for $inner {
            fn from(parsed: $crate::decode::Parsed<$inner>) -> Self {
                parsed.0
            }
        }
    )+};
}

pub(crate) use into_inner;

into_inner!(ErrorSource, MediaKind, MediaStatus, Mode, PostStatus, TargetStatus, domain::member::Role,);

/// Unwraps the values of an array column.
pub(crate) fn unwrap<T>(parsed: Vec<Parsed<T>>) -> Vec<T> {
    parsed.into_iter().map(|parsed| parsed.0).collect()
}
