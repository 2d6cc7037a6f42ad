//! A step's model settings, from its options or else from environment variables, validated.

use std::ffi::OsString;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};
use mcp::object::{ObjectMembers, quote};
use url::{Host, Position, Url};
use workflow::{HiddenText, ModelApi, ResolvedOptions, SettingFault, Template};

use super::key::Key;

const TURNS: u32 = 25;

/// Returns the path appended to the base URL that people know.
fn path(api: ModelApi) -> &'static str {
    match api {
        ModelApi::Chat => "/chat/completions",
        ModelApi::Responses => "/responses",
    }
}

/// The variable that holds the key, if the options have none.
pub const KEY_VARIABLE: &str = "OPENAI_API_KEY";

pub struct ModelSettings {
    pub(super) api: ModelApi,
    pub(super) url: Url,
    pub key: Key,
    /// Further headers of each request, whose values are secrets like the key.
    headers: Vec<(HeaderName, Key)>,
    pub model: String,
    pub max_turns: u32,
    pub stream: bool,
    temperature: Option<f64>,
    top_p: Option<f64>,
    max_completion_tokens: Option<u32>,
}

impl ModelSettings {
    /// Validates the settings; the error holds every fault, with its option.
    pub fn new(
        options: &ResolvedOptions,
        env: &[(OsString, OsString)],
    ) -> Result<ModelSettings, Vec<SettingFault>> {
        let mut faults = Vec::new();
        let mut fault = |option, message| faults.push(SettingFault { option, message });
        let base_url = either(options.base_url.as_deref(), env, "OPENAI_BASE_URL");
        let url = base_url.ok_or_else(|| missing("base_url", "OPENAI_BASE_URL"));
        let api = options.api.unwrap_or_default();
        let url = url.and_then(|base| address(&base, api));
        let url = url.map_err(|message| fault("base_url", message)).ok();
        let model = either(options.model.as_deref(), env, "OPENAI_MODEL");
        if model.is_none() {
            fault("model", missing("model", "OPENAI_MODEL"));
        }
        let key = options.api_key.as_ref().map(|key| key.reveal());
        let key = Key::new(either(key, env, KEY_VARIABLE).as_deref());
        if let Err(message) = key.bearer() {
            fault("api_key", message.to_owned());
        }
        let headers = headers(options).unwrap_or_else(|messages| {
            messages.into_iter().for_each(|message| fault("headers", message));
            Vec::new()
        });
        match (url, model) {
            (Some(url), Some(model)) if faults.is_empty() => Ok(ModelSettings {
                api,
                url,
                key,
                headers,
                model,
                max_turns: options.max_turns.unwrap_or(TURNS),
                stream: options.stream.unwrap_or(true),
                temperature: options.temperature,
                top_p: options.top_p,
                max_completion_tokens: options.max_completion_tokens,
            }),
            _ => Err(faults),
        }
    }

