//! Checks the options that a step gives to its agent's program: when a workflow is read, except
//! those that its templates leave open, and again when the step starts. Under isolation, only
//! options known not to re-enable the program's own tools are allowed: new versions bring new
//! flags, and a list of harmful ones would always be outdated.

use serde_json::{Map, Value};

use super::ProgramRules;
use super::settings::{ConfigValues, is_safe_codex_path, unsafe_part};
use crate::Template;
use crate::plan::{Options, Provider};

/// The options of a step that its agent's program gets, in the file's order.
pub struct ProgramOptions<'a> {
    provider: Provider,
    model: Option<OptionText<'a>>,
    args: Vec<OptionText<'a>>,
    env: Vec<(&'a str, OptionText<'a>)>,
    config: Option<&'a Map<String, Value>>,
    values: ConfigValues,
}

/// A text of an option. The value of a template is unknown until the step runs.
#[derive(Clone, Copy, Debug)]
struct OptionText<'a> {
    /// The text before the first value.
    known: &'a str,
    is_complete: bool,
}

/// The option that a fault is in; numbers count from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionPart {
    Model,
    Arg(usize),
    /// The name of a variable.
    Variable(usize),
    /// The value of a variable.
    Env(usize),
    Config(usize),
}

/// An option that cannot be used, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionFault {
    pub part: OptionPart,
    pub message: String,
}

impl<'a> OptionText<'a> {
    fn of(template: &'a Template) -> OptionText<'a> {
        let (known, is_complete) = template.known();
        OptionText { known, is_complete }
    }

    fn whole(text: &'a str) -> OptionText<'a> {
        OptionText { known: text, is_complete: true }
    }

    /// Splits `--flag=value`. Returns `None` if the flag is not yet known.
    fn flag(self) -> Option<(&'a str, Option<OptionText<'a>>)> {
        match self.known.split_once('=') {
            Some((flag, value)) if flag.starts_with("--") => {
                Some((flag, Some(OptionText { known: value, ..self })))
            }
            Some(_) | None => self.is_complete.then_some((self.known, None)),
        }
    }

    /// Returns the first segment of a config path, if it is known.
    fn setting(self) -> Option<&'a str> {
        let end = self.known.find(['.', '=']);
        let end = end.or_else(|| self.is_complete.then_some(self.known.len()))?;
        Some(self.known[..end].trim())
    }

    /// Returns a config path, if all of it is known.
    fn path(self) -> Option<&'a str> {
        let path = self.known.split_once('=').map(|(path, _)| path);
        path.or_else(|| self.is_complete.then_some(self.known))
    }
}

impl<'a> ProgramOptions<'a> {
    /// Returns the options as a file has them.
    pub(crate) fn written(provider: Provider, options: &'a Options) -> ProgramOptions<'a> {
        let env = options.env.iter().map(|(name, value)| (&**name, OptionText::of(value)));
        ProgramOptions {
            provider,
            model: options.model.as_ref().map(OptionText::of),
            args: options.args.iter().map(OptionText::of).collect(),
            env: env.collect(),
            config: options.config.as_ref(),
            values: ConfigValues::Written,
        }
    }

    /// Returns the options of a step that starts: every value is filled in.
    pub fn filled(
        provider: Provider,
        model: Option<&'a str>,
        args: &'a [String],
        env: &'a [(String, String)],
        config: Option<&'a Map<String, Value>>,
    ) -> ProgramOptions<'a> {
        let env = env.iter().map(|(name, value)| (&**name, OptionText::whole(value)));
        ProgramOptions {
            provider,
            model: model.map(OptionText::whole),
            args: args.iter().map(|arg| OptionText::whole(arg)).collect(),
            env: env.collect(),
            config,
            values: ConfigValues::Filled,
        }
    }

