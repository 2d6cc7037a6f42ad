//! Decides whether a call is allowed. One total function decides for every surface; no other code
//! derives its own answer.

mod addressee;
mod lock;
mod permission;

use serde_json::json;

use crate::caller::{Caller, TokenSurface};
use crate::code::Code;
use crate::intent::{self, Declaration, Intent};
use crate::method::SubjectItem;
use crate::refusal::Refusal;
use crate::schema::SchemaVerdict;
use crate::tool::{Class, Hints, ToolName, WORKSPACE};
use text::near;

pub use addressee::Addressee;
pub use lock::{
    ApprovalState, Lock, LockStatus, ServerRules, blocked, blocked_request, lock, subject_lock,
};
pub use permission::{Obstacle, permits};

/// The requested call.
pub struct Call<'a> {
    /// The tool, or the method of another request.
    pub tool: &'a ToolName,
    pub request: Requested<'a>,
    /// `None` for surfaces that tokens do not cover (`wrap`, REST, the command line).
    pub surface: Option<TokenSurface>,
    /// The addressee of a refusal.
    pub addressee: Addressee,
    pub declared: IntentClaim<'a>,
}

/// The kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requested<'a> {
    Tool,
    /// Another method, and what it is about.
    Method(Option<SubjectItem<'a>>),
}

/// The caller's declaration, on surfaces that carry an intent.
pub enum IntentClaim<'a> {
    Nothing,
    Variant(Class, &'a Declaration),
}

/// The known facts about the requested call.
pub struct Facts<'a> {
    pub caller: &'a Caller,
    pub found: Lookup<'a>,
    /// The reaction to annotations that contradict the declared intent.
    pub strictness: Strictness,
    /// The reaction to arguments that do not match the tool's input schema.
    pub arguments: Strictness,
}

pub enum Lookup<'a> {
    /// The tool does not exist or is hidden from this caller: the two must be indistinguishable.
    Nothing {
        near: Vec<String>,
    },
    /// The server exists but cannot show the tool: it is locked as a whole or not connected.
    Server {
        lock: Lock,
        unavailable: Option<&'a str>,
    },
    Tool {
        hints: Hints,
        lock: Lock,
        arguments: SchemaVerdict,
    },
    /// The tool is not offered to models, and a model asks for it.
    AppTool {
        lock: Lock,
    },
}

/// The reaction to a call that contradicts what its tool says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    #[default]
    Refuse,
    Warn,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Allow(Permit),
    Refuse(Refusal),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Permit {
    pub intent: Option<Intent>,
    pub effective: Class,
    pub unverified: bool,
    pub warnings: Vec<Notice>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub text: String,
    pub audience: Audience,
}

/// The recipient of a warning. Every warning is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    Record,
    Caller,
}

pub fn decide(call: &Call<'_>, facts: &Facts<'_>) -> Verdict {
    match check(call, facts) {
        Ok(allowed) => Verdict::Allow(allowed),
        Err(refusal) => Verdict::Refuse(refusal),
    }
}

/// Reports whether the decision depends on the arguments. If not, the tool's schema must not be
/// evaluated.
pub fn depends_on_arguments(call: &Call<'_>, facts: &Facts<'_>) -> bool {
    check_before_arguments(call, facts).is_ok()
}

fn check(call: &Call<'_>, facts: &Facts<'_>) -> Result<Permit, Refusal> {
    let Clearance { intent, hints, arguments, mut warnings } = check_before_arguments(call, facts)?;
    check_arguments(call, facts.arguments, arguments, &mut warnings)?;
    let declared = intent.as_ref().map(|intent| intent.operation);
    permission::check_caller(facts.caller, call.tool, declared, hints)?;
    let effective = permission::effective(declared, hints);
    Ok(Permit { intent, effective, unverified: hints.unverified(), warnings })
}

