//! A step's model settings, from its options or else from environment variables, validated.

use std::ffi::OsString;

use mcp::object::{ObjectMembers, quote};
use url::{Host, Position, Url};
use workflow::ResolvedOptions;

use super::key::Key;

const TURNS: u32 = 25;

/// The path appended to the base URL that people know.
const PATH: &str = "/chat/completions";

/// The variable that holds the key, if the options have none.
pub const KEY_VARIABLE: &str = "OPENAI_API_KEY";

pub struct ModelSettings {
    pub(super) url: Url,
    pub key: Key,
    pub model: String,
    pub max_turns: u32,
    pub stream: bool,
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_completion_tokens: Option<u32>,
}

impl ModelSettings {
    /// Validates the settings; the error names every fault.
    pub fn new(
        options: &ResolvedOptions,
        env: &[(OsString, OsString)],
    ) -> Result<ModelSettings, String> {
        let mut faults = Vec::new();
        let base_url = either(options.base_url.as_deref(), env, "OPENAI_BASE_URL");
        let url = base_url.ok_or_else(|| missing("base_url", "OPENAI_BASE_URL"));
        let url = url.and_then(|base| address(&base)).map_err(|fault| faults.push(fault)).ok();
        let model = either(options.model.as_deref(), env, "OPENAI_MODEL");
        if model.is_none() {
            faults.push(missing("model", "OPENAI_MODEL"));
        }
        let key = options.api_key.as_ref().map(|key| key.reveal());
        let key = Key::new(either(key, env, KEY_VARIABLE).as_deref());
        if let Err(fault) = key.header() {
            faults.push(fault.to_owned());
        }
        match (url, model) {
            (Some(url), Some(model)) if faults.is_empty() => Ok(ModelSettings {
                url,
                key,
                model,
                max_turns: options.max_turns.unwrap_or(TURNS),
                stream: options.stream.unwrap_or(true),
                temperature: options.temperature,
                top_p: options.top_p,
                max_completion_tokens: options.max_completion_tokens,
            }),
            _ => Err(faults.join("; ")),
        }
    }

    /// Returns the URL for people, without its query, which may hold a key.
    pub fn shown_url(&self) -> String {
        let query = if self.url.query().is_some() { "?…" } else { "" };
        format!("{}{query}", &self.url[..Position::AfterPath])
    }

    /// Returns a warning if everything is sent over the network unencrypted.
    pub fn warning(&self) -> Option<String> {
        let is_near = match self.url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        let is_open = self.url.scheme() == "http" && !is_near;
        is_open.then(|| {
            let what =
                if self.key.is_given() { "the key and all messages" } else { "all messages" };
            let host = self.url.host_str().unwrap_or("?");
            format!("base_url uses http: {what} can be read on the way to {host}")
        })
    }

    /// Builds the body of a request. The parts are already JSON texts.
    pub(super) fn body(&self, messages: &[String], tools: &[String], usage: UsageReport) -> String {
        let mut body = ObjectMembers::default();
        body.set("model", quote(&self.model));
        body.set("messages", format!("[{}]", messages.join(",")));
        if !tools.is_empty() {
            body.set("tools", format!("[{}]", tools.join(",")));
            body.set("tool_choice", r#""auto""#);
        }
        for (name, number) in [("temperature", self.temperature), ("top_p", self.top_p)] {
            if let Some(number) = number {
                body.set(name, serde_json::Value::from(number).to_string());
            }
        }
        if let Some(tokens) = self.max_completion_tokens {
            body.set("max_completion_tokens", tokens.to_string());
        }
        if self.stream {
            body.set("stream", "true");
            if usage == UsageReport::Wanted {
                body.set("stream_options", r#"{"include_usage":true}"#);
            }
        }
        body.write_text()
    }
}

/// The choice whether to request a stream's usage; a few servers reject such a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UsageReport {
    Wanted,
    NotAsked,
}

/// Returns an option, or else a variable. An empty value counts as missing.
fn either(option: Option<&str>, env: &[(OsString, OsString)], name: &str) -> Option<String> {
    let variable = || {
        let (_, value) = env.iter().find(|(known, _)| known == name)?;
        value.to_str()
    };
    let is_given = |text: &&str| !text.trim().is_empty();
    option.filter(is_given).or_else(|| variable().filter(is_given)).map(str::to_owned)
}

fn missing(option: &str, variable: &str) -> String {
    format!("{option} is missing: set options.{option} or {variable}")
}

/// Returns the URL for requests. The error never contains the address, which may hold a key.
fn address(base: &str) -> Result<Url, String> {
    const EXAMPLE: &str = "such as https://api.openai.com/v1";
    let no_url = || format!("base_url is not an http or https URL {EXAMPLE}");
    let mut url = Url::parse(base.trim()).map_err(|_| no_url())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(no_url());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("base_url contains a user name or password: use api_key instead".to_owned());
    }
    if url.fragment().is_some() {
        return Err(format!("base_url contains a '#': expected a URL {EXAMPLE}"));
    }
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix(PATH).unwrap_or(path);
    let path = format!("{path}{PATH}");
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use workflow::ResolvedOptions;