    /// Adds the key and the further headers to those of a request.
    pub(super) fn authorize(&self, headers: &mut HeaderMap) -> Result<(), &'static str> {
        if let Some(authorization) = self.key.bearer()? {
            headers.insert(AUTHORIZATION, authorization);
        }
        for (name, value) in &self.headers {
            if let Some(value) = value.header()? {
                headers.insert(name, value);
            }
        }
        Ok(())
    }

    /// Returns what must not appear in any text.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.key).chain(self.headers.iter().map(|(_, value)| value))
    }

    /// Returns the faults in the options that do not depend on values. A model's server may be
    /// another one by the time that the step runs, so nothing is sent.
    pub fn faults(options: &workflow::Options, env: &[(OsString, OsString)]) -> Vec<SettingFault> {
        // A value that is not known yet counts as a valid one.
        let known = |option: &Option<Template>, stand_in: &str| {
            let text = option.as_ref().map(|text| text.fixed().unwrap_or(stand_in));
            text.map(str::to_owned)
        };
        let openai = &options.openai;
        let headers = openai.headers.iter().map(|(name, value)| {
            let value = value.fixed().unwrap_or("value").to_owned();
            (name.clone(), HiddenText::new(value))
        });
        let options = ResolvedOptions {
            api: openai.api,
            base_url: known(&openai.base_url, "http://localhost"),
            model: known(&options.model, "model"),
            api_key: known(&openai.api_key, "key").map(HiddenText::new),
            headers: headers.collect(),
            ..ResolvedOptions::default()
        };
        ModelSettings::new(&options, env).err().unwrap_or_default()
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
    pub(super) fn body(&self, messages: &[String], tools: &[String], form: RequestForm) -> String {
        let mut body = ObjectMembers::default();
        body.set("model", quote(&self.model));
        let conversation = match self.api {
            ModelApi::Chat => "messages",
            ModelApi::Responses => "input",
        };
        body.set(conversation, format!("[{}]", messages.join(",")));
        if !tools.is_empty() {
            body.set("tools", format!("[{}]", tools.join(",")));
            body.set("tool_choice", r#""auto""#);
        }
        for (name, number) in [("temperature", self.temperature), ("top_p", self.top_p)] {
            if let Some(number) = number {
                body.set(name, serde_json::Value::from(number).to_string());
            }
        }
        let limit = match self.api {
            ModelApi::Chat if form.has_old_limit => "max_tokens",
            ModelApi::Chat => "max_completion_tokens",
            ModelApi::Responses => "max_output_tokens",
        };
        if let Some(tokens) = self.max_completion_tokens {
            body.set(limit, tokens.to_string());
        }
        if self.stream {
            body.set("stream", "true");
        }
        match self.api {
            ModelApi::Chat if self.stream && form.has_extras => {
                body.set("stream_options", r#"{"include_usage":true}"#);
            }
            ModelApi::Chat => {}
            // Every request holds the whole conversation, so that nothing need be kept there.
            ModelApi::Responses => {
                body.set("store", "false");
                if form.has_extras {
                    body.set("include", r#"["reasoning.encrypted_content"]"#);
                }
            }
        }
        body.write_text()
    }
}

/// The form of a request, which follows from what the server has rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RequestForm {
    /// Asks for a stream's usage in Chat Completions, for the encrypted reasoning in Responses.
    pub(super) has_extras: bool,
    /// Limits the tokens of an answer under the name that older servers know.
    pub(super) has_old_limit: bool,
}

impl Default for RequestForm {
    fn default() -> Self {
        RequestForm { has_extras: true, has_old_limit: false }
    }
}

/// Reads the further headers. The faults never contain a value.
fn headers(options: &ResolvedOptions) -> Result<Vec<(HeaderName, Key)>, Vec<String>> {
    let (mut headers, mut faults) = (Vec::new(), Vec::new());
    for (name, value) in &options.headers {
        let value = Key::new(Some(value.reveal()));
        match HeaderName::try_from(name) {
            Err(_) => faults.push(format!("'{name}' is not the name of an HTTP header")),
            Ok(_) if value.header().is_err() => {
                faults
                    .push(format!("the header '{name}' contains characters that are not allowed"));
            }
            Ok(name) => headers.push((name, value)),
        }
    }
    if faults.is_empty() { Ok(headers) } else { Err(faults) }
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
fn address(base: &str, api: ModelApi) -> Result<Url, String> {
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
    let base = url.path().trim_end_matches('/');
    let base = base.strip_suffix(path(api)).unwrap_or(base);
    let whole = format!("{base}{}", path(api));
    url.set_path(&whole);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use workflow::ResolvedOptions;

    use super::*;

    const PLAIN: RequestForm = RequestForm { has_extras: false, has_old_limit: false };

    fn settings(base_url: &str, env: &[(&str, &str)]) -> Result<ModelSettings, String> {
        let told = |faults: Vec<SettingFault>| {
            let messages: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
            messages.join("; ")
        };
        let env: Vec<_> = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let base_url = Some(base_url.to_owned());
        let options = ResolvedOptions { base_url, ..ResolvedOptions::default() };
        ModelSettings::new(&options, &env).map_err(told)
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
    fn the_responses_api_has_its_own_path_and_members() {
        let env = [("OPENAI_MODEL".into(), "m".into())];
        let options = ResolvedOptions {
            api: Some(ModelApi::Responses),
            base_url: Some("https://x.example/v1/responses/".to_owned()),
            max_completion_tokens: Some(9),
            ..ResolvedOptions::default()
        };
        let found = ModelSettings::new(&options, &env).unwrap();
        assert_eq!(found.shown_url(), "https://x.example/v1/responses");
        let body = found.body(&["{}".to_owned()], &[], PLAIN);
        let expected =
            r#"{"model":"m","input":[{}],"max_output_tokens":9,"stream":true,"store":false}"#;
        assert_eq!(body, expected);
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
        assert_eq!(body(&options, &[], PLAIN), expected);
        options.stream = Some(false);
        options.temperature = Some(0.5);
        options.top_p = Some(1.0);
        options.max_completion_tokens = Some(9);
        let expected = r#"{"model":"m\"","messages":[{"role":"user"}],"tools":[{}],"tool_choice":"auto","temperature":0.5,"top_p":1.0,"max_completion_tokens":9}"#;
        assert_eq!(body(&options, &["{}".to_owned()], RequestForm::default()), expected);
        options.stream = None;
        let body = body(&options, &[], RequestForm::default());
        assert!(body.ends_with(r#""stream":true,"stream_options":{"include_usage":true}}"#));
    }
}