/// A call that only its arguments or its caller may still rule out.
struct Clearance<'a> {
    intent: Option<Intent>,
    hints: Hints,
    arguments: &'a SchemaVerdict,
    warnings: Vec<Notice>,
}

fn check_before_arguments<'a>(
    call: &Call<'_>,
    facts: &'a Facts<'_>,
) -> Result<Clearance<'a>, Refusal> {
    // Checked first: a caller who may not use this surface learns nothing behind it.
    check_surface(facts.caller, call.surface)?;
    if let Lookup::Nothing { near } = &facts.found {
        return Err(not_found(call.tool, near, call.addressee));
    }
    let intent = check_keys(call)?;
    let (hints, arguments) = match &facts.found {
        Lookup::Nothing { near } => return Err(not_found(call.tool, near, call.addressee)),
        Lookup::Server { lock, unavailable } => {
            check_lock(call, *lock)?;
            return Err(match unavailable {
                Some(reason) => unavailable_server(&call.tool.server, reason),
                None => not_found(call.tool, &[], call.addressee),
            });
        }
        Lookup::AppTool { lock } => {
            check_lock(call, *lock)?;
            return Err(not_for_models(call.tool));
        }
        // The lock takes precedence over the tool's own description of itself.
        Lookup::Tool { hints, lock, arguments } => {
            check_lock(call, *lock)?;
            (*hints, arguments)
        }
    };
    let mut warnings = Vec::new();
    check_hints(call, facts.strictness, hints, &mut warnings)?;
    Ok(Clearance { intent, hints, arguments, warnings })
}

fn check_surface(caller: &Caller, surface: Option<TokenSurface>) -> Result<(), Refusal> {
    let Some(surface) = surface.filter(|surface| !caller.uses(*surface)) else {
        return Ok(());
    };
    let word = surface.as_str();
    Err(Refusal::new(
        Code::NotPermitted,
        format!(
            "token '{}' may not use the {word} surface; ask the operator for a token that may",
            caller.token
        ),
    )
    .with(json!({"surface": word})))
}

fn check_keys(call: &Call<'_>) -> Result<Option<Intent>, Refusal> {
    match call.declared {
        IntentClaim::Nothing => Ok(None),
        IntentClaim::Variant(variant, declaration) => {
            intent::check_keys(variant, call.tool, declaration).map(Some)
        }
    }
}

fn check_hints(
    call: &Call<'_>,
    strictness: Strictness,
    hints: Hints,
    warnings: &mut Vec<Notice>,
) -> Result<(), Refusal> {
    let IntentClaim::Variant(variant, _) = call.declared else { return Ok(()) };
    match (intent::check_hints(variant, call.tool, hints), strictness) {
        (Ok(warning), _) => {
            warnings.extend(warning.map(|text| Notice { text, audience: Audience::Record }));
        }
        (Err(refusal), Strictness::Warn) => {
            warnings.push(Notice { text: refusal.message, audience: Audience::Caller });
        }
        (Err(refusal), Strictness::Refuse) => return Err(refusal),
    }
    Ok(())
}

fn check_lock(call: &Call<'_>, lock: Lock) -> Result<(), Refusal> {
    match lock {
        Lock::Callable => Ok(()),
        Lock::Locked(status) => Err(match call.request {
            Requested::Tool => blocked(call.tool, status, call.addressee),
            Requested::Method(subject) => {
                blocked_request(call.tool, subject, status, call.addressee)
            }
        }),
    }
}

fn check_arguments(
    call: &Call<'_>,
    strictness: Strictness,
    arguments: &SchemaVerdict,
    warnings: &mut Vec<Notice>,
) -> Result<(), Refusal> {
    match (arguments, strictness) {
        (SchemaVerdict::Fits, _) => Ok(()),
        (SchemaVerdict::Unknown(text), _) => {
            warnings.push(Notice { text: text.clone(), audience: Audience::Record });
            Ok(())
        }
        (SchemaVerdict::Faulty(refusal), Strictness::Warn) => {
            let text = format!("sent, although {}", refusal.message);
            warnings.push(Notice { text, audience: Audience::Caller });
            Ok(())
        }
        (SchemaVerdict::Faulty(refusal), Strictness::Refuse) => {
            Err(with_whole_example(call, refusal.clone()))
        }
    }
}

