//! The traits of a JSON value that `poem-openapi` is to treat as a whole.

/// Implements `Type`, `ParseFromJSON` and `ToJSON`. Generic parameters stand in brackets; `parse` returns
/// a value that does not fit; `register` adds a schema that `schema` refers to.
macro_rules! scalar {
    ([$($parameters:tt)*] $type:ty {
        name: $name:expr,
        schema: $schema:expr,
        $(register: $register:expr,)?
        parse: $parse:expr,
        write: $write:expr,
    }) => {
        impl<$($parameters)*> poem_openapi::types::Type for $type {
            const IS_REQUIRED: bool = true;
            type RawValueType = Self;
            type RawElementValueType = Self;

            fn name() -> std::borrow::Cow<'static, str> {
                $name.into()
            }

            fn schema_ref() -> poem_openapi::registry::MetaSchemaRef {
                $schema
            }

            $(fn register(registry: &mut poem_openapi::registry::Registry) {
                let register: fn(&mut poem_openapi::registry::Registry) = $register;
                register(registry);
            })?

            fn as_raw_value(&self) -> Option<&Self> {
                Some(self)
            }

            fn raw_element_iter<'a>(&'a self) -> Box<dyn Iterator<Item = &'a Self> + 'a> {
                Box::new(std::iter::once(self))
            }
        }

        impl<$($parameters)*> poem_openapi::types::ParseFromJSON for $type {
            fn parse_from_json(
                value: Option<serde_json::Value>,
            ) -> poem_openapi::types::ParseResult<Self> {
                let parse: fn(serde_json::Value) -> Result<Self, serde_json::Value> = $parse;
                parse(value.unwrap_or_default()).map_err(poem_openapi::types::ParseError::expected_type)
            }
        }

        impl<$($parameters)*> poem_openapi::types::ToJSON for $type {
            fn to_json(&self) -> Option<serde_json::Value> {
                let write: fn(&Self) -> serde_json::Value = $write;
                Some(write(self))
            }
        }
    };
}
pub(crate) use scalar;
