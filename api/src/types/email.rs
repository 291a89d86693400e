//! E-mail addresses.

use crate::types::scalar::scalar;
use domain::Email;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef};

/// An e-mail address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(pub Email);

scalar! {
    [] Address {
        name: "string_email",
        schema: MetaSchemaRef::Inline(Box::new(MetaSchema::new_with_format("string", "email"))),
        parse: |value| value.as_str().and_then(|text| text.parse().ok()).map(Self).ok_or(value),
        write: |address| address.0.as_str().into(),
    }
}
