//! `tools/call`, or another request that passes to a server, split into its parts, each still the text
//! the client sent.

use domain::tool::FULL_NAME_BYTES_MAX;
use mcp::ErrorObject;
use mcp::message::{Raw, Request, raw};
use mcp::object::ObjectMembers;
use mcp::trace::Trace;
use provider::TraceContext;
use serde_json::value::RawValue;
use text::json;

pub(super) struct ToolRequest {
    pub(super) name: String,
    /// Empty if the client sent none.
    pub(super) arguments: Raw,
    pub(super) has_arguments: bool,
    /// The other parameters, `_meta` included.
    pub(super) other: Vec<(String, Raw)>,
}

impl ToolRequest {
    pub(super) fn parse(request: &Request) -> Result<ToolRequest, ErrorObject> {
        let params = request
            .params
            .as_deref()
            .ok_or_else(|| ErrorObject::invalid_params("tools/call requires params"))?;
        let members = ObjectMembers::parse(params).map_err(|error| {
            ErrorObject::invalid_params(format!("tools/call: {}", json::explain(&error)))
        })?;
        let name = members.get("name").and_then(|name| serde_json::from_str(name).ok());
        let name: String =
            name.ok_or_else(|| ErrorObject::invalid_params("tools/call: name must be a string"))?;
        if name.len() > FULL_NAME_BYTES_MAX {
            return Err(ErrorObject::invalid_params(format!(
                "tools/call: name of {} bytes; names have at most {FULL_NAME_BYTES_MAX}",
                name.len()
            )));
        }
        let given = members.get("arguments").filter(|text| *text != "null");
        let arguments = given.unwrap_or("{}");
        if !arguments.starts_with('{') {
            return Err(ErrorObject::invalid_params("tools/call: arguments must be an object"));
        }
        let other = members
            .iter()
            // Tasks are not carried, so that a server must not be asked to answer with one.
            .filter(|(name, _)| !matches!(*name, "name" | "arguments" | "task"))
            .map(|(name, value)| (name.to_owned(), raw(value.to_owned())))
            .collect();
        let has_arguments = given.is_some();
        Ok(ToolRequest { name, arguments: raw(arguments.to_owned()), has_arguments, other })
    }

    /// Splits any other request or notification: its params without `_meta` count as its arguments.
    pub(super) fn of_method(
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<ToolRequest, ErrorObject> {
        let fault = |words: &str| ErrorObject::invalid_params(format!("{method}: {words}"));
        if method.len() > FULL_NAME_BYTES_MAX {
            return Err(ErrorObject::invalid_params("the method's name is too long"));
        }
        let Some(given) = params else {
            let (name, arguments) = (method.to_owned(), raw("{}".to_owned()));
            return Ok(ToolRequest { name, arguments, has_arguments: false, other: Vec::new() });
        };
        let mut members =
            ObjectMembers::parse(given).map_err(|error| fault(&json::explain(&error)))?;
        let meta = members.get("_meta").map(|meta| ("_meta".to_owned(), raw(meta.to_owned())));
        members.remove("_meta");
        let arguments = if meta.is_some() { members.write() } else { given.to_owned() };
        let other = meta.into_iter().collect();
        Ok(ToolRequest { name: method.to_owned(), arguments, has_arguments: true, other })
    }

    /// Returns the client's token for progress notifications, as JSON.
    pub(super) fn progress_token(&self) -> Option<String> {
        self.meta("progressToken")
    }

    /// Returns the trace in the request's `_meta`, or else the one in the transport's headers:
    /// headers describe the route here, which may pass through a proxy that knows nothing of
    /// requests.
    pub(super) fn trace(&self, beside: Option<&Trace>) -> TraceContext {
        let text = |name: &str| serde_json::from_str(&self.meta(name)?).ok();
        let within =
            TraceContext { traceparent: text("traceparent"), tracestate: text("tracestate") };
        if within.ids().is_some() {
            return within;
        }
        let beside = beside.map(|trace| TraceContext {
            traceparent: Some(trace.parent.clone()),
            tracestate: trace.state.clone(),
        });
        beside.filter(|trace| trace.ids().is_some()).unwrap_or(within)
    }

    /// Returns a member of `_meta`, as JSON.
    fn meta(&self, name: &str) -> Option<String> {
        let meta: &RawValue =
            self.other.iter().find(|(name, _)| name == "_meta").map(|(_, m)| &**m)?;
        ObjectMembers::parse(meta).ok()?.get(name).map(str::to_owned)
    }
}