/// Shows the correct arguments within a correct call, on surfaces where that is more than its
/// arguments.
fn with_whole_example(call: &Call<'_>, refusal: Refusal) -> Refusal {
    let IntentClaim::Variant(variant, _) = call.declared else { return refusal };
    let Some(arguments) = refusal.details.get("example").cloned() else { return refusal };
    let mut example = intent::example(variant, Some(call.tool));
    example["args"] = arguments;
    refusal.with_member("example", example)
}

const BUILT_IN_HINT: &str = "; the built-in tools are off when servers are configured, unless \
                             'workspace' in the config enables them";

/// Returns the refusal for a tool that does not exist or is hidden from the caller.
pub fn not_found(tool: &ToolName, near: &[String], addressee: Addressee) -> Refusal {
    let hint = match (near, addressee) {
        ([], Addressee::Discovery | Addressee::Person) if tool.server == WORKSPACE => {
            BUILT_IN_HINT.to_owned()
        }
        ([], Addressee::Discovery) => "; use retrieve_tools to find tools".to_owned(),
        ([], Addressee::Person) => "; run 'countersign tools list' to see all tools".to_owned(),
        ([], Addressee::Passthrough) => String::new(),
        (names, _) => near::hint(names),
    };
    Refusal::new(Code::ToolNotFound, format!("tool '{tool}' not found{hint}"))
        .with(json!({"name": tool.to_string(), "near": near}))
}

/// Returns the refusal for a tool that its server offers to its own user interface only.
pub fn not_for_models(tool: &ToolName) -> Refusal {
    let message = format!(
        "tool '{tool}' is not for models: its server offers it only to its own user interface; use \
         retrieve_tools to find other tools"
    );
    Refusal::new(Code::NotPermitted, message).with(json!({"name": tool.to_string()}))
}

/// Says that a server did not get a call.
pub fn unavailable_server(server: &str, reason: &str) -> Refusal {
    Refusal::new(Code::UpstreamUnavailable, format!("server '{server}' is unavailable: {reason}"))
        .with(json!({"server": server, "reason": reason, "sent": false}))
}

