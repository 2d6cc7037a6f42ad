//! The operator's mapping of a server's arguments to resources, from the configuration.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

use super::canonical::WEB;
use super::template::TargetTemplate;
use super::{FILESYSTEM, SYSTEM_BYTES_MAX};

/// More rules than any server has tools; every call may try all that match its tool.
pub const MAPPING_RULES_MAX: usize = 500;

/// The longest list of templates in one rule: as many as a call can touch resources.
pub const RULE_TEMPLATES_MAX: usize = 9;

const PATTERN_CHARS_MAX: usize = 500;

/// The section `targets` of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetMapping {
    /// Replaces the server's name as the system of its resources.
    pub system: Option<String>,
    pub rules: Vec<TargetRule>,
}

/// Names what the calls of some tools touch. The first rule that names something decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRule {
    pub tools: ToolPattern,
    pub resource: RuleResource,
    /// Resources that the call only reads, such as the source of a copy.
    pub reads: Vec<TargetTemplate>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleResource {
    /// The calls touch nothing that can be named; no other rule is tried.
    Nothing,
    /// The first names the main resource and must apply; the others are added where they apply.
    Named(Vec<TargetTemplate>),
}

/// Names of tools with `*` for any text and `|` between alternatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolPattern(String);

impl ToolPattern {
    /// Returns the reason if the pattern is not valid.
    pub fn parse(text: &str) -> Result<ToolPattern, String> {
        if text.chars().count() > PATTERN_CHARS_MAX {
            return Err(format!("a pattern has at most {PATTERN_CHARS_MAX} characters"));
        }
        if text.split('|').any(|part| part.trim().is_empty() || part.trim() != part) {
            let example = "expected names of tools, such as 'get_*' or 'read_file|write_file'";
            return Err(example.to_owned());
        }
        Ok(ToolPattern(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn matches(&self, tool: &str) -> bool {
        self.0.split('|').any(|pattern| glob(pattern.as_bytes(), tool.as_bytes()))
    }
}

/// Reports whether a text fits a pattern, in which `*` is any text. Works without recursion: on a
/// mismatch, the last `*` takes one more byte.
pub fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut next, mut star) = (0, 0, None);
    while at < text.len() {
        match pattern.get(next) {
            Some(b'*') => {
                star = Some((next, at));
                next += 1;
            }
            Some(byte) if *byte == text[at] => {
                at += 1;
                next += 1;
            }
            _ => match star {
                Some((place, taken)) => {
                    star = Some((place, taken + 1));
                    at = taken + 1;
                    next = place + 1;
                }
                None => return false,
            },
        }
    }
    pattern[next..].iter().all(|byte| *byte == b'*')
}

/// Returns the reason if text cannot be the system of a mapping.
pub fn system_fault(text: &str) -> Option<String> {
    if text.trim().is_empty() || text.trim() != text || text.contains(char::is_control) {
        return Some("expected the name of a system, such as \"github.com\"".to_owned());
    }
    if text.len() > SYSTEM_BYTES_MAX {
        return Some(format!("a system has at most {SYSTEM_BYTES_MAX} bytes"));
    }
    let kept = [FILESYSTEM, WEB].contains(&text);
    kept.then(|| {
        format!(
            "'{text}' is reserved; use the filters 'file' and 'url' for files of this machine \
             and for addresses"
        )
    })
}

impl TargetMapping {
    /// Returns the mapping in the form of the configuration.
    pub fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.extend(self.system.iter().map(|system| ("system".to_owned(), json!(system))));
        let rules: Vec<Value> = self.rules.iter().map(TargetRule::to_json).collect();
        members.insert("rules".to_owned(), Value::Array(rules));
        Value::Object(members)
    }
}

impl TargetRule {
    /// Returns every template of the rule.
    pub fn templates(&self) -> impl Iterator<Item = &TargetTemplate> {
        let named = match &self.resource {
            RuleResource::Nothing => &[][..],
            RuleResource::Named(templates) => templates,
        };
        named.iter().chain(&self.reads)
    }

    fn to_json(&self) -> Value {
        let mut members = Map::new();
        members.insert("tools".to_owned(), json!(self.tools.as_str()));
        let resource = match &self.resource {
            RuleResource::Nothing => Value::Null,
            RuleResource::Named(templates) => texts(templates),
        };
        members.insert("resource".to_owned(), resource);
        if !self.reads.is_empty() {
            members.insert("reads".to_owned(), texts(&self.reads));
        }
        Value::Object(members)
    }
}

/// One template is written as text, several as a list.
fn texts(templates: &[TargetTemplate]) -> Value {
    match templates {
        [one] => json!(one.text()),
        several => several.iter().map(|template| json!(template.text())).collect(),
    }
}

/// A rule of a mapping that does not fit the tools of its server, so that it has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfitTargetRule {
    /// The pattern of the rule.
    pub tools: String,
    /// The argument that none of the tools has; `None` if the pattern matches no tool.
    pub field: Option<String>,
    /// Suggestions for the intended name.
    pub near: Vec<String>,
}

impl std::fmt::Display for UnfitTargetRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let UnfitTargetRule { tools, field, near } = self;
        let near = text::near::hint(near);
        match field {
            Some(field) => write!(
                f,
                "targets: the rule for '{tools}' uses '{field}', but no tool that it matches has \
                 such an argument{near}"
            ),
            None => {
                write!(f, "targets: '{tools}' matches no tool that the server lists{near}")
            }
        }
    }
}

/// The parts of a tool that rules are fitted to: its name and the properties of its input schema.
pub type FitTool<'a> = (&'a str, Vec<&'a str>);

/// Suggestions for an unknown name.
const NEAR_MAX: usize = 3;

impl TargetMapping {
    /// Returns the rules that match no tool, and the fields that no matched tool has.
    pub fn unfit(&self, tools: &[FitTool<'_>]) -> Vec<UnfitTargetRule> {
        let mut unfit = Vec::new();
        for rule in &self.rules {
            let matched: Vec<&FitTool<'_>> =
                tools.iter().filter(|(name, _)| rule.tools.matches(name)).collect();
            let pattern = rule.tools.as_str();
            if matched.is_empty() {
                let names = tools.iter().map(|(name, _)| *name);
                unfit.push(UnfitTargetRule {
                    tools: pattern.to_owned(),
                    field: None,
                    near: owned(text::near::names(pattern, names, NEAR_MAX)),
                });
                continue;
            }
            let known = || matched.iter().flat_map(|(_, properties)| properties.iter().copied());
            for members in rule.templates().flat_map(TargetTemplate::members) {
                let members: Vec<&str> = members.collect();
                let [first, ..] = members[..] else { continue };
                if members.iter().any(|member| known().any(|property| property == *member)) {
                    continue;
                }
                let field = Some(members.join("|"));
                let near = owned(text::near::names(first, known(), NEAR_MAX));
                let fault = UnfitTargetRule { tools: pattern.to_owned(), field, near };
                if !unfit.contains(&fault) {
                    unfit.push(fault);
                }
            }
        }
        unfit
    }
}

fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}
