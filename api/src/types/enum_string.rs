//! Enumerations on the wire: strings of a closed list.
//!
//! `domain`, `store` and `platforms` declare the lists and know nothing of OpenAPI; this derives the
//! schema of each, which documents and validates it.

use crate::types::scalar::scalar;
use poem_openapi::registry::{MetaSchema, MetaSchemaRef};
use serde_json::Value;
use std::{
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
    str::FromStr,
};

/// A closed list of strings.
pub trait StringEnum: 'static {
    /// The name of the schema.
    const NAME: &'static str;

    /// The strings, in the order of the document.
    fn values() -> Vec<&'static str>;
}

/// Implements [`StringEnum`] for an enumeration that `domain::string_enum!` declared.
macro_rules! openapi_enum {
    ($type:ty, $name:literal) => {
        impl $crate::types::enum_string::StringEnum for $type {
            const NAME: &'static str = $name;

            fn values() -> Vec<&'static str> {
                <$type>::ALL.iter().map(|value| value.as_str()).collect()
            }
        }
    };
}
pub(crate) use openapi_enum;

openapi_enum!(domain::PostStatus, "PostStatus");
openapi_enum!(domain::TargetStatus, "TargetStatus");
openapi_enum!(domain::Role, "Role");
openapi_enum!(domain::Mode, "Mode");
openapi_enum!(domain::LimitSource, "LimitSource");
openapi_enum!(domain::scope::Scope, "Scope");
openapi_enum!(domain::ErrorSource, "ErrorSource");
openapi_enum!(domain::event::EventName, "DeliveredEvent");
openapi_enum!(domain::slot::Weekday, "Weekday");
openapi_enum!(domain::MediaKind, "MediaKind");
openapi_enum!(domain::MediaStatus, "MediaStatus");
openapi_enum!(store::accounts::AccountStatus, "AccountStatus");
openapi_enum!(platforms::Feature, "AccountFeature");
openapi_enum!(store::webhooks::deliveries::DeliveryStatus, "DeliveryStatus");
openapi_enum!(store::accounts::imports::ImportStatus, "ImportStatus");
openapi_enum!(store::people::audit::Action, "AuditAction");
openapi_enum!(store::people::audit::ActorKind, "AuditActor");
openapi_enum!(domain::member::Role, "TeamRole");
openapi_enum!(store::people::team::Status, "TeamStatus");

/// The ids of the supported platforms.
#[derive(Clone, Debug)]
pub enum Platform {}

impl StringEnum for Platform {
    const NAME: &'static str = "Platform";

    fn values() -> Vec<&'static str> {
        platforms::IDS.to_vec()
    }
}

/// One string of the list `V`.
pub struct EnumString<V>(String, PhantomData<fn() -> V>);

impl<V: StringEnum> EnumString<V> {
    /// A value that is known to be in the list.
    pub fn of(value: &str) -> Self {
        Self(value.to_owned(), PhantomData)
    }

    /// The string.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<V: StringEnum + FromStr<Err: fmt::Debug>> EnumString<V> {
    /// The variant that the string names.
    pub fn value(&self) -> V {
        self.0.parse().expect("parsing has checked that the string is in the list")
    }
}

impl<V> Clone for EnumString<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<V> PartialEq for EnumString<V> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<V> Eq for EnumString<V> {}

impl<V> Hash for EnumString<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<V> fmt::Debug for EnumString<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

scalar! {
    [V: StringEnum] EnumString<V> {
        name: V::NAME,
        schema: MetaSchemaRef::Reference(V::NAME.to_owned()),
        register: |registry| {
            registry.create_schema::<Self, _>(V::NAME.to_owned(), |_| MetaSchema {
                enum_items: V::values().into_iter().map(Value::from).collect(),
                ..MetaSchema::new("string")
            });
        },
        parse: |value| match value {
            Value::String(text) if V::values().contains(&text.as_str()) => Ok(Self(text, PhantomData)),
            value => Err(value),
        },
        write: |value| value.0.clone().into(),
    }
}
