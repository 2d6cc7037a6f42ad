//! The `mcp_proxy` block of a step. What it names is looked up by the table of tools.

use super::super::plan::{PluginTools, Proxy};
use super::Reader;
use super::node::{Members, Node};
use domain::code::Code;

const KEYS: [&str; 4] = ["enable", "intercept_builtins", "plugin_tools", "mcp_servers"];

/// Tools that one step is given by name; no model keeps more apart.
const TOOLS_MAX: usize = 1_000;

impl<'a> Reader<'a> {
    pub(super) fn proxy(&mut self, node: &Node<'a>) -> Option<Proxy> {
        let members = self.proxy_members(node, &KEYS)?;
        let default = Proxy { place: node.place.clone(), ..Proxy::default() };
        let enable = self.flag(&members, "enable").unwrap_or(default.enable);
        let intercept = self.flag(&members, "intercept_builtins");
        let tools = members.get("plugin_tools").map(|node| self.plugin_tools(node));
        let servers = members.get("mcp_servers").map(|node| self.words(node));
        let (mcp_servers, server_places) = servers.unwrap_or_default().into_iter().unzip();
        if let Some(entry) = members.entries().find(|entry| !enable && entry.name != "enable") {
            let message = "no effect without enable: true";
            self.report.warn(&entry.key, Code::WorkflowNoEffect, message);
        }
        Some(Proxy {
            enable,
            intercept_builtins: intercept.unwrap_or(default.intercept_builtins),
            plugin_tools: tools.unwrap_or_default(),
            mcp_servers,
            server_places,
            place: default.place,
        })
    }

    fn plugin_tools(&mut self, node: &Node<'a>) -> Vec<PluginTools> {
        let items = node.items("a list of {plugin, expose}", &mut self.report).unwrap_or_default();
        let mut read = Vec::new();
        for item in &items {
            let Some(members) = self.proxy_members(item, &["plugin", "expose"]) else { continue };
            let plugin_node = self.required(&members, "plugin").cloned();
            let plugin = plugin_node.as_ref().and_then(|node| self.word(node));
            let expose = self.required(&members, "expose").cloned();
            let expose = expose.map(|node| self.words(&node)).unwrap_or_default();
            let (expose, places) = expose.into_iter().unzip();
            if let (Some(plugin), Some(node)) = (plugin, plugin_node) {
                read.push(PluginTools { plugin, expose, plugin_place: node.place, places });
            }
        }
        read
    }

    fn words(&mut self, node: &Node<'a>) -> Vec<(String, super::Place)> {
        let items = node.items("a list of names", &mut self.report).unwrap_or_default();
        if items.len() > TOOLS_MAX {
            let message = format!("more than {TOOLS_MAX} names");
            self.report.error(&node.place, Code::WorkflowBadValue, message);
            return Vec::new();
        }
        let read = items.iter().map(|item| (self.word(item), item.place.clone()));
        let read: Vec<(Option<String>, super::Place)> = read.collect();
        read.into_iter().filter_map(|(word, place)| Some((word?, place))).collect()
    }

    fn proxy_members(&mut self, node: &Node<'a>, keys: &[&str]) -> Option<Members<'a>> {
        let members = node.any_members(&mut self.report)?;
        for entry in members.entries().filter(|entry| !keys.contains(&entry.name)) {
            self.unknown(entry.name, &entry.key, keys, Code::ProxyUnknownKey);
        }
        Some(members)
    }
}
