//! The plan of a tool, which names the resources of its calls: compiled once and applied at each
//! call.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::canonical::{self, WEB};
use super::generic::GenericPlan;
use super::keys::KnownKeys;
use super::mapping::{RuleResource, TargetMapping, TargetRule};
use super::table::{self, KnownRule};
use super::template::{Found, TargetTemplate};
use super::{Access, RESOURCE_BYTES_MAX, Target, TargetBasis};

/// The parts of a tool that decide what its arguments mean.
#[derive(Clone, Copy, Debug)]
pub struct ToolShape<'a> {
    /// The server's name in the config.
    pub server: &'a str,
    /// The name that the server gives itself.
    pub info: Option<&'a str>,
    pub tool: &'a str,
    /// The properties of the tool's input schema.
    pub properties: &'a Map<String, Value>,
}

/// The circumstances of a call that its arguments do not show.
#[derive(Clone, Copy, Debug)]
pub struct CallPlace<'a> {
    /// The folder from which the server resolves relative paths, if it runs on this machine and
    /// its folder is known.
    pub root: Option<&'a str>,
    /// The folder that `~` means to the server, if it runs on this machine.
    pub home: Option<&'a str>,
    /// The server runs on this machine, so that its absolute paths are files here.
    pub is_local: bool,
    /// The key of the hash that replaces the query of an address.
    pub query_key: &'a [u8; 32],
}

/// The resources that a plan finds, the main one first. An access is given where the arguments
/// themselves show it, such as the source of a copy; elsewhere that of the call applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTargets {
    pub found: Vec<(Target, Option<Access>)>,
    pub basis: TargetBasis,
    /// A value that may name a resource cannot be read, so that one may be missing.
    pub is_partial: bool,
}

impl PlannedTargets {
    pub fn of(found: Vec<(Target, Option<Access>)>, basis: TargetBasis) -> PlannedTargets {
        PlannedTargets { found, basis, is_partial: false }
    }

    /// Adds what the addresses mean to others: the resources of known services that pages show, and
    /// the objects of the server's own buckets.
    fn with_shown(mut self, system: &str) -> PlannedTargets {
        let pages = self.found.iter().filter(|(target, _)| target.system() == WEB);
        let shown =
            |page: &Target| table::shown_at(page).or_else(|| canonical::stored_at(page, system));
        let shown: Vec<(Target, Option<Access>)> =
            pages.filter_map(|(target, access)| Some((shown(target)?, *access))).collect();
        for one in shown {
            if self.found.iter().all(|(had, _)| *had != one.0) {
                self.found.push(one);
            }
        }
        self
    }
}

/// Names the resources of one tool's calls. The operator's mapping comes first, then the built-in
/// table, the generic rules, and the keys that name a resource for any tool.
#[derive(Clone, Debug)]
pub struct TargetPlan {
    /// The system of what the generic rules and the keys name.
    system: String,
    /// In the order in which they are tried.
    rules: Vec<PlanRule>,
    generic: GenericPlan,
    keys: KnownKeys,
}

/// A rule of the mapping or the table that fits the tool.
#[derive(Clone, Debug)]
struct PlanRule {
    origin: TargetBasis,
    system: String,
    resource: RuleResource,
    reads: Vec<TargetTemplate>,
}

/// One rule of a plan, as people are shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStep {
    /// `config`, `builtin:github`, `generic:issue_number`, `keys`
    pub origin: String,
    /// The system of the resources that the templates name.
    pub system: String,
    /// Templates, the main resource first; empty for a rule by which the call touches nothing.
    pub resource: Vec<String>,
    /// Templates of resources that are only read.
    pub reads: Vec<String>,
}

/// The resources of a call, with the rule that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedTargets {
    pub planned: PlannedTargets,
    /// `None` if no rule applies.
    pub rule: Option<PlanStep>,
}

/// The origin of the operator's rules.
const CONFIG: &str = "config";