    use super::*;

    fn settings(base_url: &str, env: &[(&str, &str)]) -> Result<ModelSettings, String> {
        let env: Vec<_> = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let base_url = Some(base_url.to_owned());
        let options = ResolvedOptions { base_url, ..ResolvedOptions::default() };
        ModelSettings::new(&options, &env)
    }

    #[test]
    fn base_urls_are_normalized_and_invalid_ones_rejected() {
        let path = "/chat/completions";
        for (base, asked) in [
            ("http://127.0.0.1:1/v1", format!("http://127.0.0.1:1/v1{path}")),
            (" http://127.0.0.1:1/v1/ ", format!("http://127.0.0.1:1/v1{path}")),
            ("http://127.0.0.1:1", format!("http://127.0.0.1:1{path}")),
            ("https://x.example/v1/chat/completions", format!("https://x.example/v1{path}")),
            ("https://x.example/v1?api-version=7", format!("https://x.example/v1{path}?…")),
        ] {
            let found = settings(base, &[("OPENAI_MODEL", "m")]).unwrap();
            assert_eq!(found.shown_url(), asked);
            assert_eq!((found.max_turns, found.stream), (25, true));
        }
        for (base, said) in [
            ("ftp://x.example", "base_url is not an http or https URL"),
            ("file:///etc/passwd", "base_url is not an http or https URL"),
            ("127.0.0.1:8080/v1", "base_url is not an http or https URL"),
            ("http://", "base_url is not an http or https URL"),
            ("https://me:sk-secret@x.example/v1", "a user name or password: use api_key"),
            ("https://sk-secret@x.example/v1", "a user name or password: use api_key"),
            ("https://x.example/v1#sk-secret", "base_url contains a '#'"),
        ] {
            let fault = settings(base, &[("OPENAI_MODEL", "m")]).err().unwrap();
            assert!(fault.contains(said) && !fault.contains("sk-secret"), "{base}: {fault}");
        }
    }

    #[test]
    fn options_override_variables_and_all_faults_are_reported() {
        let env = [
            ("OPENAI_BASE_URL", "https://env.example/v1"),
            ("OPENAI_MODEL", "of-env"),
            ("OPENAI_API_KEY", "key\n"),
        ];
        let found = settings("", &env).unwrap();
        assert_eq!(found.model, "of-env");
        assert!(found.key.is_given() && found.shown_url().starts_with("https://env.example/"));
        let found = settings("https://opt.example/v1", &env).unwrap();
        assert!(found.shown_url().starts_with("https://opt.example/"));
        let fault = settings(" ", &[("OPENAI_API_KEY", "a\u{7f}b\nc")]).err().unwrap();
        assert_eq!(
            fault,
            "base_url is missing: set options.base_url or OPENAI_BASE_URL; model is missing: set \
             options.model or OPENAI_MODEL; the api_key contains characters that are not allowed \
             in an HTTP header"
        );
    }

    #[test]
    fn unencrypted_remote_urls_cause_a_warning() {
        for (base, warns) in [
            ("http://127.0.0.1:1/v1", false),
            ("http://localhost:1/v1", false),
            ("http://[::1]:1/v1", false),
            ("https://x.example/v1", false),
            ("http://192.168.1.5:1/v1", true),
            ("http://x.example/v1", true),
        ] {
            let found = settings(base, &[("OPENAI_MODEL", "m")]).unwrap();
            assert_eq!(found.warning().is_some(), warns, "{base}");
        }
    }

    #[test]
    fn a_request_contains_only_the_options_that_were_set() {
        let env = [("OPENAI_MODEL".into(), "m\"".into())];
        let base_url = Some("http://127.0.0.1:1".to_owned());
        let mut options = ResolvedOptions { base_url, ..ResolvedOptions::default() };
        let body = |options: &ResolvedOptions, tools: &[String], usage| {
            let settings = ModelSettings::new(options, &env).unwrap();
            settings.body(&["{\"role\":\"user\"}".to_owned()], tools, usage)
        };
        let expected = r#"{"model":"m\"","messages":[{"role":"user"}],"stream":true}"#;
        assert_eq!(body(&options, &[], UsageReport::NotAsked), expected);
        options.stream = Some(false);
        options.temperature = Some(0.5);
        options.top_p = Some(1.0);
        options.max_completion_tokens = Some(9);
        let expected = r#"{"model":"m\"","messages":[{"role":"user"}],"tools":[{}],"tool_choice":"auto","temperature":0.5,"top_p":1.0,"max_completion_tokens":9}"#;
        assert_eq!(body(&options, &["{}".to_owned()], UsageReport::Wanted), expected);
        options.stream = None;
        let body = body(&options, &[], UsageReport::Wanted);
        assert!(body.ends_with(r#""stream":true,"stream_options":{"include_usage":true}}"#));
    }
}
