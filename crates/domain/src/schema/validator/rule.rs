//! The rule that a value breaks, as a noun phrase that completes "it must be".

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError};

use super::{CHOICES_MAX, list, shorten};

/// Returns a noun phrase for the rule that the value breaks.
pub(super) fn expected(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Type { kind } => types(kind),
        Kind::Enum { options } => match options.as_array() {
            Some(options) => format!("one of {}", list(options)),
            None => "one of the tool's own values".to_owned(),
        },
        Kind::Constant { expected_value } => shorten(&expected_value.to_string()),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => forms(context),
        kind => of_its_content(kind),
    }
}

/// Returns a noun phrase for a rule on the inside of a string, a list or an object.
fn of_its_content(kind: &Kind) -> String {
    let count = |kind: &str, bound: &str, limit: u64, part: &str| {
        format!("{kind} of {bound} {limit} {part}{}", if limit == 1 { "" } else { "s" })
    };
    match kind {
        Kind::MinLength { limit } => count("a string", "at least", *limit, "character"),
        Kind::MaxLength { limit } => count("a string", "at most", *limit, "character"),
        Kind::MinItems { limit } => count("a list", "at least", *limit, "item"),
        Kind::MaxItems { limit } => count("a list", "at most", *limit, "item"),
        Kind::AdditionalItems { limit } => count("a list", "at most", *limit as u64, "item"),
        Kind::MinProperties { limit } => count("an object", "at least", *limit, "member"),
        Kind::MaxProperties { limit } => count("an object", "at most", *limit, "member"),
        Kind::Pattern { pattern } => {
            format!("a string that matches the pattern {}", shorten(pattern))
        }
        Kind::Format { format } => format!("a string in the format {}", shorten(format)),
        Kind::ContentEncoding { content_encoding } => {
            format!("a string encoded as {}", shorten(content_encoding))
        }
        Kind::ContentMediaType { content_media_type } => {
            format!("a string that contains {}", shorten(content_media_type))
        }
        Kind::UniqueItems => "a list without repeated items".to_owned(),
        Kind::Contains => "a list with an item of the form that the tool requires".to_owned(),
        Kind::UnevaluatedItems { .. } => "a list without further items".to_owned(),
        Kind::PropertyNames { error } => {
            format!("an object in which each name is {}", expected(error))
        }
        Kind::OneOfMultipleValid { .. } => {
            "of exactly one of the forms that the tool accepts".to_owned()
        }
        Kind::FalseSchema => "absent".to_owned(),
        Kind::Not { .. } => "of a form that the tool does not exclude".to_owned(),
        _ => "of the form that the tool's input schema describes".to_owned(),
    }
}

/// Joins the rules of the alternatives, if each rejects the value as a whole.
fn forms(context: &[Vec<ValidationError<'static>>]) -> String {
    let whole = |errors: &Vec<ValidationError<'static>>| match errors.first()?.kind() {
        Kind::Type { .. } | Kind::Enum { .. } | Kind::Constant { .. } => {
            errors.first().map(expected)
        }
        _ => None,
    };
    let rules: Option<Vec<String>> = context.iter().take(CHOICES_MAX).map(whole).collect();
    match rules {
        Some(rules) if !rules.is_empty() => rules.join(" or "),
        Some(_) | None => "of one of the forms that the tool accepts".to_owned(),
    }
}

fn types(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => type_words(*kind).to_owned(),
        TypeKind::Multiple(kinds) => kinds.iter().map(type_words).collect::<Vec<_>>().join(" or "),
    }
}

fn type_words(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Null => "null",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "a whole number",
        JsonType::Number => "a number",
        JsonType::String => "a string",
        JsonType::Array => "a list",
        JsonType::Object => "an object",
    }
}
