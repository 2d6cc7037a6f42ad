//! Text that contains `{{.…}}`. This is the only form: anything between the braces other than a
//! reference is a fault.

use super::reference::Reference;
use super::values::Values;

/// A prompt of this size exceeds every model's limit; longer text is a mistake.
const RENDERED_MAX_BYTES: usize = 8 * 1024 * 1024;

/// Text into which values are inserted when it is used.
#[derive(Clone, Debug, Default)]
pub struct Template {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
pub(super) enum Part {
    Text(String),
    Value {
        reference: Reference,
        /// The byte offset of the opening braces.
        at: usize,
    },
}

/// A fault in a text, with its byte offset.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextFault {
    pub(super) at: usize,
    pub(super) message: String,
}

impl Template {
    /// Returns the template as written in the file.
    pub fn as_written(&self) -> &str {
        &self.text
    }

    /// Returns the text before the first value, and whether it is the whole text.
    pub(super) fn known(&self) -> (&str, bool) {
        match self.parts.as_slice() {
            [] => ("", true),
            [Part::Text(text)] => (text, true),
            [Part::Text(text), ..] => (text, false),
            [Part::Value { .. }, ..] => ("", false),
        }
    }

    /// Returns the text, if no value is inserted into it.
    pub fn fixed(&self) -> Option<&str> {
        match self.known() {
            (text, true) => Some(text),
            (_, false) => None,
        }
    }

    pub(super) fn parse(text: &str) -> Result<Template, Vec<TextFault>> {
        let (mut parts, mut faults) = (Vec::new(), Vec::new());
        let mut at = 0;
        while let Some(offset) = text[at..].find("{{") {
            let open = at + offset;
            if open > at {
                parts.push(Part::Text(text[at..open].to_owned()));
            }
            let Some(length) = text[open..].find("}}") else {
                let message = "'{{' without '}}'".to_owned();
                faults.push(TextFault { at: open, message });
                at = text.len();
                break;
            };
            match reference(&text[open + 2..open + length]) {
                Ok(reference) => parts.push(Part::Value { reference, at: open }),
                Err(message) => faults.push(TextFault { at: open, message }),
            }
            at = open + length + 2;
        }
        if at < text.len() {
            parts.push(Part::Text(text[at..].to_owned()));
        }
        if faults.is_empty() { Ok(Template { text: text.to_owned(), parts }) } else { Err(faults) }
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts
    }

    pub(super) fn references(&self) -> impl Iterator<Item = (&Reference, usize)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Value { reference, at } => Some((reference, *at)),
        })
    }

    /// Returns the reference, if the text consists of exactly one.
    pub(super) fn sole(&self) -> Option<&Reference> {
        match self.parts.as_slice() {
            [Part::Value { reference, .. }] => Some(reference),
            _ => None,
        }
    }

    pub(super) fn render(&self, values: &Values) -> Result<String, String> {
        let mut rendered = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => rendered.push_str(text),
                Part::Value { reference, at } => {
                    rendered.push_str(&self.value(reference, *at, values)?);
                }
            }
            bounded(rendered.len())?;
        }
        Ok(rendered)
    }

    pub(super) fn value(
        &self,
        reference: &Reference,
        at: usize,
        values: &Values,
    ) -> Result<String, String> {
        values.text(reference).map_err(|why| format!("{}: {why}", self.written(at)))
    }

    /// Returns the braces that begin at this byte, with their content.
    pub(super) fn written(&self, at: usize) -> &str {
        let end = self.text[at..].find("}}").map_or(self.text.len(), |end| at + end + 2);
        &self.text[at..end]
    }
}

/// Rejects text that has become too long.
pub(super) fn bounded(length: usize) -> Result<(), String> {
    if length <= RENDERED_MAX_BYTES {
        Ok(())
    } else {
        Err("the text is larger than 8 MiB with its values filled in".to_owned())
    }
}

fn reference(inside: &str) -> Result<Reference, String> {
    let inside = inside.trim();
    if !inside.starts_with('.') {
        let example = "{{.inputs.x}} or {{.states.S.Output}}";
        return Err(format!("write a value as {example}, with the dot"));
    }
    Reference::parse(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<(usize, String)> {
        let faults = Template::parse(text).err().unwrap_or_default();
        faults.into_iter().map(|fault| (fault.at, fault.message)).collect()
    }

    #[test]
    fn anything_but_a_reference_is_a_fault_at_its_place() {
        for good in [
            "",
            "plain } and {",
            "{{.inputs.x}}",
            "a {{ .env.HOME }} b {{.workflow.id}}{{.workflow.name}}",
            "{{.states.a-b.JSON.f.0.g}} {{.states.s.JSON}} {{.states.s.TokensUsed}}",
        ] {
            assert_eq!(faults(good), [], "{good}");
        }
        let table = [
            ("x {{", 2, "'{{' without '}}'"),
            ("{{}}", 0, "write a value as {{.inputs.x}} or {{.states.S.Output}}, with the dot"),
            (
                "{{inputs.x}}",
                0,
                "write a value as {{.inputs.x}} or {{.states.S.Output}}, with the dot",
            ),
            ("{{.input.x}}", 0, "expected inputs, states, workflow or env; did you mean 'inputs'?"),
            ("{{.inputs.x | raw}}", 0, "names consist of letters, digits, '_' and '-'"),
            ("{{.inputs..x}}", 0, "there is one dot too many"),
            ("{{.inputs.x.y}}", 0, "write inputs.NAME"),
            ("{{.workflow.uuid}}", 0, "expected workflow.id or workflow.name"),
            (
                "{{.states.s.output}}",
                0,
                "unknown field; a state has Output, Stderr, ExitCode, Status, JSON, TokensUsed; did you mean 'Output'?",
            ),
            ("{{.states.s.Output.f}}", 0, "Output has no fields"),
            (
                "{{.states.s}}",
                0,
                "write states.NAME.FIELD, where FIELD is one of Output, Stderr, ExitCode, Status, JSON, TokensUsed",
            ),
            (
                "{{.env.COUNTERSIGN_HOME}}",
                0,
                "variables named COUNTERSIGN_… are not passed to steps",
            ),
        ];
        for (text, at, message) in table {
            assert_eq!(faults(text), [(at, message.to_owned())], "{text}");
        }
        assert_eq!(
            faults("é {{.a}} {{.inputs.x}} {{.b}}").iter().map(|f| f.0).collect::<Vec<_>>(),
            [3, 24]
        );
    }
}
