//! Enumerations whose values are strings on the wire, in the database and in Temporal.
//!
//! One table per enumeration keeps the three spellings identical.

/// The error of parsing a string that is not in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownValue {
    /// Name of the enumeration, for example `post status`.
    pub what: &'static str,
    /// The string that was found.
    pub found: String,
}

impl std::fmt::Display for UnknownValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} is not a valid {}", self.found, self.what)
    }
}

impl std::error::Error for UnknownValue {}

/// Declares an enumeration of strings: `ALL`, `as_str`, `Display`, `FromStr` and serde agree.
#[macro_export]
macro_rules! string_enum {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$vmeta:meta])* $variant:ident = $string:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $string)] $variant),+ }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the string used on the wire and in the database.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $string),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::string_enum::UnknownValue;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($string => Ok(Self::$variant),)+
                    _ => Err($crate::string_enum::UnknownValue { what: $what, found: text.to_owned() }),
                }
            }
        }
    };
}
