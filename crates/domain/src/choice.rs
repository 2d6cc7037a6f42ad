//! Settings with a fixed set of words as values.

/// A setting with a fixed set of words as values, for code that takes any of them.
pub trait WordChoice: Copy {
    const WORDS: &'static [&'static str];

    fn word(self) -> &'static str;

    fn of_word(word: &str) -> Option<Self>;
}

/// Defines an enum and the words for its variants in files.
#[macro_export]
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant),+ }

        impl $name {
            /// Every valid word.
            pub const NAMES: &[&str] = &[$($word),+];

            /// Returns the word for this variant in files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            pub fn named(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl $crate::choice::WordChoice for $name {
            const WORDS: &'static [&'static str] = Self::NAMES;

            fn word(self) -> &'static str {
                self.name()
            }

            fn of_word(word: &str) -> Option<Self> {
                Self::named(word)
            }
        }
    };
}
