//! Text that may contain `${env:NAME}` and `${secret:NAME}`. They are replaced by the code that uses
//! the value, at the time of use, so that no secret is ever part of the configuration.

use std::fmt;

use thiserror::Error;

const CLOSE: char = '}';

/// The longest name of a secret.
const SECRET_NAME_CHARS_MAX: usize = 100;

/// Text with placeholders for environment variables and secrets; `Debug` and `Display` print it
/// unexpanded.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigTemplate {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Variable(String),
    Secret(String),
}

/// The kinds of placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    Variable,
    Secret,
}

/// The value of a placeholder that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MissingValue {
    #[error("environment variable '{0}' is not set")]
    Variable(String),
    #[error("secret '{0}' is not set: run 'countersign secret set {0}'")]
    Secret(String),
}

/// A placeholder that is not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TemplateFault {
    #[error("'{}' has no closing '}}'", .0.opening())]
    Unclosed(Placeholder),
    #[error(
        "'${{env:{0}}}' is not a variable name: use letters, digits and '_', and no leading digit"
    )]
    Variable(String),
    #[error(
        "'${{secret:{0}}}' is not the name of a secret: use up to 100 letters, digits, '_', '-' and \
         '.'"
    )]
    Secret(String),
}

impl Placeholder {
    const ALL: [Placeholder; 2] = [Placeholder::Variable, Placeholder::Secret];

    fn opening(self) -> &'static str {
        match self {
            Placeholder::Variable => "${env:",
            Placeholder::Secret => "${secret:",
        }
    }

    fn part(self, name: &str) -> Result<Part, TemplateFault> {
        let shown = || name.chars().take(40).collect();
        match self {
            Placeholder::Variable if is_variable_name(name) => Ok(Part::Variable(name.to_owned())),
            Placeholder::Secret if is_secret_name(name) => Ok(Part::Secret(name.to_owned())),
            Placeholder::Variable => Err(TemplateFault::Variable(shown())),
            Placeholder::Secret => Err(TemplateFault::Secret(shown())),
        }
    }
}

impl ConfigTemplate {
    pub fn parse(text: &str) -> Result<Self, TemplateFault> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, placeholder, after)) = first(rest) {
            let (name, after) =
                after.split_once(CLOSE).ok_or(TemplateFault::Unclosed(placeholder))?;
            parts.extend(literal(before));
            parts.push(placeholder.part(name)?);
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
            Part::Literal(_) | Part::Secret(_) => None,
        })
    }

    /// Returns the names of the secrets.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Secret(name) => Some(name.as_str()),
            Part::Literal(_) | Part::Variable(_) => None,
        })
    }

    /// Returns the text around the placeholders.
    pub(super) fn literals(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(text) => Some(text.as_str()),
            Part::Variable(_) | Part::Secret(_) => None,
        })
    }

    /// Makes text of the placeholders. Reports if there were any.
    pub(super) fn take_literally(&mut self) -> bool {
        let is_literal = |part: &Part| matches!(part, Part::Literal(_));
        let has_any = !self.parts.iter().all(is_literal);
        self.parts = literal(&self.text).into_iter().collect();
        has_any
    }

    pub(super) fn starts_with_placeholder(&self) -> bool {
        matches!(self.parts.first(), Some(Part::Variable(_) | Part::Secret(_)))
    }

    /// Returns the text with each variable replaced by its value from `env`, and each secret by its
    /// value from `secrets`.
    pub fn expand(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
        secrets: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, MissingValue> {
        self.parts
            .iter()
            .map(|part| match part {
                Part::Literal(text) => Ok(text.clone()),
                Part::Variable(name) => {
                    env(name).ok_or_else(|| MissingValue::Variable(name.clone()))
                }
                Part::Secret(name) => {
                    secrets(name).ok_or_else(|| MissingValue::Secret(name.clone()))
                }
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

/// Returns the first placeholder, with the text before it and the text after its opening.
fn first(text: &str) -> Option<(&str, Placeholder, &str)> {
    let found = Placeholder::ALL.into_iter().filter_map(|placeholder| {
        let (before, after) = text.split_once(placeholder.opening())?;
        Some((before, placeholder, after))
    });
    found.min_by_key(|(before, _, _)| before.len())
}

fn literal(text: &str) -> Option<Part> {
    (!text.is_empty()).then(|| Part::Literal(text.to_owned()))
}

fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Reports whether a text can be the name of a secret.
pub fn is_secret_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= SECRET_NAME_CHARS_MAX
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&str, &str>) {
        let env = |name: &str| (name == "TOKEN").then(|| "s3cr3t".to_owned());
        let secrets = |name: &str| (name == "my.key-1").then(|| "h1dd3n".to_owned());
        let got =
            ConfigTemplate::parse(text).map_err(|fault| fault.to_string()).and_then(|template| {
                template.expand(&env, &secrets).map_err(|missing| missing.to_string())
            });
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
    fn secrets_are_replaced_like_variables() {
        check("Bearer ${secret:my.key-1}", Ok("Bearer h1dd3n"));
        check("${secret:my.key-1}:${env:TOKEN}:${secret:my.key-1}", Ok("h1dd3n:s3cr3t:h1dd3n"));
        check("${env:TOKEN}${secret:my.key-1}", Ok("s3cr3th1dd3n"));
        check(
            "${secret:TOKEN}",
            Err("secret 'TOKEN' is not set: run 'countersign secret set TOKEN'"),
        );
        check("a ${secret:b", Err("'${secret:' has no closing '}'"));
        let rule = "is not the name of a secret: use up to 100 letters, digits, '_', '-' and '.'";
        check("${secret:}", Err(&format!("'${{secret:}}' {rule}")));
        check("${secret:a b}", Err(&format!("'${{secret:a b}}' {rule}")));
        check("${secret:../x}", Err(&format!("'${{secret:../x}}' {rule}")));
        let long = "x".repeat(SECRET_NAME_CHARS_MAX + 1);
        assert!(!is_secret_name(&long) && is_secret_name(&long[1..]));
    }

    #[test]
    fn placeholders_taken_literally_are_text() {
        for (text, has_any) in [("a ${env:TOKEN}${secret:my.key-1}", true), ("a", false)] {
            let mut template = ConfigTemplate::parse(text).unwrap();
            assert_eq!(template.take_literally(), has_any);
            assert_eq!(template.expand(&|_| None, &|_| None).as_deref(), Ok(text));
            assert_eq!(template.secrets().chain(template.variables()).count(), 0);
        }
    }

    #[test]
    fn expansion_is_not_repeated() {
        let template = ConfigTemplate::parse("${env:A}").unwrap();
        let nested = template.expand(&|_| Some("${secret:B}".to_owned()), &|_| None);
        assert_eq!(nested.as_deref(), Ok("${secret:B}"));
    }
}
