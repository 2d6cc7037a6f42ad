//! The environment that servers and plugins inherit from the gate: by default only variables that
//! programs commonly need and that hold no keys.

use std::ffi::OsString;
use std::fmt;

/// Variables that every child inherits.
const USUAL: [&str; 9] =
    ["PATH", "HOME", "USER", "SHELL", "LANG", "TZ", "TERM", "TMPDIR", "NODE_EXTRA_CA_CERTS"];

/// Prefixes of further variables that every child inherits.
const USUAL_PREFIXES: [&str; 3] = ["LC_", "XDG_", "SSL_CERT_"];

/// The suffix of the variables that name proxies; programs read them in lower case too.
const USUAL_SUFFIX: &str = "_PROXY";

/// Reports whether a variable is one of the gate's own that may hold a key: one of its settings, or
/// the headers of its span exporter. No server or command inherits it; an entry's `env` may pass it
/// on.
pub fn is_withheld(variable: &str) -> bool {
    let is_for_collector =
        variable.starts_with("OTEL_EXPORTER_OTLP_") && variable.ends_with("HEADERS");
    variable.starts_with("COUNTERSIGN_") || is_for_collector
}

fn is_usual(variable: &str) -> bool {
    USUAL.contains(&variable)
        || USUAL_PREFIXES.iter().any(|prefix| variable.starts_with(prefix))
        || variable.to_ascii_uppercase().ends_with(USUAL_SUFFIX)
}

/// The environment of a child.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    pub variables: Vec<(OsString, OsString)>,
    pub withheld: Withheld,
}

/// The names of the gate's variables that a child did not inherit, without the gate's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Withheld(Vec<String>);

impl Environment {
    /// Keeps the usual variables of the gate's environment.
    pub fn usual(all: impl Iterator<Item = (OsString, OsString)>) -> Environment {
        let (variables, other) = Environment::whole(all)
            .variables
            .into_iter()
            .partition(|(name, _)| is_usual(&name.to_string_lossy()));
        let other: Vec<_> = other;
        let mut names: Vec<String> =
            other.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        Environment { variables, withheld: Withheld(names) }
    }

    /// Keeps all of the gate's environment, except the gate's own variables.
    pub fn whole(all: impl Iterator<Item = (OsString, OsString)>) -> Environment {
        let kept = all.filter(|(name, _)| !is_withheld(&name.to_string_lossy()));
        Environment { variables: kept.collect(), withheld: Withheld::default() }
    }

    /// Sets a variable, in place of an inherited one.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.retain(|(known, _)| known != name);
        self.withheld.0.retain(|known| known != name);
        self.variables.push((name.into(), value.into()));
    }
}

impl Withheld {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a hint at the variables that a failed child mentioned in its output; empty if there
    /// are none.
    pub fn hint(&self, output: &[String]) -> String {
        let is_mentioned = |name: &&String| output.iter().any(|line| mentions(line, name));
        let names: Vec<&str> = self.0.iter().filter(is_mentioned).map(String::as_str).collect();
        match names.as_slice() {
            [] => String::new(),
            names => format!(
                "; not inherited from the gate: {}: pass it on with \"env\": {{\"{}\": \"${{env:{}}}\"}}",
                names.join(", "),
                names[0],
                names[0]
            ),
        }
    }
}

/// Reports whether a line has the name of a variable as a whole word.
fn mentions(line: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.split(|c: char| !is_part(c)).any(|word| word == name)
}

impl fmt::Display for Withheld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(names: &[&str]) -> impl Iterator<Item = (OsString, OsString)> {
        let pairs: Vec<_> = names.iter().map(|name| (name.into(), "x".into())).collect();
        pairs.into_iter()
    }

    fn names(environment: &Environment) -> Vec<String> {
        let names = environment.variables.iter().map(|(name, _)| name.to_string_lossy());
        names.map(String::from).collect()
    }

    #[test]
    fn what_may_hold_a_key_of_the_gate_is_inherited_by_nobody() {
        for (variable, expected) in [
            ("COUNTERSIGN_API_KEY", true),
            ("COUNTERSIGN_HOME", true),
            ("OTEL_EXPORTER_OTLP_HEADERS", true),
            ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", true),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", false),
            ("OTEL_SERVICE_NAME", false),
            ("MY_HEADERS", false),
            ("PATH", false),
        ] {
            assert_eq!(is_withheld(variable), expected, "{variable}");
        }
    }

    #[test]
    fn only_usual_variables_are_inherited() {
        let usual = [
            "PATH",
            "HOME",
            "USER",
            "SHELL",
            "LANG",
            "LC_ALL",
            "TZ",
            "TERM",
            "TMPDIR",
            "XDG_DATA_HOME",
            "HTTPS_PROXY",
            "no_proxy",
            "SSL_CERT_FILE",
            "NODE_EXTRA_CA_CERTS",
        ];
        let other = ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "LD_PRELOAD", "NODE_OPTIONS", "path"];
        let own = ["COUNTERSIGN_API_KEY"];
        let all = [&usual[..], &other, &own].concat();
        let environment = Environment::usual(gate(&all));
        assert_eq!(names(&environment), usual);
        assert_eq!(environment.withheld.to_string(), other.join(", "));
        let whole = Environment::whole(gate(&all));
        assert_eq!(names(&whole), [&usual[..], &other].concat());
        assert!(whole.withheld.is_empty());
    }

    #[test]
    fn what_env_names_is_set_and_no_longer_missing() {
        let mut environment = Environment::usual(gate(&["PATH", "KEY", "OTHER"]));
        environment.set("KEY", "mine");
        environment.set("PATH", "/bin");
        assert_eq!(names(&environment), ["KEY", "PATH"]);
        assert_eq!(environment.withheld.to_string(), "OTHER");
    }

    #[test]
    fn the_hint_names_what_the_child_missed() {
        let withheld = Environment::usual(gate(&["KEY", "MY_KEY", "OTHER"])).withheld;
        assert_eq!(withheld.hint(&["no MY_KEYS".to_owned()]), "");
        assert_eq!(
            withheld.hint(&["MY_KEY is not set".to_owned()]),
            "; not inherited from the gate: MY_KEY: pass it on with \"env\": {\"MY_KEY\": \"${env:MY_KEY}\"}"
        );
    }
}