impl TargetPlan {
    /// Compiles the plan of a tool. The mapping is that of its server.
    pub fn compile(shape: &ToolShape<'_>, mapping: Option<&TargetMapping>) -> TargetPlan {
        let named = mapping.and_then(|mapping| mapping.system.as_deref());
        let system = named.unwrap_or(shape.server);
        let generic = GenericPlan::compile(shape);
        let mut rules: Vec<PlanRule> = Vec::new();
        if let Some(mapping) = mapping {
            let fits = mapping.rules.iter().filter(|rule| rule.tools.matches(shape.tool));
            rules.extend(fits.map(|rule| PlanRule {
                origin: TargetBasis::fixed(CONFIG),
                system: system.to_owned(),
                resource: rule.resource.clone(),
                reads: rule.reads.clone(),
            }));
        }
        if let Some(known) = shape.info.and_then(table::find) {
            let fits = known.rules.iter().filter(|known| known.rule.tools.matches(shape.tool));
            let origin = TargetBasis::new(format!("builtin:{}", known.key));
            rules.extend(fits.filter(|rule| rule.is_of(shape, &generic)).filter_map(|rule| {
                let theirs = rule.system.as_deref().or(known.system.as_deref());
                let system = named.or(theirs).unwrap_or(shape.server);
                PlanRule::fitted(&rule.rule, shape, &origin, system)
            }));
        }
        // No rule is tried after one that always decides.
        let last = rules.iter().position(|rule| rule.resource == RuleResource::Nothing);
        rules.truncate(last.map_or(rules.len(), |at| at + 1));
        let keys = KnownKeys::of(shape.properties);
        TargetPlan { system: system.to_owned(), rules, generic, keys }
    }

    /// Returns the resources that the arguments name. Neither their order nor anything outside the
    /// arguments and the place changes the result.
    pub fn find(&self, arguments: &Map<String, Value>, place: &CallPlace<'_>) -> PlannedTargets {
        self.decide(&self.keys.kept(arguments), place).1.with_shown(&self.system)
    }

    /// Returns the keys that the tool does not have, which name nothing: `query`, `filter.owner`.
    pub fn unknown_keys(&self, arguments: &Map<String, Value>) -> BTreeSet<String> {
        self.keys.unknown(arguments)
    }

    /// Reports whether an argument that could name a resource is too long for one.
    pub fn has_long_name(&self, arguments: &Map<String, Value>) -> bool {
        arguments.iter().any(|(key, value)| {
            value.as_str().is_some_and(|text| text.len() > RESOURCE_BYTES_MAX)
                && self.keys.has(key)
                && self.generic.names_briefly(key, value)
        })
    }

    /// Like `find`, with the rule that decided.
    pub fn explain(
        &self,
        arguments: &Map<String, Value>,
        place: &CallPlace<'_>,
    ) -> ExplainedTargets {
        let (rule, planned) = self.decide(&self.keys.kept(arguments), place);
        let planned = planned.with_shown(&self.system);
        let rule = match rule {
            Some(at) => Some(self.rules[at].step()),
            None if planned.found.is_empty() => None,
            None => Some(PlanStep {
                origin: planned.basis.as_str().to_owned(),
                system: self.system.clone(),
                resource: Vec::new(),
                reads: Vec::new(),
            }),
        };
        ExplainedTargets { planned, rule }
    }

    /// Returns the rules of the plan, in the order in which they are tried.
    pub fn steps(&self) -> Vec<PlanStep> {
        let mut steps: Vec<PlanStep> = self.rules.iter().map(PlanRule::step).collect();
        let decides = self.rules.last().is_some_and(|last| last.resource == RuleResource::Nothing);
        let keys = self.generic.keys();
        if !decides && !keys.is_empty() {
            steps.push(PlanStep {
                origin: "generic".to_owned(),
                system: self.system.clone(),
                resource: keys.iter().map(|key| format!("{{{key}}}")).collect(),
                reads: Vec::new(),
            });
        }
        steps
    }

