//! Text that may contain `${env:NAME}`. Variables are expanded by the code that uses the value, at
//! the time of use, so that a secret from the environment is never part of the configuration.

use std::fmt;

use thiserror::Error;

const OPEN: &str = "${env:";

/// Text with placeholders for environment variables; `Debug` and `Display` print it unexpanded.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigTemplate {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable(String),
}

/// A variable that a template uses but the environment does not define.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("environment variable '{0}' is not set")]
pub struct MissingVariable(pub String);

/// A `${env:` that is not a valid variable.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateFault {
    #[error("'${{env:' has no closing '}}'")]
    Unclosed,
    #[error(
        "'${{env:{0}}}' is not a variable name: use letters, digits and '_', and no leading digit"
    )]
    Name(String),
}

impl ConfigTemplate {
    pub fn parse(text: &str) -> Result<Self, TemplateFault> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(OPEN) {
            let (name, after) = after.split_once('}').ok_or(TemplateFault::Unclosed)?;
            if !is_variable_name(name) {
                return Err(TemplateFault::Name(name.chars().take(40).collect()));
            }
            parts.extend(literal(before));
            parts.push(Part::Variable(name.to_owned()));
            rest = after;
        }
        parts.extend(literal(rest));
        Ok(Self { text: text.to_owned(), parts })
    }

    /// Returns the text as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Variable(name) => Some(name.as_str()),
            Part::Literal(_) => None,
        })
    }

    /// Returns the text around the variables.
    pub(super) fn literals(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(text) => Some(text.as_str()),
            Part::Variable(_) => None,
        })
    }

    pub(super) fn starts_with_variable(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Variable(_)))
    }

    /// Returns the text with each variable replaced by its value from `env`.
    pub fn expand(&self, env: &dyn Fn(&str) -> Option<String>) -> Result<String, MissingVariable> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Literal(text) => Ok(text.clone()),
                Part::Variable(name) => env(name).ok_or_else(|| MissingVariable(name.clone())),
            })
            .collect()
    }
}

impl fmt::Debug for ConfigTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

impl fmt::Display for ConfigTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn literal(text: &str) -> Option<Part> {
    (!text.is_empty()).then(|| Part::Literal(text.to_owned()))
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&str, &str>) {
        let env = |name: &str| (name == "TOKEN").then(|| "s3cr3t".to_owned());
        let got = ConfigTemplate::parse(text)
            .map_err(|fault| fault.to_string())
            .and_then(|template| template.expand(&env).map_err(|missing| missing.to_string()));
        assert_eq!(got, expect.map(str::to_owned).map_err(str::to_owned), "{text}");
    }

    #[test]
    fn variables_are_replaced_and_everything_else_stays() {
        check("", Ok(""));
        check("plain $HOME ${HOME} ${input:x}", Ok("plain $HOME ${HOME} ${input:x}"));
        check("Bearer ${env:TOKEN}", Ok("Bearer s3cr3t"));
        check("${env:TOKEN}${env:TOKEN}!", Ok("s3cr3ts3cr3t!"));
        check("${env:ABSENT}", Err("environment variable 'ABSENT' is not set"));
        check("a ${env:TOKEN", Err("'${env:' has no closing '}'"));
        let rule = "is not a variable name: use letters, digits and '_', and no leading digit";
        check("${env:}", Err(&format!("'${{env:}}' {rule}")));
        check("${env:1A}", Err(&format!("'${{env:1A}}' {rule}")));
    }

    #[test]
    fn expansion_is_not_repeated() {
        let template = ConfigTemplate::parse("${env:A}").unwrap();
        let nested = template.expand(&|_| Some("${env:B}".to_owned()));
        assert_eq!(nested.as_deref(), Ok("${env:B}"));
    }
}
