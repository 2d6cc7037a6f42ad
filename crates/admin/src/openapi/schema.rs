//! Words to say what JSON looks like. An object that says nothing of other members may gain some
//! in a later version.

use serde_json::Value;
use utoipa::openapi::schema::{AdditionalProperties, SchemaType, Type};
use utoipa::openapi::{
    ArrayBuilder, KnownFormat, Object, ObjectBuilder, OneOfBuilder, Ref, RefOr, SchemaFormat,
};

pub(crate) type Schema = RefOr<utoipa::openapi::Schema>;

/// A duration as people write it. More digits may be too long for what it is asked of.
const DURATION: &str = "^[1-9][0-9]{0,5}(ms|s|m|h|d)$";

/// A name of a server, a token or a profile: plain characters, and neither `.` nor `..`.
const NAME: &str = r"^(\.{0,2}[A-Za-z0-9_-][A-Za-z0-9_.-]*|\.{3,})$";
const NAME_CHARS_MAX: usize = 64;

pub(crate) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

/// Text with at least one character.
pub(crate) fn filled() -> ObjectBuilder {
    text().min_length(Some(1))
}

pub(crate) fn name() -> ObjectBuilder {
    text().pattern(Some(NAME)).max_length(Some(NAME_CHARS_MAX))
}

pub(crate) fn duration() -> ObjectBuilder {
    text().pattern(Some(DURATION))
}

pub(crate) fn moment() -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

/// `sha256:` and the digest.
pub(crate) fn digest() -> ObjectBuilder {
    text().pattern(Some("^sha256:[0-9a-f]{64}$"))
}

pub(crate) fn flag() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Boolean)
}

/// A whole number, zero or more.
pub(crate) fn count() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0))
}

pub(crate) fn count_between(min: usize, max: usize) -> ObjectBuilder {
    count().minimum(Some(min)).maximum(Some(max))
}

/// A number, zero or more.
pub(crate) fn amount() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0))
}

pub(crate) fn one_of(words: impl IntoIterator<Item = &'static str>) -> ObjectBuilder {
    text().enum_values(Some(words))
}

pub(crate) fn anything() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue)
}

/// An object with any members.
pub(crate) fn any_object() -> ObjectBuilder {
    ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(true)))
}

/// Any names, each with such a value.
pub(crate) fn map_of(values: impl Into<Schema>) -> ObjectBuilder {
    ObjectBuilder::new().additional_properties(Some(values.into()))
}

pub(crate) fn list_of(items: impl Into<Schema>) -> ArrayBuilder {
    ArrayBuilder::new().items(items.into())
}

/// A schema that is described once, in `openapi::PARTS`.
pub(crate) fn part(name: &str) -> Schema {
    Ref::from_schema_name(name).into()
}

/// Exactly one of these.
pub(crate) fn either<const N: usize>(schemas: [Schema; N]) -> Schema {
    schemas.into_iter().fold(OneOfBuilder::new(), OneOfBuilder::item).into()
}

pub(crate) fn or_null(schema: impl Into<Schema>) -> Schema {
    match schema.into() {
        RefOr::T(utoipa::openapi::Schema::Object(mut object)) => {
            object.schema_type = with_null(&object.schema_type);
            object.enum_values.iter_mut().for_each(|words| words.push(Value::Null));
            RefOr::T(object.into())
        }
        RefOr::T(utoipa::openapi::Schema::Array(mut list)) => {
            list.schema_type = with_null(&list.schema_type);
            RefOr::T(list.into())
        }
        other => either([other, RefOr::T(Object::with_type(Type::Null).into())]),
    }
}

fn with_null(kind: &SchemaType) -> SchemaType {
    match kind {
        SchemaType::Type(kind) => [kind.clone(), Type::Null].into_iter().collect(),
        SchemaType::Array(_) | SchemaType::AnyValue => kind.clone(),
    }
}

/// Members of an object.
pub(crate) trait WithMembers {
    /// A member that is always there.
    fn has(self, name: &str, value: impl Into<Schema>) -> Self;
    /// A member that may be absent.
    fn may(self, name: &str, value: impl Into<Schema>) -> Self;
    /// No other members.
    fn and_no_more(self) -> Self;
}

pub(crate) fn object() -> ObjectBuilder {
    ObjectBuilder::new()
}

impl WithMembers for ObjectBuilder {
    fn has(self, name: &str, value: impl Into<Schema>) -> Self {
        self.property(name, value).required(name)
    }

    fn may(self, name: &str, value: impl Into<Schema>) -> Self {
        self.property(name, value)
    }

    fn and_no_more(self) -> Self {
        self.additional_properties(Some(AdditionalProperties::FreeForm(false)))
    }
}
