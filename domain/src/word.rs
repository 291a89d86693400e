//! Enumerations that are one word each on the wire, in the database and in Temporal.
//!
//! One table per enumeration keeps the three spellings the same.

/// A text that is none of an enumeration's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What was being read, for example `post status`.
    pub what: &'static str,
    /// The text that was found instead.
    pub found: String,
}

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} is no {}", self.found, self.what)
    }
}

impl std::error::Error for Unknown {}

/// Declares an enumeration of single words: `ALL`, `as_str`, `Display`, `FromStr` and serde agree.
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $name:ident, $what:literal { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word that stands for it on the wire and in the database.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::word::Unknown;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    _ => Err($crate::word::Unknown { what: $what, found: text.to_owned() }),
                }
            }
        }
    };
}
