//! The agent of a step: its provider, prompt and options.

use std::ops::RangeInclusive;

use super::super::isolation;
use super::super::plan::{
    AgentPlaces, AgentState, Demand, ModelApi, OpenAi, Options, Provider, Proxy,
};
use super::super::{Template, table};
use super::mapping::Mapping;
use super::reader::Reader;
use domain::code::Code;
use text::document::{Location, Node};

const ARGS_MAX: usize = 1_000;

/// Headers that follow from the request itself.
const OWN_HEADERS: [&str; 12] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "te",
    "transfer-encoding",
    "upgrade",
];

const TEMPERATURES: RangeInclusive<f64> = 0.0..=2.0;
const SHARES: RangeInclusive<f64> = 0.0..=1.0;
const TOKENS: RangeInclusive<u32> = 1..=10_000_000;
const TURNS: RangeInclusive<u32> = 1..=1_000;
const TOKENS_OF_ALL_TURNS: RangeInclusive<u32> = 1..=1_000_000_000;
const DOLLARS: RangeInclusive<f64> = 0.0..=1_000_000.0;

impl<'a> Reader<'a> {
    /// `block` holds the provider and prompt, `step` the isolation; both may be the same mapping.
    pub(super) fn agent(&mut self, block: &Mapping<'a>, step: &Mapping<'a>) -> Option<AgentState> {
        let mut places = AgentPlaces::default();
        let provider = self.required(block, "provider").and_then(|node| {
            places.provider = node.location.clone();
            self.provider(node)
        });
        let prompt = self.required(block, "prompt").and_then(|node| self.prompt(node));
        let system_prompt = block.get("system_prompt").and_then(|node| self.template(node));
        let options = match (block.get("options"), provider) {
            (Some(node), Some(provider)) => self.options(node, provider, &mut places),
            // The valid options depend on the provider.
            (Some(_), None) | (None, _) => Some(Options::default()),
        };
        let isolation = match step.get("isolation") {
            Some(node) => {
                places.isolation = node.location.clone();
                self.choice(node, Demand::NAMES, Demand::named)
            }
            None => Some(Demand::Preferred),
        };
        let proxy = step.get("mcp_proxy").map_or(Some(Proxy::default()), |node| self.proxy(node));
        let agent = AgentState {
            provider: provider?,
            prompt: prompt?,
            system_prompt,
            options: options?,
            isolation: isolation?,
            proxy: proxy?,
            location: block.location.clone(),
            places,
        };
        self.check_proxy(&agent);
        isolation::check(&agent, self.known, &mut self.report);
        Some(agent)
    }

    /// Reads the prompt, which no agent accepts empty.
    fn prompt(&mut self, node: &Node<'a>) -> Option<Template> {
        let prompt = self.template(node)?;
        if prompt.fixed().is_some_and(|text| text.trim().is_empty()) {
            self.report.error(&node.location, Code::WorkflowBadValue, "the prompt is empty");
        }
        Some(prompt)
    }

    fn check_proxy(&mut self, agent: &AgentState) {
        let proxy = &agent.proxy;
        if !proxy.enable {
            return;
        }
        let table = table::checked(proxy, self.known, &mut self.report);
        let offers_none = proxy.mcp_servers.is_empty()
            && proxy.plugin_tools.iter().all(|tools| tools.expose.is_empty());
        if table.is_empty() && offers_none {
            let message = "mcp_proxy is enabled but offers no tools: set intercept_builtins, or \
                           add plugin_tools or mcp_servers";
            self.report.error(&proxy.location, Code::ProxyEmpty, message);
        }
    }

    fn provider(&mut self, node: &Node<'a>) -> Option<Provider> {
        self.choice(node, Provider::NAMES, |word| match word {
            "openai-compatible" => Some(Provider::OpenAiCompatible),
            _ => Provider::named(word),
        })
    }

    fn options(
        &mut self,
        node: &Node<'a>,
        provider: Provider,
        places: &mut AgentPlaces,
    ) -> Option<Options> {
        let members = self.any_mapping(node)?;
        self.option_keys(&members, provider);
        let mut options = Options {
            model: members.get("model").and_then(|node| self.word_template(node)),
            command: members.get("command").and_then(|node| self.text(node)).map(str::to_owned),
            config: members.get("config").and_then(|node| self.json_members(node)),
            max_turns: members.get("max_turns").and_then(|node| self.count(node, TURNS)),
            max_tokens: members
                .get("max_tokens")
                .and_then(|node| self.count(node, TOKENS_OF_ALL_TURNS)),
            max_cost_usd: members.get("max_cost_usd").and_then(|node| self.number(node, DOLLARS)),
            openai: self.openai(&members),
            ..Options::default()
        };
        if let Some(node) = members.get("args") {
            (options.args, places.args) = self.args(node).into_iter().unzip();
        }
        if let Some(node) = members.get("env") {
            (options.env, places.env) = self.env(node).into_iter().unzip();
        }
        places.block = Some(members.location.clone());
        let located = members.entries.iter();
        places.options =
            located.map(|entry| (entry.name.to_owned(), entry.node.location.clone())).collect();
        if let Some(settings) = members.get("config").and_then(|node| node.entries().ok()) {
            places.config = settings.map(|entry| entry.key).collect();
        }
        Some(options)
    }