    /// Puts what the generic rules found in the server into the system that the operator named.
    fn renamed(&self, mut planned: PlannedTargets) -> PlannedTargets {
        if self.system != self.generic.system() {
            for (target, _) in &mut planned.found {
                if target.system == self.generic.system() {
                    target.system.clone_from(&self.system);
                }
            }
        }
        planned
    }

    /// Returns the result, and the place of the rule that decided.
    fn decide(
        &self,
        arguments: &Map<String, Value>,
        place: &CallPlace<'_>,
    ) -> (Option<usize>, PlannedTargets) {
        for (at, rule) in self.rules.iter().enumerate() {
            if let Some(planned) = rule.find(arguments, place) {
                return (Some(at), planned);
            }
        }
        let mut is_partial = false;
        let planned = match self.generic.find(arguments, place, &mut is_partial) {
            Some(planned) => self.renamed(planned),
            None => match super::extract(&self.system, "", arguments) {
                Some(target) => {
                    PlannedTargets::of(vec![(target, None)], TargetBasis::fixed("keys"))
                }
                None => PlannedTargets::of(Vec::new(), TargetBasis::NO_RESOURCE),
            },
        };
        (None, PlannedTargets { is_partial, ..planned })
    }
}

impl KnownRule {
    /// Reports whether the rule may speak for a tool. One that names nothing would hide what a
    /// server by the same name touches, so its tool must have no argument that names a resource but
    /// those of the known server's.
    fn is_of(&self, shape: &ToolShape<'_>, generic: &GenericPlan) -> bool {
        self.rule.resource != RuleResource::Nothing
            || !shape.properties.is_empty() && generic.names_only(shape.properties, &self.with)
    }
}

impl PlanRule {
    /// Returns a rule of the table if the tool has all arguments of its main template.
    fn fitted(
        rule: &TargetRule,
        shape: &ToolShape<'_>,
        origin: &TargetBasis,
        system: &str,
    ) -> Option<PlanRule> {
        let fit = |template: &TargetTemplate| template.fitted(shape.properties);
        let resource = match &rule.resource {
            RuleResource::Nothing => RuleResource::Nothing,
            RuleResource::Named(templates) => {
                let (main, others) = templates.split_first()?;
                let main = fit(main)?;
                let others = others.iter().filter_map(fit);
                RuleResource::Named(std::iter::once(main).chain(others).collect())
            }
        };
        let reads = rule.reads.iter().filter_map(fit).collect();
        Some(PlanRule { origin: origin.clone(), system: system.to_owned(), resource, reads })
    }

    fn step(&self) -> PlanStep {
        let texts = |templates: &[TargetTemplate]| {
            templates.iter().map(|template| template.text().to_owned()).collect()
        };
        PlanStep {
            origin: self.origin.as_str().to_owned(),
            system: self.system.clone(),
            resource: match &self.resource {
                RuleResource::Nothing => Vec::new(),
                RuleResource::Named(templates) => texts(templates),
            },
            reads: texts(&self.reads),
        }
    }

    /// Returns `None` if the rule does not apply.
    fn find(
        &self,
        arguments: &Map<String, Value>,
        place: &CallPlace<'_>,
    ) -> Option<PlannedTargets> {
        let system = &self.system;
        let RuleResource::Named(templates) = &self.resource else {
            let basis = TargetBasis::new(format!("{}: names no resource", self.origin.as_str()));
            return Some(PlannedTargets::of(Vec::new(), basis));
        };
        let (main, others) = templates.split_first()?;
        let mut found = Found::default();
        if !main.apply(arguments, system, place, &mut found) {
            return None;
        }
        for template in others {
            template.apply(arguments, system, place, &mut found);
        }
        let written = found.targets.len();
        for template in &self.reads {
            template.apply(arguments, system, place, &mut found);
        }
        let Found { mut targets, is_partial } = found;
        targets[written..].iter_mut().for_each(|(_, access)| *access = Some(Access::Read));
        Some(PlannedTargets { found: targets, basis: self.origin.clone(), is_partial })
    }
}