    /// Returns the options that no program can be given, isolated or not.
    pub fn unusable(&self) -> Vec<OptionFault> {
        let mut faults = Vec::new();
        let is_program = self.provider != Provider::OpenAiCompatible;
        if is_program && self.model.is_some_and(|model| model.known.starts_with('-')) {
            // Some programs would read it as a separate flag.
            faults.push(fault(OptionPart::Model, "a model's name cannot begin with '-'"));
        }
        let texts = self.args.iter().enumerate().map(|(at, arg)| (OptionPart::Arg(at), arg));
        let values = self.env.iter().enumerate().map(|(at, (_, text))| (OptionPart::Env(at), text));
        for (part, text) in texts.chain(values) {
            if text.known.contains('\0') {
                faults.push(fault(part, "a NUL character cannot be passed to a program"));
            }
        }
        for (at, (name, _)) in self.env.iter().enumerate() {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if name.is_empty() || !name.chars().all(is_plain) {
                let message = "a variable name must consist of letters, digits and '_'";
                faults.push(fault(OptionPart::Variable(at), message));
            }
            if name.starts_with("COUNTERSIGN_") {
                let message = "variables named COUNTERSIGN_… are not passed to agents";
                faults.push(fault(OptionPart::Variable(at), message));
            }
        }
        faults
    }

    /// Returns the options that an isolated program cannot be given.
    pub fn loosening(&self) -> Vec<OptionFault> {
        let rules = ProgramRules::of(self.provider);
        let mut faults = self.loosening_args(rules);
        for (at, (name, _)) in self.env.iter().enumerate() {
            if !rules.may_set(name) {
                let message = "this variable affects the program's own tools or settings";
                faults.push(fault(OptionPart::Variable(at), message));
            }
        }
        for (at, (key, value)) in self.config.into_iter().flatten().enumerate() {
            let part = OptionPart::Config(at);
            if !rules.config.contains(&key.as_str()) {
                faults.push(unsafe_setting(part, key));
            } else if let Some(name) = unsafe_part(self.provider, (key, value), self.values) {
                faults.push(unsafe_setting(part, &name));
            }
        }
        faults
    }