#[cfg(test)]
mod tokens;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::{Operations, UnannotatedRule};

    #[test]
    fn a_built_in_tool_that_is_off_says_how_to_get_it() {
        let tool = ToolName { server: WORKSPACE.to_owned(), tool: "Read".to_owned() };
        let told = not_found(&tool, &[], Addressee::Person).message;
        assert!(told.ends_with("unless 'workspace' in the config enables them"), "{told}");
        let told = not_found(&tool, &["workspace:Grep".to_owned()], Addressee::Person).message;
        assert!(told.contains("workspace:Grep"), "{told}");
    }

    const UNHINTED: Hints = Hints { read_only: None, destructive: None, open_world: None };
    const READ_ONLY: Hints = Hints { read_only: Some(true), ..UNHINTED };
    const DESTRUCTIVE: Hints = Hints { destructive: Some(true), ..UNHINTED };

    fn caller(read: bool, write: bool, destructive: bool, unannotated: UnannotatedRule) -> Caller {
        let operations = Operations { read, write, destructive };
        Caller { operations, unannotated, ..Caller::agent("t") }
    }

    fn verdict(variant: Option<Class>, hints: Hints, caller: &Caller) -> Verdict {
        let tool = ToolName::parse("s:t").unwrap();
        let declaration = Declaration::of(variant.unwrap_or(Class::Read));
        let declared = match variant {
            Some(variant) => IntentClaim::Variant(variant, &declaration),
            None => IntentClaim::Nothing,
        };
        let found = Lookup::Tool { hints, lock: Lock::Callable, arguments: SchemaVerdict::Fits };
        let facts =
            Facts { caller, found, strictness: Strictness::Refuse, arguments: Strictness::Refuse };
        decide(
            &Call {
                tool: &tool,
                request: Requested::Tool,
                surface: None,
                addressee: Addressee::Person,
                declared,
            },
            &facts,
        )
    }

    fn word(verdict: Verdict) -> String {
        match verdict {
            Verdict::Allow(allowed) => {
                let flag = if allowed.unverified { " unverified" } else { "" };
                format!("{}{flag}", allowed.effective)
            }
            Verdict::Refuse(refusal) => refusal.code.to_string(),
        }
    }

    #[test]
    fn the_effective_class_is_the_stricter_of_the_two() {
        let admin = Caller::admin();
        for (variant, hints, expected) in [
            (Some(Class::Read), READ_ONLY, "read"),
            (Some(Class::Read), UNHINTED, "write unverified"),
            (Some(Class::Write), READ_ONLY, "write"),
            (Some(Class::Write), UNHINTED, "write unverified"),
            (Some(Class::Destructive), READ_ONLY, "destructive"),
            (Some(Class::Destructive), UNHINTED, "destructive unverified"),
            (Some(Class::Read), DESTRUCTIVE, "SERVER_MISMATCH"),
            (None, READ_ONLY, "read"),
            (None, UNHINTED, "write unverified"),
            (None, DESTRUCTIVE, "destructive"),
        ] {
            assert_eq!(word(verdict(variant, hints, &admin)), expected, "{variant:?} {hints:?}");
        }
    }

    #[test]
    fn a_read_only_token_cannot_delete_through_any_variant() {
        let reader = caller(true, false, false, UnannotatedRule::Deny);
        let trusting = caller(true, false, false, UnannotatedRule::Allow);
        let variants = [None, Some(Class::Read), Some(Class::Write), Some(Class::Destructive)];
        for variant in variants {
            assert!(matches!(verdict(variant, UNHINTED, &reader), Verdict::Refuse(_)));
            for caller in [&reader, &trusting] {
                assert!(matches!(verdict(variant, DESTRUCTIVE, caller), Verdict::Refuse(_)));
            }
        }
        assert_eq!(word(verdict(Some(Class::Read), READ_ONLY, &reader)), "read");
        assert_eq!(word(verdict(Some(Class::Read), UNHINTED, &trusting)), "write unverified");
        assert_eq!(word(verdict(Some(Class::Destructive), UNHINTED, &trusting)), "NOT_PERMITTED");
        let writer = caller(true, true, false, UnannotatedRule::Allow);
        assert_eq!(word(verdict(Some(Class::Write), UNHINTED, &writer)), "write unverified");
    }

    #[test]
    fn keys_are_checked_before_the_lock_and_the_lock_before_hints() {
        let tool = ToolName::parse("s:t").unwrap();
        let admin = Caller::admin();
        let decided = |variant, declared, lock| {
            let declaration = Declaration::of(declared);
            let declared = IntentClaim::Variant(variant, &declaration);
            let call = Call {
                tool: &tool,
                request: Requested::Tool,
                surface: None,
                addressee: Addressee::Person,
                declared,
            };
            let arguments = SchemaVerdict::Faulty(Refusal::invalid_arguments("bad"));
            let found = Lookup::Tool { hints: DESTRUCTIVE, lock, arguments };
            let facts = Facts {
                caller: &admin,
                found,
                strictness: Strictness::Refuse,
                arguments: Strictness::Refuse,
            };
            (word(decide(&call, &facts)), depends_on_arguments(&call, &facts))
        };
        let locked = Lock::Locked(LockStatus::PendingApproval);
        for (variant, declared, lock, expected, depends) in [
            (Class::Read, Class::Write, locked, "INTENT_MISMATCH", false),
            (Class::Read, Class::Read, locked, "TOOL_BLOCKED", false),
            (Class::Destructive, Class::Destructive, locked, "TOOL_BLOCKED", false),
            (Class::Read, Class::Read, Lock::Callable, "SERVER_MISMATCH", false),
            (Class::Destructive, Class::Destructive, Lock::Callable, "INVALID_ARGUMENTS", true),
        ] {
            let found = decided(variant, declared, lock);
            assert_eq!(found, (expected.to_owned(), depends), "{variant} {declared} {lock:?}");
        }
    }

    #[test]
    fn with_strictness_off_the_caller_hears_the_warning() {
        let tool = ToolName::parse("s:t").unwrap();
        let declaration = Declaration::of(Class::Read);
        let declared = IntentClaim::Variant(Class::Read, &declaration);
        let call = Call {
            tool: &tool,
            request: Requested::Tool,
            surface: None,
            addressee: Addressee::Person,
            declared,
        };
        let found = Lookup::Tool {
            hints: DESTRUCTIVE,
            lock: Lock::Callable,
            arguments: SchemaVerdict::Fits,
        };
        let admin = Caller::admin();
        let facts = Facts {
            caller: &admin,
            found,
            strictness: Strictness::Warn,
            arguments: Strictness::Refuse,
        };
        let Verdict::Allow(allowed) = decide(&call, &facts) else { panic!("refused") };
        assert_eq!(allowed.effective, Class::Destructive);
        assert_eq!(allowed.warnings[0].audience, Audience::Caller);
        assert!(allowed.warnings[0].text.contains("is marked destructive by server"));
    }

    #[test]
    fn arguments_that_do_not_match_are_sent_where_the_operator_says_so() {
        let tool = ToolName::parse("s:t").unwrap();
        let call = Call {
            tool: &tool,
            request: Requested::Tool,
            surface: None,
            addressee: Addressee::Person,
            declared: IntentClaim::Nothing,
        };
        let admin = Caller::admin();
        let decided = |arguments| {
            let faulty = SchemaVerdict::Faulty(Refusal::invalid_arguments("n is missing"));
            let found = Lookup::Tool { hints: READ_ONLY, lock: Lock::Callable, arguments: faulty };
            let strictness = Strictness::Refuse;
            decide(&call, &Facts { caller: &admin, found, strictness, arguments })
        };
        assert_eq!(word(decided(Strictness::Refuse)), "INVALID_ARGUMENTS");
        let Verdict::Allow(allowed) = decided(Strictness::Warn) else { panic!("refused") };
        let warning = &allowed.warnings[0];
        assert!(warning.text.ends_with("n is missing"), "{}", warning.text);
        assert_eq!(warning.audience, Audience::Caller);
    }

    #[test]
    fn a_locked_or_silent_server_says_so_before_anything_is_looked_up() {
        let tool = ToolName::parse("s:t").unwrap();
        let admin = Caller::admin();
        let refused = |found| {
            let call = Call {
                tool: &tool,
                request: Requested::Tool,
                surface: None,
                addressee: Addressee::Person,
                declared: IntentClaim::Nothing,
            };
            let facts = Facts {
                caller: &admin,
                found,
                strictness: Strictness::Refuse,
                arguments: Strictness::Refuse,
            };
            match decide(&call, &facts) {
                Verdict::Refuse(refusal) => refusal,
                Verdict::Allow(_) => panic!("allowed"),
            }
        };
        let locked = Lock::Locked(LockStatus::ServerDisabled);
        let blocked = refused(Lookup::Server { lock: locked, unavailable: Some("gone") });
        assert_eq!(blocked.details["status"], "server_disabled");
        let silent = refused(Lookup::Server { lock: Lock::Callable, unavailable: Some("gone") });
        assert_eq!(silent.code, Code::UpstreamUnavailable);
        let near = refused(Lookup::Nothing { near: vec!["s:tt".to_owned()] });
        assert!(near.message.contains("did you mean 's:tt'?"), "{}", near.message);
    }
}
