//! The macros that declare keys. One row gives a key its field, default, reader, line in `config show`
//! and row of the reference.

use serde_json::{Map, Value};

use super::keys::{Found, Key, Table};
use super::members::Members;
use super::report::Report;

/// A part of the file whose keys are declared; implemented by `section!`.
pub(super) trait Section: Default {
    /// The keys declared with the struct.
    const KEYS: &'static [Key];
    /// All keys of the object.
    const TABLE: &'static Table;

    /// Sets the fields that the file has values for.
    fn set(&mut self, members: &Members<'_>, report: &mut Report);

    /// Returns the fields as a file has them, in the order of the rows.
    fn show(&self) -> Map<String, Value>;

    /// Resets each key that only a trusted file may set. Returns the names of those that were set.
    fn restrict(&mut self) -> Vec<&'static str>;
}

/// Declares a section of the file: a struct with `Default`, and its [`Section`].
///
/// ```text
/// section! {
///     /// The documentation of the struct.
///     #[derive(Clone)]
///     pub struct Ledger at "ledger" {
///         Hot max_records: u32 = 1_000_000, Count(1_000..=u32::MAX), "How many records to keep.";
///         Hot (Narrows) rules, "list of rules", "Rules for records.";
///     }
///     and {
///         /// Not a key.
///         name: String = String::new();
///     }
/// }
/// ```
///
/// A row has the time at which a change takes effect ([`When`](super::keys::When)); the key, which is
/// the name of the field too, with its type and default; the [`Kind`](super::kind::Kind) of its
/// values; its meaning, for the reference. A key without a type has no field: the section reads and
/// shows it by hand, and its kind is only described. In brackets is the effect in an untrusted file
/// ([`Found`]), if it is not `Additions`.
///
/// After the path may follow `after(…)` with groups of keys that come first, `foreign(…)` with groups
/// of keys of other clients, and `then(…)` with a function that is called once the fields are set.
macro_rules! section {
    (
        $(#[$attribute:meta])*
        pub struct $name:ident at $path:literal
        $(, after($($group:expr),*))? $(, foreign($($foreign:expr),*))? $(, then($then:path))?
        {
            $(
                $when:ident $(($found:ident))? $key:ident $(: $type:ty = $default:expr)?,
                $kind:expr, $meaning:literal;
            )*
        }
        $(and { $($(#[$own_attribute:meta])* $own:ident: $own_type:ty = $own_default:expr;)* })?
    ) => {
        $(#[$attribute])*
        pub struct $name {
            $($($(#[$own_attribute])* pub $own: $own_type,)*)?
            $($(#[doc = $meaning] pub $key: $type,)?)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($($own: $own_default,)*)? $($($key: $default,)?)* }
            }
        }

        impl $crate::config::declare::Section for $name {
            const KEYS: &'static [$crate::config::keys::Key] = $crate::config::declare::keys! {
                $($when $(($found))? $key $(: $type)?, $kind, $meaning;)*
            };

            const TABLE: &'static $crate::config::keys::Table = &$crate::config::keys::Table {
                path: $path,
                groups: &[$($($group,)*)? Self::KEYS],
                foreign: &[$($($foreign),*)?],
            };

            fn set(
                &mut self,
                members: &$crate::config::members::Members<'_>,
                report: &mut $crate::config::report::Report,
            ) {
                $($(members.set::<$type>(stringify!($key), &$kind, &mut self.$key, report);)?)*
                $($then(self, members, report);)?
            }

            fn show(&self) -> serde_json::Map<String, serde_json::Value> {
                let fields = [$($(
                    (stringify!($key), $crate::config::kind::Kind::<$type>::show(&$kind, &self.$key)),
                )?)*];
                let shown = fields.into_iter().filter_map(|(key, value)| Some((key.into(), value?)));
                shown.collect()
            }

            fn restrict(&mut self) -> Vec<&'static str> {
                let was_set = [$($(
                    $crate::config::declare::reset::<$type>(
                        Self::KEYS, stringify!($key), &mut self.$key, $default,
                    ),
                )?)*];
                was_set.into_iter().flatten().collect()
            }
        }
    };
}

/// Makes a list of keys from rows without defaults.
macro_rules! keys {
    ($(
        $when:ident $(($found:ident))? $key:ident $(: $type:ty)?, $kind:expr, $meaning:literal;
    )*) => {
        &[$(
            $crate::config::keys::Key {
                name: stringify!($key),
                when: $crate::config::keys::When::$when,
                found: $crate::config::declare::last!(
                    [$crate::config::keys::Found::Additions]
                    $([$crate::config::keys::Found::$found])?
                ),
                kind: || $crate::config::declare::last!(
                    [$crate::config::kind::Described::from($kind)]
                    $([$crate::config::kind::Described::of::<$type>(&$kind)])?
                ),
                meaning: $meaning,
            },
        )*]
    };
}

/// Expands to the last of one or two expressions.
macro_rules! last {
    ([$only:expr]) => {
        $only
    };
    ([$first:expr] [$last:expr]) => {
        $last
    };
}

pub(super) use {keys, last, section};

/// Resets a field whose key only a trusted file may set. Returns the key if the field was set.
pub(super) fn reset<T: PartialEq>(
    keys: &[Key],
    name: &'static str,
    field: &mut T,
    default: T,
) -> Option<&'static str> {
    let is_trusted = |key: &Key| key.name == name && key.found == Found::Trusted;
    if *field == default || !keys.iter().any(is_trusted) {
        return None;
    }
    *field = default;
    Some(name)
}
