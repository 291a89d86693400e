//! Words of a closed list on the wire.
//!
//! The lists stand in `domain` and `platforms`, which know nothing of OpenAPI. This makes a schema of
//! a list, so that document and validation follow it.

use poem_openapi::{
    registry::{MetaSchema, MetaSchemaRef, Registry},
    types::{ParseError, ParseFromJSON, ParseResult, ToJSON, Type},
};
use serde_json::Value;
use std::{
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
    marker::PhantomData,
    str::FromStr,
};

/// A closed list of words.
pub trait Vocabulary: 'static {
    /// Its name in the document.
    const NAME: &'static str;

    /// The words.
    fn words() -> Vec<&'static str>;
}

/// Makes a [`Vocabulary`] of an enumeration that [`domain::words!`] declared.
#[macro_export]
#[doc(hidden)]
macro_rules! vocabulary {
    ($words:ty, $name:literal) => {
        impl $crate::types::enum_string::Vocabulary for $words {
            const NAME: &'static str = $name;

            fn words() -> Vec<&'static str> {
                <$words>::ALL.iter().map(|word| word.as_str()).collect()
            }
        }
    };
}

vocabulary!(domain::PostStatus, "PostStatus");
vocabulary!(domain::TargetStatus, "TargetStatus");
vocabulary!(domain::Role, "Role");
vocabulary!(domain::Mode, "Mode");
vocabulary!(domain::scope::Scope, "Scope");
vocabulary!(domain::ErrorSource, "ErrorSource");
vocabulary!(domain::event::EventName, "DeliveredEvent");
vocabulary!(domain::slot::Weekday, "Weekday");
vocabulary!(domain::MediaKind, "MediaKind");
vocabulary!(domain::MediaStatus, "MediaStatus");
vocabulary!(store::accounts::AccountStatus, "AccountStatus");
vocabulary!(store::deliveries::DeliveryStatus, "DeliveryStatus");
vocabulary!(store::imports::ImportStatus, "ImportStatus");
vocabulary!(store::team::Role, "TeamRole");
vocabulary!(store::team::Status, "TeamStatus");

/// The platforms of the contract.
#[derive(Clone, Debug)]
pub enum Platform {}

impl Vocabulary for Platform {
    const NAME: &'static str = "Platform";

    fn words() -> Vec<&'static str> {
        platforms::IDS.to_vec()
    }
}

/// One word of the list `V`.
pub struct Word<V>(String, PhantomData<fn() -> V>);

impl<V: Vocabulary> Word<V> {
    /// A word of ours, which is in the list.
    pub fn of(word: &str) -> Self {
        Self(word.to_owned(), PhantomData)
    }

    /// The word itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<V: Vocabulary + FromStr<Err: fmt::Debug>> Word<V> {
    /// What the word stands for.
    pub fn value(&self) -> V {
        self.0.parse().expect("a word is one of its list")
    }
}

impl<V> Clone for Word<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<V> PartialEq for Word<V> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<V> Eq for Word<V> {}

impl<V> Hash for Word<V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<V> fmt::Debug for Word<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<V: Vocabulary> Type for Word<V> {
    const IS_REQUIRED: bool = true;
    type RawValueType = Self;
    type RawElementValueType = Self;

    fn name() -> Cow<'static, str> {
        V::NAME.into()
    }

    fn schema_ref() -> MetaSchemaRef {
        MetaSchemaRef::Reference(V::NAME.to_owned())
    }

    fn register(registry: &mut Registry) {
        registry.create_schema::<Self, _>(V::NAME.to_owned(), |_| MetaSchema {
            enum_items: V::words().into_iter().map(Value::from).collect(),
            ..MetaSchema::new("string")
        });
    }

    fn as_raw_value(&self) -> Option<&Self> {
        Some(self)
    }

    fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
        Box::new(std::iter::once(self))
    }
}

impl<V: Vocabulary> ParseFromJSON for Word<V> {
    fn parse_from_json(value: Option<Value>) -> ParseResult<Self> {
        match value {
            Some(Value::String(word)) if V::words().contains(&word.as_str()) => Ok(Self(word, PhantomData)),
            value => Err(ParseError::expected_type(value.unwrap_or_default())),
        }
    }
}

impl<V: Vocabulary> ToJSON for Word<V> {
    fn to_json(&self) -> Option<Value> {
        Some(self.0.clone().into())
    }
}
