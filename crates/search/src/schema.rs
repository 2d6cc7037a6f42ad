//! Extracts the searchable words of an input schema in one pass over its text: parameter names,
//! their descriptions, and their allowed values. It never builds a tree or follows a `$ref`; text
//! that is not a schema yields no words.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess};
use serde::de::{Error, Visitor};

/// Deeper nesting is skipped: such parameters say nothing about the tool's purpose.
const DEPTH_MAX: usize = 16;

/// Larger schemas are read up to this length; the largest in real servers is a tenth of it.
const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// The kind of a piece of schema text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    ParameterName,
    ParameterDescription,
    Value,
}

/// Calls `emit` with each searchable text of `schema`, in text order.
pub(super) fn read(schema: &str, emit: &mut dyn FnMut(Piece, &str)) {
    let text = &schema[..schema.floor_char_boundary(SCHEMA_BYTES_MAX)];
    let mut json = serde_json::Deserializer::from_str(text);
    // An error means invalid JSON, a cut at the limit, or nesting past the parser's own limit;
    // anything read before it counts.
    let _ = Walk { part: SchemaPart::Schema, depth: 0, emit }.deserialize(&mut json);
}

/// The part of a schema that the walk is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaPart {
    /// A schema, or a list of schemas.
    Schema,
    /// An object whose keys name parameters and whose values are schemas.
    Properties,
    /// An object whose values are schemas and whose keys are irrelevant.
    Definitions,
    /// A description or a title.
    Text,
    /// A value that the parameter may take, or a list of them.
    Values,
    Elsewhere,
}

struct Walk<'a> {
    part: SchemaPart,
    depth: usize,
    emit: &'a mut dyn FnMut(Piece, &str),
}

impl Walk<'_> {
    fn down(&mut self, part: SchemaPart) -> Walk<'_> {
        let deep = self.depth >= DEPTH_MAX;
        let part = if deep { SchemaPart::Elsewhere } else { part };
        Walk { part, depth: self.depth + 1, emit: self.emit }
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.part == SchemaPart::Elsewhere {
            return IgnoredAny::deserialize(deserializer).map(drop);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any JSON value")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.part {
            SchemaPart::Text => (self.emit)(Piece::ParameterDescription, text),
            SchemaPart::Values => (self.emit)(Piece::Value, text),
            SchemaPart::Schema
            | SchemaPart::Properties
            | SchemaPart::Definitions
            | SchemaPart::Elsewhere => {}
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
        let part = self.part;
        while list.next_element_seed(self.down(part))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let here = self.part;
        while let Some(part) = map.next_key_seed(Key { here, emit: self.emit })? {
            map.next_value_seed(self.down(part))?;
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Reads a key and determines the kind of its value.
struct Key<'a> {
    here: SchemaPart,
    emit: &'a mut dyn FnMut(Piece, &str),
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = SchemaPart;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SchemaPart, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key<'_> {
    type Value = SchemaPart;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<SchemaPart, E> {
        Ok(match self.here {
            SchemaPart::Schema => behind_keyword(key),
            SchemaPart::Properties => {
                (self.emit)(Piece::ParameterName, key);
                SchemaPart::Schema
            }
            SchemaPart::Definitions => SchemaPart::Schema,
            SchemaPart::Text | SchemaPart::Values | SchemaPart::Elsewhere => SchemaPart::Elsewhere,
        })
    }
}

fn behind_keyword(keyword: &str) -> SchemaPart {
    match keyword {
        "properties" => SchemaPart::Properties,
        "$defs" | "definitions" => SchemaPart::Definitions,
        "description" | "title" => SchemaPart::Text,
        "enum" | "const" => SchemaPart::Values,
        "items" | "prefixItems" | "additionalProperties" | "anyOf" | "oneOf" | "allOf" => {
            SchemaPart::Schema
        }
        _ => SchemaPart::Elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(schema: &str) -> Vec<(Piece, String)> {
        let mut found = Vec::new();
        read(schema, &mut |piece, text| found.push((piece, text.to_owned())));
        found
    }

    #[test]
    fn parameters_their_descriptions_and_values_are_read_at_any_level() {
        let found = pieces(
            r##"{"type":"object","$defs":{"Label":{"properties":{"colour":{"const":"red"}}}},
                "properties":{"state":{"enum":["open",1,null,"closed"],"description":"Which \"ones\""},
                "labels":{"items":{"$ref":"#/$defs/Label"},"anyOf":[{"title":"Names"}]}}}"##,
        );
        let expected = [
            (Piece::ParameterName, "colour"),
            (Piece::Value, "red"),
            (Piece::ParameterName, "state"),
            (Piece::Value, "open"),
            (Piece::Value, "closed"),
            (Piece::ParameterDescription, "Which \"ones\""),
            (Piece::ParameterName, "labels"),
            (Piece::ParameterDescription, "Names"),
        ];
        assert_eq!(found, expected.map(|(piece, text)| (piece, text.to_owned())));
    }

    #[test]
    fn an_invalid_schema_yields_nothing() {
        for odd in [
            "true",
            "null",
            "[]",
            "7",
            r#""text""#,
            "",
            "{",
            "\0\u{7f}",
            r#"{"properties":3}"#,
            r#"{"properties":["a"]}"#,
            r#"{"enum":{"a":"b"},"description":{"text":"x"},"anyOf":"y"}"#,
        ] {
            assert_eq!(pieces(odd), [], "{odd}");
        }
    }

    #[test]
    fn recursion_is_not_followed_and_depth_is_bounded() {
        let recursive = r##"{"properties":{"child":{"$ref":"#"}}}"##;
        assert_eq!(pieces(recursive), [(Piece::ParameterName, "child".to_owned())]);

        let deep = format!("{}{}", r#"{"properties":{"a":"#.repeat(60), "}}".repeat(60));
        let deep = deep.replacen(":}}", ":{}}}", 1);
        assert_eq!(pieces(&deep).len(), DEPTH_MAX / 2);

        let past_the_parser = format!(r#"{{"title":"top","items":{}"#, "[".repeat(5000));
        assert_eq!(pieces(&past_the_parser), [(Piece::ParameterDescription, "top".to_owned())]);
    }
}