    fn loosening_args(&self, rules: &ProgramRules) -> Vec<OptionFault> {
        let mut faults = Vec::new();
        let mut args = self.args.iter().enumerate();
        while let Some((at, arg)) = args.next() {
            let part = OptionPart::Arg(at);
            // Whether the next argument is this one's value depends on this one.
            let Some((flag, value)) = arg.flag() else { return faults };
            if self.is_setting(flag) {
                let setting = value.or_else(|| args.next().map(|(_, arg)| *arg));
                let setting = setting.unwrap_or(OptionText::whole(""));
                let key = setting.setting().filter(|key| !rules.config.contains(key));
                let path = setting.path().filter(|path| !is_safe_codex_path(path));
                if let Some(name) = key.or(path) {
                    faults.push(unsafe_setting(part, &format!("{flag} {name}")));
                }
            } else if rules.valued.contains(&flag) {
                let is_value = |(_, next): (usize, &OptionText<'_>)| !next.known.starts_with('-');
                if value.is_none() && !args.next().is_some_and(is_value) {
                    faults.push(fault(part, format!("{flag} has no value")));
                }
            } else if value.is_some() || !rules.switches.contains(&flag) {
                faults.push(unsafe_setting(part, flag));
            }
        }
        faults
    }

    /// Reports whether a flag sets a value of the program's config. The list of harmless settings
    /// applies to it, too.
    fn is_setting(&self, flag: &str) -> bool {
        self.provider == Provider::Codex && matches!(flag, "-c" | "--config")
    }
}

fn unsafe_setting(part: OptionPart, name: &str) -> OptionFault {
    fault(part, format!("{name} is not known to be safe under isolation"))
}

fn fault(part: OptionPart, message: impl Into<String>) -> OptionFault {
    OptionFault { part, message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loosening(provider: Provider, args: &str) -> Vec<OptionFault> {
        let args = args.split(' ').map(|arg| Template::parse(arg).unwrap()).collect();
        ProgramOptions::written(provider, &Options { args, ..Options::default() }).loosening()
    }

    #[test]
    fn only_flags_that_are_known_to_be_harmless_pass() {
        for (provider, args, faults) in [
            (Provider::Claude, "--model opus --max-turns=3 --verbose", 0),
            (Provider::Claude, "--tools default", 2),
            (Provider::Claude, "--tools=default", 1),
            (Provider::Claude, "--allowed-tools Bash", 2),
            (Provider::Claude, "--dangerously-skip-permissions", 1),
            (Provider::Claude, "--settings {}", 2),
            (Provider::Claude, "--plugin-dir=x --mcp-config=y", 2),
            (Provider::Claude, "--verbose=true", 1),
            (Provider::Claude, "--model --tools", 1),
            (Provider::Claude, "--model", 1),
            (Provider::Claude, "do this", 2),
            (Provider::Gemini, "-m flash --debug", 0),
            (Provider::Gemini, "--yolo", 1),
            (Provider::Gemini, "-y", 1),
            (Provider::Gemini, "-dy", 1),
            (Provider::Gemini, "--allowedMcpServerNames=evil", 1),
            (Provider::Gemini, "--policy=x --admin-policy=y -e", 3),
            (Provider::Codex, "-m gpt -c model_reasoning_effort=high", 0),
            (Provider::Codex, "--config=model_provider=x", 0),
            (Provider::Codex, "-c features.shell_tool=true", 1),
            (Provider::Codex, "-c mcp_servers.evil.command=sh", 1),
            (Provider::Codex, "-c model_providers.x.base_url=u", 0),
            (Provider::Codex, "-c model_providers.x.http_headers.a=b", 0),
            (Provider::Codex, "-c model_providers.x.auth.command=sh", 1),
            (Provider::Codex, "-c model_providers.x={auth={command=\"sh\"}}", 1),
            (Provider::Codex, "--config=model_providers={}", 1),
            (Provider::Codex, "-c", 1),
            (Provider::Codex, "-cfeatures.shell_tool=true", 1),
            (Provider::Codex, "--enable=shell_tool", 1),
            (Provider::Codex, "-s", 1),
            (Provider::Codex, "--dangerously-bypass-approvals-and-sandbox", 1),
            (Provider::OpenCode, "-m a/b --variant high", 0),
            (Provider::OpenCode, "-c model", 2),
            (Provider::OpenCode, "--agent=build", 1),
            (Provider::OpenCode, "--auto", 1),
            (Provider::OpenCode, "--no-pure", 1),
        ] {
            let found = loosening(provider, args);
            assert_eq!(found.len(), faults, "{provider:?} {args}: {found:?}");
            let words: Vec<String> = args.split(' ').map(str::to_owned).collect();
            let filled = ProgramOptions::filled(provider, None, &words, &[], None).loosening();
            assert_eq!(filled, found, "{provider:?} {args}");
        }
    }

    #[test]
    fn what_a_template_will_become_is_left_to_the_step() {
        for (provider, args, faults) in [
            (Provider::Claude, "--model {{.inputs.m}} --verbose", 0),
            (Provider::Claude, "--model={{.inputs.m}} --yolo", 1),
            (Provider::Claude, "--tools={{.inputs.m}}", 1),
            (Provider::Claude, "--yolo {{.inputs.m}} --yolo", 1),
            (Provider::Claude, "{{.inputs.m}} --yolo", 0),
            (Provider::Claude, "--{{.inputs.m}}", 0),
            (Provider::Claude, "--model -{{.inputs.m}}", 1),
            (Provider::Codex, "-c {{.inputs.m}}", 0),
            (Provider::Codex, "-c model{{.inputs.m}}", 0),
            (Provider::Codex, "-c model={{.inputs.m}}", 0),
            (Provider::Codex, "-c features.{{.inputs.m}}", 1),
            (Provider::Codex, "-c model_providers.x.{{.inputs.m}}", 0),
            (Provider::Codex, "-c model_providers.x.auth={{.inputs.m}}", 1),
            (Provider::Codex, "--config=features.{{.inputs.m}}", 1),
        ] {
            let found = loosening(provider, args);
            assert_eq!(found.len(), faults, "{provider:?} {args}: {found:?}");
        }
        let args = ["{{.inputs.m}}".to_owned()];
        let filled = ProgramOptions::filled(Provider::Claude, None, &args, &[], None);
        assert_eq!(filled.loosening().len(), 1, "a value that looks like a template");
    }

    #[test]
    fn variables_that_steer_the_program_are_refused() {
        for (provider, name, refused) in [
            (Provider::Claude, "ANTHROPIC_BASE_URL", false),
            (Provider::Claude, "CLAUDE_CODE_USE_BEDROCK", false),
            (Provider::Claude, "CLAUDE_CODE_SIMPLE", true),
            (Provider::Claude, "CLAUDE_CODE_DISABLE_ATTACHMENTS", true),
            (Provider::Claude, "NODE_OPTIONS", true),
            (Provider::Claude, "HOME", true),
            (Provider::Claude, "ENABLE_PROMPT_CACHING_1H", false),
            (Provider::Claude, "ENABLE_LSP_TOOL", true),
            (Provider::Claude, "SDK_NATIVE_BIN", true),
            (Provider::Claude, "SESSION_INGRESS_URL", true),
            (Provider::Claude, "PYTHONPATH", true),
            (Provider::Claude, "AWS_REGION", false),
            (Provider::Claude, "AWS_CONFIG_FILE", true),
            (Provider::Claude, "ENV", true),
            (Provider::Claude, "ENVIRONMENT", false),
            (Provider::Gemini, "GEMINI_API_KEY", false),
            (Provider::Gemini, "GEMINI_CLI_HOME", true),
            (Provider::Gemini, "GEMINI_CLI_SYSTEM_SETTINGS_PATH", true),
            (Provider::Codex, "OPENAI_API_KEY", false),
            (Provider::Codex, "CODEX_HOME", false),
            (Provider::Codex, "CODEX_SANDBOX", true),
            (Provider::Codex, "PATH", true),
            (Provider::OpenCode, "OPENCODE_API_KEY", false),
            (Provider::OpenCode, "OPENCODE_PERMISSION", true),
            (Provider::OpenCode, "OPENCODE_CONFIG_CONTENT", true),
            (Provider::OpenCode, "XDG_CONFIG_HOME", true),
            (Provider::OpenCode, "LD_PRELOAD", true),
            (Provider::OpenCode, "DYLD_INSERT_LIBRARIES", true),
            (Provider::OpenCode, "BROWSERSLIST_DANGEROUS_EXTEND", true),
            (Provider::Gemini, "OPENSSL_CONF", true),
            (Provider::Gemini, "BASH_FUNC_git", true),
            (Provider::Gemini, "PS4", true),
        ] {
            let env = [(name.to_owned(), "x".to_owned())];
            let found = ProgramOptions::filled(provider, None, &[], &env, None).loosening();
            assert_eq!(!found.is_empty(), refused, "{provider:?} {name}");
        }
    }

    #[test]
    fn options_that_no_program_can_be_given_are_faults_in_every_mode() {
        let args = ["a\0".to_owned()];
        let env = [
            ("A=B".to_owned(), "x".to_owned()),
            ("COUNTERSIGN_HOME".to_owned(), "x".to_owned()),
            ("A".to_owned(), "\0".to_owned()),
        ];
        let filled = ProgramOptions::filled(Provider::Gemini, Some("--yolo"), &args, &env, None);
        let parts: Vec<OptionPart> = filled.unusable().iter().map(|fault| fault.part).collect();
        let env = [OptionPart::Env(2), OptionPart::Variable(0), OptionPart::Variable(1)];
        assert_eq!(parts[..2], [OptionPart::Model, OptionPart::Arg(0)]);
        assert_eq!(parts[2..], env);
    }
}
