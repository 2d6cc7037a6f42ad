//! The public list of error codes. They are stable: programs match on them, and `docs/errors.md`
//! holds the same list (a test keeps the two equal).

use std::fmt;

/// The party that must act after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Culprit {
    /// The caller must send something else.
    Caller,
    /// A person must change a permission, a setting or a file.
    Operator,
    /// The tool's server failed; the same call may work later.
    Upstream,
    /// Countersign itself could not do its work.
    Gate,
}

impl Culprit {
    pub fn as_str(self) -> &'static str {
        match self {
            Culprit::Caller => "caller",
            Culprit::Operator => "operator",
            Culprit::Upstream => "upstream",
            Culprit::Gate => "gate",
        }
    }
}

macro_rules! codes {
    ($($variant:ident $text:literal $fault:ident $retry:literal $meaning:literal)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($variant),* }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $text),* }
            }

            pub fn fault(self) -> Culprit {
                match self { $(Code::$variant => Culprit::$fault),* }
            }

            /// Reports whether the same call may succeed later without a change.
            pub fn retry(self) -> bool {
                match self { $(Code::$variant => $retry),* }
            }

            pub fn meaning(self) -> &'static str {
                match self { $(Code::$variant => $meaning),* }
            }
        }
    };
}

codes! {
    MissingIntent "MISSING_INTENT" Caller false
        "neither `intent` nor the flat `intent_*` parameters were given"
    MissingOperationType "MISSING_OPERATION_TYPE" Caller false
        "the intent has no `operation_type`"
    InvalidOperationType "INVALID_OPERATION_TYPE" Caller false
        "`operation_type` is not read, write or destructive"
    IntentMismatch "INTENT_MISMATCH" Caller false
        "the declared operation differs from the tool variant, or the nested and flat spellings disagree"
    InvalidSensitivity "INVALID_SENSITIVITY" Caller false
        "`data_sensitivity` is not public, internal, private or unknown"
    ReasonTooLong "REASON_TOO_LONG" Caller false
        "`reason` is longer than 1000 characters"
    ServerMismatch "SERVER_MISMATCH" Caller false
        "the tool's own annotations call it destructive, and another variant was used"
    InvalidArguments "INVALID_ARGUMENTS" Caller false
        "a parameter is missing, malformed or does not fit the tool's input schema"
    ToolNotFound "TOOL_NOT_FOUND" Caller false
        "no tool of that name is visible to the caller"
    ToolBlocked "TOOL_BLOCKED" Operator false
        "the tool exists and is locked; `details` says why and who can unlock it"
    NotPermitted "NOT_PERMITTED" Operator false
        "the caller's token does not cover the effective class of the call"
    UpstreamUnavailable "UPSTREAM_UNAVAILABLE" Upstream true
        "the tool's server is not connected, or the connection was lost during the call"
    UpstreamError "UPSTREAM_ERROR" Upstream false
        "the tool's server answered the call with a protocol error; `details` holds it"
    Timeout "TIMEOUT" Upstream true
        "the tool's server did not answer in time; whether the call took effect is not known"
    Cancelled "CANCELLED" Caller false
        "the caller cancelled the call, or the gate is shutting down"
    LedgerUnavailable "LEDGER_UNAVAILABLE" Gate true
        "the call could not be recorded; the message says whether it was made"
    CacheMiss "CACHE_MISS" Caller false
        "the `read_cache` key is unknown or older than two hours"
    Unauthorized "UNAUTHORIZED" Caller false
        "no token, or one that is not known"
    Forbidden "FORBIDDEN" Caller false
        "the token does not open this route, or the Host or Origin header is foreign"
    NotFound "NOT_FOUND" Caller false
        "there is no such route, server or tool"
    Conflict "CONFLICT" Operator false
        "the request cannot hold beside what is there: the config forbids it, the name is taken, or what was reviewed has changed"
    InvalidRequest "INVALID_REQUEST" Caller false
        "the HTTP request is malformed; `details` names the field and what is valid"
    TooManyRequests "TOO_MANY_REQUESTS" Caller true
        "the token uses more than its share of calls, connections or requests a minute"
    PayloadTooLarge "PAYLOAD_TOO_LARGE" Caller false
        "the request body is over the limit"
    RequestTimeout "REQUEST_TIMEOUT" Caller true
        "the request body did not arrive in time"
    UnsupportedMediaType "UNSUPPORTED_MEDIA_TYPE" Caller false
        "the request body is of another kind than `application/json`, or encoded"
    MethodNotAllowed "METHOD_NOT_ALLOWED" Caller false
        "the route does not know this HTTP method"
    AgentFailed "AGENT_FAILED" Upstream false
        "the agent in a step could not be started, did not get its tools, or ended without a result; or the server of its model failed"
    CommandFailed "COMMAND_FAILED" Caller false
        "the command of a step ended with another exit code than 0, or by a signal"
    OperationFailed "OPERATION_FAILED" Upstream false
        "the operation of a step was carried out by its plugin, which says that it failed"
    AgentBypassed "AGENT_BYPASSED" Upstream false
        "the agent in a step used a tool of its own, past the gate, though it was to have none"
    ShuttingDown "SHUTTING_DOWN" Gate true
        "the gate takes no new calls because it is about to stop"
    ProxyUnknownKey "USER.MCP_PROXY.UNKNOWN_KEY" Operator false
        "workflow: `mcp_proxy`, or an entry of its `plugin_tools`, has a key that is not known"
    ProxyUnknownPlugin "USER.MCP_PROXY.UNKNOWN_PLUGIN" Operator false
        "workflow: no plugin of that name was found or declared"
    ProxyPluginNotApproved "USER.MCP_PROXY.PLUGIN_NOT_APPROVED" Operator false
        "workflow: the plugin was found in the project, and this person has not approved it"
    ProxyUnknownServer "USER.MCP_PROXY.UNKNOWN_SERVER" Operator false
        "workflow: `mcp_servers` names a server that the config does not have"
    ProxyUnknownOperation "USER.MCP_PROXY.UNKNOWN_OPERATION" Operator false
        "workflow: the plugin has no operation of that name"
    ProxyNameCollision "USER.MCP_PROXY.NAME_COLLISION" Operator false
        "workflow: two tools of a step would have one name"
    ProxyEmpty "USER.MCP_PROXY.EMPTY_PROXY" Operator false
        "workflow: `mcp_proxy` is enabled and has nothing to offer"
    ProxyUnsupportedProvider "USER.MCP_PROXY.UNSUPPORTED_PROVIDER" Operator false
        "workflow: the agent's own tools cannot be taken away with this provider as installed; a warning, unless the step says `isolation: required`"
    ProxyLoopGuard "USER.MCP_PROXY.INFINITE_LOOP_GUARD" Upstream false
        "the model asked for tools without naming one, or took more turns than `max_turns`"
    WorkflowSyntax "USER.WORKFLOW.SYNTAX" Operator false
        "the workflow cannot be read: it is no YAML, has a key twice, or is over a bound"
    WorkflowUnknownKey "USER.WORKFLOW.UNKNOWN_KEY" Operator false
        "workflow: a key is not known at its place"
    WorkflowMissingKey "USER.WORKFLOW.MISSING_KEY" Operator false
        "workflow: a key that must be there is not"
    WorkflowWrongType "USER.WORKFLOW.WRONG_TYPE" Operator false
        "workflow: a value is of another type than its key takes"
    WorkflowBadValue "USER.WORKFLOW.BAD_VALUE" Operator false
        "workflow: a value is of the right type and not one of those that its key takes"
    WorkflowBadName "USER.WORKFLOW.BAD_NAME" Operator false
        "workflow: a name is empty, too long, taken, or has other characters than names may have"
    WorkflowUnknownState "USER.WORKFLOW.UNKNOWN_STATE" Operator false
        "workflow: a state is named that is not there"
    WorkflowUnreachable "USER.WORKFLOW.UNREACHABLE" Operator false
        "workflow: a warning that no way leads to a state"
    WorkflowNoEffect "USER.WORKFLOW.NO_EFFECT" Operator false
        "workflow: a warning that what is written changes nothing"
    WorkflowNoTerminal "USER.WORKFLOW.NO_TERMINAL" Operator false
        "workflow: no way leads from `initial` to a terminal state"
    WorkflowBadParallel "USER.WORKFLOW.BAD_PARALLEL" Operator false
        "workflow: a parallel state runs itself, a state twice at once, or one that cannot run in parallel"
    WorkflowBadExpression "USER.WORKFLOW.BAD_EXPRESSION" Operator false
        "workflow: a condition cannot be read, or names something that is not there"
    WorkflowBadTemplate "USER.WORKFLOW.BAD_TEMPLATE" Operator false
        "workflow: a `{{…}}` cannot be read, names something that is not there, or stands where its value could become code"
    WorkflowIsolation "USER.WORKFLOW.ISOLATION" Operator false
        "workflow: the agent of a step is to be isolated, and something in its options would undo that"
    WorkflowBadInput "USER.WORKFLOW.BAD_INPUT" Caller false
        "an input of a workflow is missing, unknown or not valid, or is declared in a way that no value could satisfy"
    WorkflowVisitLimit "USER.WORKFLOW.VISIT_LIMIT" Operator false
        "the run went through 1,000 states without coming to an end"
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the table in `docs/errors.md`.
pub fn reference() -> String {
    let mut text = String::from("| code | whose move | retry | meaning |\n|---|---|---|---|\n");
    for code in Code::ALL {
        let retry = if code.retry() { "yes" } else { "no" };
        let (fault, meaning) = (code.fault().as_str(), code.meaning());
        text.push_str(&format!("| `{code}` | {fault} | {retry} | {meaning} |\n"));
    }
    text
}
