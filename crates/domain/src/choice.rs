//! Settings that are one word out of a few.

/// Makes the enum and the words that files use for its variants.
#[macro_export]
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// Every word that the file may say.
            pub const NAMES: &[&str] = &[$($word),+];

            /// The word for it in the file.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            pub fn named(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}
