//! Every text in a definition that a model may read, with its place.

use text::json::tokens::{Token, decode, tokens};

/// Members that hold prose about the item; others hold values.
const PROSE: [&str; 3] = ["description", "title", "instructions"];

/// Names joined to form a place: in deep nesting, joining all would be quadratic.
const PATH_MAX: usize = 16;

/// Characters of a name in a place; every text there has a copy of it.
const NAME_CHARS_MAX: usize = 64;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// The member of the item that contains it.
    pub(super) member: String,
    /// For example `inputSchema.properties.path.description`; list items have the list's place.
    pub(super) place: String,
    pub(super) text: String,
    pub(super) is_prose: bool,
    /// True for the item's `name`.
    pub(super) is_own_name: bool,
}

/// Returns all strings and all member names, including duplicates. Text that is not JSON is one
/// string.
pub(super) fn passages(definition: &str) -> Vec<Passage> {
    let Some(tokens) = tokens(definition) else {
        return vec![Passage::whole(definition.to_owned())];
    };
    let mut walk = Walk::default();
    tokens.for_each(|token| walk.step(token));
    walk.passages
}

impl Passage {
    fn whole(text: String) -> Passage {
        Passage {
            member: String::new(),
            place: "text".to_owned(),
            text,
            is_prose: true,
            is_own_name: false,
        }
    }
}

#[derive(Default)]
struct Walk {
    passages: Vec<Passage>,
    /// The names of the open members, outermost first; `None` for a list item.
    open: Vec<Option<String>>,
    /// The name of the member whose value comes next.
    name: Option<String>,
}

impl Walk {
    fn step(&mut self, token: Token<'_>) {
        match token {
            Token::Open(_) => {
                let name = self.name.take();
                self.open.push(name);
            }
            Token::Close(_) => {
                self.open.pop();
            }
            Token::Key(literal) => {
                let name = decode(literal);
                self.name = Some(name.chars().take(NAME_CHARS_MAX).collect());
                self.say(name, false);
            }
            Token::Text(literal) => {
                self.say(decode(literal), true);
                self.name = None;
            }
            Token::Scalar(_) => self.name = None,
        }
    }

    fn say(&mut self, text: String, is_value: bool) {
        if self.open.is_empty() {
            return self.passages.push(Passage::whole(text));
        }
        // The first open one is the item itself, which has no name.
        let mut path = self.open.iter().skip(1).chain([&self.name]).flatten();
        let Some(first) = path.next() else {
            return self.passages.push(Passage::whole(text));
        };
        let mut place = first.clone();
        for name in path.take(PATH_MAX) {
            place.push('.');
            place.push_str(name);
        }
        let name = self.name.as_deref().unwrap_or_default();
        self.passages.push(Passage {
            is_own_name: is_value && self.open.len() == 1 && name == "name",
            is_prose: is_value && PROSE.contains(&name),
            member: first.clone(),
            place,
            text,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_has_a_place() {
        let definition = r#"{"name":"t","icons":[{"src":"z"}],
            "inputSchema":{"properties":{"p":{"description":"d","enum":["a",1]}}},"title":"A","title":"B"}"#;
        let found = passages(definition);
        let values: Vec<(&str, &str)> =
            found.iter().map(|passage| (passage.place.as_str(), passage.text.as_str())).collect();
        assert_eq!(
            values,
            [
                ("name", "name"),
                ("name", "t"),
                ("icons", "icons"),
                ("icons.src", "src"),
                ("icons.src", "z"),
                ("inputSchema", "inputSchema"),
                ("inputSchema.properties", "properties"),
                ("inputSchema.properties.p", "p"),
                ("inputSchema.properties.p.description", "description"),
                ("inputSchema.properties.p.description", "d"),
                ("inputSchema.properties.p.enum", "enum"),
                ("inputSchema.properties.p.enum", "a"),
                ("title", "title"),
                ("title", "A"),
                ("title", "title"),
                ("title", "B"),
            ]
        );
        let prose: Vec<&str> = found
            .iter()
            .filter(|passage| passage.is_prose)
            .map(|passage| passage.text.as_str())
            .collect();
        assert_eq!(prose, ["d", "A", "B"]);
        assert_eq!(found.iter().filter(|passage| passage.is_own_name).count(), 1);
        assert_eq!(found[4].member, "icons");
        assert_eq!(passages("just text"), [Passage::whole("just text".to_owned())]);
        assert_eq!(passages(r#""just\u0020text""#), [Passage::whole("just text".to_owned())]);
    }
}
