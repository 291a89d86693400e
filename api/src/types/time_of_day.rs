//! Wall-clock times of the day.

use crate::types::scalar::scalar;
use domain::slot::Time;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef};

/// The format of [`TimeOfDay`] in a schema.
pub(crate) const FORMAT: &str = "time-of-day";

/// A minute of the day, `HH:MM`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimeOfDay(pub Time);

scalar! {
    [] TimeOfDay {
        name: format!("string_{FORMAT}"),
        schema: MetaSchemaRef::Inline(Box::new(MetaSchema {
            pattern: Some("^([01][0-9]|2[0-3]):[0-5][0-9]$".to_owned()),
            ..MetaSchema::new_with_format("string", FORMAT)
        })),
        parse: |value| value.as_str().and_then(|text| text.parse().ok()).map(Self).ok_or(value),
        write: |time| time.0.to_string().into(),
    }
}
