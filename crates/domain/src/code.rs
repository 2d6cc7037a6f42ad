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

/// The answer to whether the same call may succeed later without a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryRule {
    Yes,
    No,
    /// The call may have been made: one that changes something is repeated only after a check.
    Check,
}

impl RetryRule {
    pub fn as_str(self) -> &'static str {
        match self {
            RetryRule::Yes => "yes",
            RetryRule::No => "no",
            RetryRule::Check => "check",
        }
    }
}

macro_rules! retry {
    (true) => {
        RetryRule::Yes
    };
    (false) => {
        RetryRule::No
    };
    (check) => {
        RetryRule::Check
    };
}

macro_rules! codes {
    ($($variant:ident $text:literal $fault:ident $retry:tt $meaning:literal)*) => {
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

            pub fn retry(self) -> RetryRule {
                match self { $(Code::$variant => retry!($retry)),* }
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
        "the tool's annotations mark it as destructive, but the call used another variant"
    InvalidArguments "INVALID_ARGUMENTS" Caller false
        "a parameter is missing, malformed or does not match the tool's input schema"
    ToolNotFound "TOOL_NOT_FOUND" Caller false
        "no tool with this name is visible to the caller"
    ToolBlocked "TOOL_BLOCKED" Operator false
        "the tool exists but is locked; `details` says why and who can unlock it"
    NotPermitted "NOT_PERMITTED" Operator false
        "the caller's token does not cover the effective class of the call"
    UpstreamUnavailable "UPSTREAM_UNAVAILABLE" Upstream true
        "the tool's server is not connected, or did not accept the call; nothing was done"
    OutcomeUnknown "OUTCOME_UNKNOWN" Upstream check
        "the call was sent, and its answer was lost or cannot be used; the call may have taken effect"
    UpstreamError "UPSTREAM_ERROR" Upstream false
        "the tool's server returned a protocol error, included in `details`"
    Timeout "TIMEOUT" Upstream check
        "the tool's server did not respond in time; if `details.sent` is true, the call may have taken effect"
    ResponseTooLarge "RESPONSE_TOO_LARGE" Upstream false
        "the tool's server answered with more than 16 MiB; the call may have taken effect"
    Cancelled "CANCELLED" Caller false
        "the caller cancelled the call, or the gate is shutting down; if `details.sent` is true, the call may have taken effect"
    LedgerUnavailable "LEDGER_UNAVAILABLE" Gate check
        "the call could not be recorded; the message and `details.sent` say whether it was made"
    LedgerIncomplete "LEDGER_INCOMPLETE" Operator false
        "`ledger.db` is missing, empty or older than the other files of the home or than `ledger.anchor`; `countersign ledger check` says what is known"
    SecretsUnavailable "SECRETS_UNAVAILABLE" Operator true
        "the encrypted store of secrets, or the key to it, cannot be used; the message says why"
    SignInFailed "SIGN_IN_FAILED" Operator false
        "the sign-in to a server could not begin or did not succeed; the message says why"
    CacheMiss "CACHE_MISS" Caller false
        "the `read_cache` key is unknown or older than two hours"
    Unauthorized "UNAUTHORIZED" Caller false
        "the request has no token, or an unknown one"
    Forbidden "FORBIDDEN" Caller false
        "the token does not grant access to this route, or the Host or Origin header is not allowed"
    NotFound "NOT_FOUND" Caller false
        "the route, server or tool does not exist"
    Conflict "CONFLICT" Operator false
        "the request conflicts with the current state: the config forbids it, the name is taken, or nothing waits for approval"
    ReviewChanged "REVIEW_CHANGED" Operator false
        "the version to approve is not the one that was shown; nothing was approved, and `details` holds the current one"
    InvalidRequest "INVALID_REQUEST" Caller false
        "the HTTP request is malformed; `details` names the field and its valid values"
    TooManyRequests "TOO_MANY_REQUESTS" Caller true
        "the token exceeds its share of calls, connections or requests per minute"
    LedgerShareExceeded "LEDGER_SHARE_EXCEEDED" Operator true
        "the records of the last day exceed the ledger's limits, and the token made more than half of what they allow; `max_records` or `max_size_mb` must be raised, or older records leave after a day"
    PayloadTooLarge "PAYLOAD_TOO_LARGE" Caller false
        "the request body exceeds the size limit"
    RequestTimeout "REQUEST_TIMEOUT" Caller true
        "the request body did not arrive in time"
    UnsupportedMediaType "UNSUPPORTED_MEDIA_TYPE" Caller false
        "the request body is not `application/json`, or has a content encoding"
    MethodNotAllowed "METHOD_NOT_ALLOWED" Caller false
        "the route does not support this HTTP method"
    AgentFailed "AGENT_FAILED" Upstream false
        "the agent of a step did not start, did not list its tools or ended without a result, or its model's server failed"
    CommandFailed "COMMAND_FAILED" Caller false
        "the command of a step exited with a code other than 0, or was killed by a signal"
    OperationFailed "OPERATION_FAILED" Upstream false
        "the plugin ran the operation of a step and reported that it failed"
    AgentBypassed "AGENT_BYPASSED" Upstream false
        "the agent of an isolated step used one of its own tools and so bypassed the gate"
    AgentLimit "AGENT_LIMIT" Operator false
        "the agent of a step went beyond `max_turns`, `max_tokens` or `max_cost_usd` and was ended"
    RunNotResumable "RUN_NOT_RESUMABLE" Caller false
        "the run cannot go on: its workflow, folder or inputs differ, or it did not keep what it needs"
    AgentNotIsolated "AGENT_NOT_ISOLATED" Operator false
        "the agent of an isolated step announced tools other than the gate's and was ended, or it was not started because it reads a file that would add some"
    ShuttingDown "SHUTTING_DOWN" Gate true
        "the gate is shutting down and accepts no new calls"
    ProxyUnknownKey "USER.MCP_PROXY.UNKNOWN_KEY" Operator false
        "workflow: `mcp_proxy`, or an entry of its `plugin_tools`, has an unknown key"
    ProxyUnknownPlugin "USER.MCP_PROXY.UNKNOWN_PLUGIN" Operator false
        "workflow: no plugin with this name was found or declared"
    ProxyPluginNotApproved "USER.MCP_PROXY.PLUGIN_NOT_APPROVED" Operator false
        "workflow: the plugin comes from the project and this user has not approved it"
    ProxyUnknownServer "USER.MCP_PROXY.UNKNOWN_SERVER" Operator false
        "workflow: `mcp_servers` names a server that the config does not have"
    ProxyServerUnusable "USER.MCP_PROXY.SERVER_UNUSABLE" Operator false
        "workflow: a server that `mcp_servers` names is disabled, in quarantine, or cannot be started"
    ProxyUnknownOperation "USER.MCP_PROXY.UNKNOWN_OPERATION" Operator false
        "workflow: the plugin has no operation with this name, or none that can be a tool"
    ProxyNameCollision "USER.MCP_PROXY.NAME_COLLISION" Operator false
        "workflow: two tools of a step would have the same name"
    ProxyEmpty "USER.MCP_PROXY.EMPTY_PROXY" Operator false
        "workflow: `mcp_proxy` is enabled but offers no tools"
    ProxyUnsupportedProvider "USER.MCP_PROXY.UNSUPPORTED_PROVIDER" Operator false
        "workflow: the installed version of this provider cannot disable the agent's own tools; a warning, or an error if the step sets `isolation: required`"
    ProxyLoopGuard "USER.MCP_PROXY.INFINITE_LOOP_GUARD" Upstream false
        "the model requested a tool call without naming a tool, or exceeded `max_turns`"
    WorkflowSyntax "USER.WORKFLOW.SYNTAX" Operator false
        "the workflow cannot be parsed: it is not valid YAML, repeats a key, or exceeds a limit"
    WorkflowUnknownKey "USER.WORKFLOW.UNKNOWN_KEY" Operator false
        "workflow: a key is not valid where it is used"
    WorkflowMissingKey "USER.WORKFLOW.MISSING_KEY" Operator false
        "workflow: a required key is missing"
    WorkflowWrongType "USER.WORKFLOW.WRONG_TYPE" Operator false
        "workflow: a value has the wrong type for its key"
    WorkflowBadValue "USER.WORKFLOW.BAD_VALUE" Operator false
        "workflow: a value has the right type but is not valid for its key"
    WorkflowBadName "USER.WORKFLOW.BAD_NAME" Operator false
        "workflow: a name is empty, too long, already used, or contains invalid characters"
    WorkflowUnknownState "USER.WORKFLOW.UNKNOWN_STATE" Operator false
        "workflow: a state that is referred to does not exist"
    WorkflowUnreachable "USER.WORKFLOW.UNREACHABLE" Operator false
        "workflow: a state cannot be reached; a warning"
    WorkflowNoEffect "USER.WORKFLOW.NO_EFFECT" Operator false
        "workflow: a setting has no effect; a warning"
    WorkflowNoTerminal "USER.WORKFLOW.NO_TERMINAL" Operator false
        "workflow: no terminal state can be reached from `initial`"
    WorkflowBadParallel "USER.WORKFLOW.BAD_PARALLEL" Operator false
        "workflow: a parallel state runs itself, runs a state twice at once, or runs one that cannot run in parallel"
    WorkflowBadExpression "USER.WORKFLOW.BAD_EXPRESSION" Operator false
        "workflow: a condition cannot be parsed, or refers to something that does not exist"
    WorkflowBadTemplate "USER.WORKFLOW.BAD_TEMPLATE" Operator false
        "workflow: a `{{…}}` cannot be parsed, refers to something that does not exist, or is used where its value could be run as code"
    WorkflowIsolation "USER.WORKFLOW.ISOLATION" Operator false
        "workflow: a step requires isolation without enabling it, or the options of its agent would break it"
    WorkflowNoAgent "USER.WORKFLOW.AGENT_UNAVAILABLE" Operator false
        "workflow: the program of a step's agent is missing, too old, or does not answer"
    WorkflowBadFolder "USER.WORKFLOW.BAD_FOLDER" Operator false
        "the folder of a step does not exist or cannot be used; a warning where an earlier step may create it"
    WorkflowBadInput "USER.WORKFLOW.BAD_INPUT" Caller false
        "a workflow input is missing, unknown or invalid, or its declaration accepts no value at all"
    WorkflowVisitLimit "USER.WORKFLOW.VISIT_LIMIT" Operator false
        "the run visited 1,000 states without reaching a terminal state"
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the table in `docs/errors.md`.
pub fn reference() -> String {
    let mut text = String::from("| code | fixed by | retry | meaning |\n|---|---|---|---|\n");
    for code in Code::ALL {
        let (retry, fault) = (code.retry().as_str(), code.fault().as_str());
        let meaning = code.meaning();
        text.push_str(&format!("| `{code}` | {fault} | {retry} | {meaning} |\n"));
    }
    text
}
