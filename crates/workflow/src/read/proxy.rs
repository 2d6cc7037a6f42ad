//! The `mcp_proxy` block of a step. The tool table resolves the names in it.

use super::super::plan::{PluginTools, Proxy};
use super::mapping::Mapping;
use super::reader::Reader;
use domain::code::Code;
use text::document::{Location, Node};

const KEYS: [&str; 4] = ["enable", "intercept_builtins", "plugin_tools", "mcp_servers"];

/// Tools given to one step by name; no model can tell more apart.
const TOOLS_MAX: usize = 1_000;

impl<'a> Reader<'a> {
    pub(super) fn proxy(&mut self, node: &Node<'a>) -> Option<Proxy> {
        let members = self.proxy_mapping(node, &KEYS)?;
        let default = Proxy { location: node.location.clone(), ..Proxy::default() };
        let enable = self.flag(&members, "enable").unwrap_or(default.enable);
        let intercept = self.flag(&members, "intercept_builtins");
        let tools = members.get("plugin_tools").map(|node| self.plugin_tools(node));
        let servers = members.get("mcp_servers").map(|node| self.words(node));
        let (mcp_servers, server_locations) = servers.unwrap_or_default().into_iter().unzip();
        if let Some(entry) = members.other_than(&["enable"]).next().filter(|_| !enable) {
            let message = "no effect without enable: true";
            self.report.warn(&entry.key, Code::WorkflowNoEffect, message);
        }
        Some(Proxy {
            enable,
            intercept_builtins: intercept.unwrap_or(default.intercept_builtins),
            plugin_tools: tools.unwrap_or_default(),
            mcp_servers,
            server_locations,
            location: default.location,
        })
    }

    fn plugin_tools(&mut self, node: &Node<'a>) -> Vec<PluginTools> {
        let mut read = Vec::new();
        for item in self.items(node, "a list of {plugin, expose}").into_iter().flatten() {
            let Some(members) = self.proxy_mapping(&item, &["plugin", "expose"]) else { continue };
            let plugin = self.required(&members, "plugin").and_then(|node| {
                let plugin = self.word(node)?.to_owned();
                Some((plugin, node.location.clone()))
            });
            let expose = self.required(&members, "expose").map(|node| self.words(node));
            let (expose, locations) = expose.unwrap_or_default().into_iter().unzip();
            if let Some((plugin, location)) = plugin {
                read.push(PluginTools { plugin, location, expose, locations });
            }
        }
        read
    }

    fn words(&mut self, node: &Node<'a>) -> Vec<(String, Location)> {
        let Some(items) = self.items(node, "a list of names") else { return Vec::new() };
        if items.len() > TOOLS_MAX {
            let message = format!("more than {TOOLS_MAX} names");
            self.report.error(&node.location, Code::WorkflowBadValue, message);
            return Vec::new();
        }
        items.filter_map(|item| Some((self.word(&item)?.to_owned(), item.location))).collect()
    }

    fn proxy_mapping(&mut self, node: &Node<'a>, keys: &[&str]) -> Option<Mapping<'a>> {
        self.mapping_or(node, keys, Code::ProxyUnknownKey)
    }
}
