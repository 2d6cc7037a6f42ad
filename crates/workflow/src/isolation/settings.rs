//! Values in a program's config with which it would run or read something itself: a command that
//! prints a login, a package that it loads, a file that it inserts.

use serde_json::Value;

use crate::plan::Provider;

const CODEX_PROVIDER: &[&str] = text::words!("settings/codex-provider.txt");
const OPENCODE_PACKAGES: &[&str] = text::words!("settings/opencode-packages.txt");

/// The knowledge of the values in a config.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConfigValues {
    /// As a file has them: some are templates, which the step checks again.
    Written,
    Filled,
}

/// Returns the part of a setting that is not known to be safe, if there is one.
pub(super) fn unsafe_part(
    provider: Provider,
    (key, value): (&str, &Value),
    values: ConfigValues,
) -> Option<String> {
    match provider {
        Provider::Codex if key == "model_providers" => {
            let mut providers = value.as_object().into_iter().flatten();
            providers.find_map(|(id, settings)| {
                let mut names = settings.as_object().into_iter().flatten().map(|(name, _)| name);
                let name = names.find(|name| !CODEX_PROVIDER.contains(&name.as_str()))?;
                Some(format!("{key}.{id}.{name}"))
            })
        }
        Provider::OpenCode => opencode_part(key, value, values),
        Provider::Codex | Provider::Claude | Provider::Gemini | Provider::OpenAiCompatible => None,
    }
}

fn opencode_part(path: &str, value: &Value, values: ConfigValues) -> Option<String> {
    let is_package = |value: &Value| {
        value.as_str().is_some_and(|name| {
            let is_template = values == ConfigValues::Written && name.contains("{{");
            is_template || OPENCODE_PACKAGES.contains(&name)
        })
    };
    match value {
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let path = format!("{path}.{name}");
            if name == "npm" && !is_package(member) {
                return Some(path);
            }
            opencode_part(&path, member, values)
        }),
        Value::Array(items) => items.iter().find_map(|item| opencode_part(path, item, values)),
        Value::String(text) => text.contains("{file:").then(|| path.to_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// Reports whether a path such as `model_providers.x.base_url` is known to be safe.
pub(super) fn is_safe_codex_path(path: &str) -> bool {
    let mut parts = path.split('.').map(str::trim);
    match parts.next() {
        Some("model_providers") => parts.nth(1).is_some_and(|name| CODEX_PROVIDER.contains(&name)),
        Some(_) | None => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_that_run_or_read_something_are_found() {
        let codex = |settings: Value| json!({"x": settings});
        let package = |name: &str| json!({"x": {"npm": name}});
        let of_model =
            json!({"x": {"npm": "@ai-sdk/openai", "models": {"m": {"provider": {"npm": "evil"}}}}});
        for (provider, key, value, expected) in [
            (Provider::Codex, "model_providers", codex(json!({"base_url": "u"})), None),
            (
                Provider::Codex,
                "model_providers",
                codex(json!({"base_url": "u", "auth": {"command": "sh"}})),
                Some("model_providers.x.auth"),
            ),
            (
                Provider::Codex,
                "model_providers",
                codex(json!({"aws": {}})),
                Some("model_providers.x.aws"),
            ),
            (Provider::Codex, "model_provider", json!("auth"), None),
            (Provider::OpenCode, "provider", package("@ai-sdk/openai-compatible"), None),
            (Provider::OpenCode, "provider", package("file:///evil.mjs"), Some("provider.x.npm")),
            (Provider::OpenCode, "provider", package("left-pad"), Some("provider.x.npm")),
            (Provider::OpenCode, "provider", of_model, Some("provider.x.models.m.provider.npm")),
            (
                Provider::OpenCode,
                "provider",
                json!({"x": {"options": {"apiKey": "{file:~/.ssh/id_rsa}"}}}),
                Some("provider.x.options.apiKey"),
            ),
            (
                Provider::OpenCode,
                "disabled_providers",
                json!(["{file:a}"]),
                Some("disabled_providers"),
            ),
        ] {
            let found = unsafe_part(provider, (key, &value), ConfigValues::Filled);
            assert_eq!(found.as_deref(), expected, "{provider:?} {key} {value}");
        }
        let template = package("{{.inputs.npm}}");
        let found = |values| unsafe_part(Provider::OpenCode, ("provider", &template), values);
        assert_eq!(found(ConfigValues::Written), None, "the step checks it");
        assert!(found(ConfigValues::Filled).is_some());
    }
}