    fn option_keys(&mut self, members: &Mapping<'a>, provider: Provider) {
        let keys = option_keys(provider);
        let providers = Provider::NAMES.iter().filter_map(|name| Provider::named(name));
        let all: Vec<Provider> = providers.collect();
        for entry in members.other_than(keys) {
            let others: Vec<&str> = all
                .iter()
                .filter(|other| option_keys(**other).contains(&entry.name))
                .map(|other| other.name())
                .collect();
            if others.is_empty() {
                self.unknown(entry.name, &entry.key, keys, Code::WorkflowUnknownKey);
                continue;
            }
            let (name, others) = (provider.name(), others.join(", "));
            let message = format!("{name} does not support this option; only {others}");
            self.report.error(&entry.key, Code::WorkflowUnknownKey, message);
        }
    }

    fn openai(&mut self, members: &Mapping<'a>) -> OpenAi {
        let headers = members.get("headers").map(|node| self.headers(node));
        OpenAi {
            api: members
                .get("api")
                .and_then(|node| self.choice(node, ModelApi::NAMES, ModelApi::named)),
            headers: headers.unwrap_or_default(),
            base_url: members.get("base_url").and_then(|node| self.template(node)),
            api_key: members.get("api_key").and_then(|node| self.template(node)),
            temperature: members
                .get("temperature")
                .and_then(|node| self.number(node, TEMPERATURES)),
            top_p: members.get("top_p").and_then(|node| self.number(node, SHARES)),
            max_completion_tokens: members
                .get("max_completion_tokens")
                .and_then(|node| self.count(node, TOKENS)),
            stream: self.flag(members, "stream"),
        }
    }

    fn headers(&mut self, node: &Node<'a>) -> Vec<(String, Template)> {
        let Some(members) = self.any_mapping(node) else { return Vec::new() };
        let mut read: Vec<(String, Template)> = Vec::new();
        for entry in &members.entries {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let name = entry.name.to_ascii_lowercase();
            if name.is_empty() || !name.chars().all(is_name) {
                let message = "the name of a header must consist of letters, digits, '-', '_', '.'";
                self.report.error(&entry.key, Code::WorkflowBadName, message);
            } else if OWN_HEADERS.contains(&name.as_str()) {
                let message = "this header is set by countersign itself (for a key, use api_key)";
                self.report.error(&entry.key, Code::WorkflowBadName, message);
            } else if read.iter().any(|(had, _)| *had == name) {
                let message = "the same header again, in other letters";
                self.report.error(&entry.key, Code::WorkflowBadName, message);
            } else if let Some(value) = self.word_template(&entry.node) {
                read.push((name, value));
            }
        }
        read
    }

    fn args(&mut self, node: &Node<'a>) -> Vec<(Template, Location)> {
        let Some(items) = self.items(node, "a list of texts") else { return Vec::new() };
        if items.len() > ARGS_MAX {
            let message = format!("more than {ARGS_MAX} arguments");
            self.report.error(&node.location, Code::WorkflowBadValue, message);
            return Vec::new();
        }
        items.filter_map(|item| Some((self.word_template(&item)?, item.location))).collect()
    }

    fn env(&mut self, node: &Node<'a>) -> Vec<((String, Template), Location)> {
        let Some(members) = self.any_mapping(node) else { return Vec::new() };
        let mut read = Vec::new();
        for entry in &members.entries {
            if let Some(value) = self.word_template(&entry.node) {
                read.push(((entry.name.to_owned(), value), entry.key.clone()));
            }
        }
        read
    }
}

fn option_keys(provider: Provider) -> &'static [&'static str] {
    match provider {
        Provider::Claude | Provider::Gemini => {
            &["model", "args", "env", "command", "max_turns", "max_tokens", "max_cost_usd"]
        }
        Provider::Codex | Provider::OpenCode => &[
            "model",
            "args",
            "env",
            "command",
            "config",
            "max_turns",
            "max_tokens",
            "max_cost_usd",
        ],
        Provider::OpenAiCompatible => &[
            "api",
            "base_url",
            "model",
            "api_key",
            "headers",
            "temperature",
            "top_p",
            "max_completion_tokens",
            "stream",
            "max_turns",
            "max_tokens",
            "max_cost_usd",
        ],
    }
}
