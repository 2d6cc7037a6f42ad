//! Tests every token against every tool, variant and surface: the table of what tokens can reach.

use proptest::prelude::*;

use super::*;
use crate::caller::{Operations, Surfaces, UnannotatedRule};

const UNHINTED: Hints = Hints { read_only: None, destructive: None, open_world: None };
const READ_ONLY: Hints = Hints { read_only: Some(true), ..UNHINTED };
const DESTRUCTIVE: Hints = Hints { destructive: Some(true), ..UNHINTED };
const BOTH: Hints = Hints { read_only: Some(true), ..DESTRUCTIVE };
/// Explicitly not read-only, which says more than no hint.
const WRITING: Hints = Hints { read_only: Some(false), ..UNHINTED };

const VARIANTS: [Option<Class>; 4] =
    [Some(Class::Read), Some(Class::Write), Some(Class::Destructive), None];

fn token(operations: &str, unannotated: UnannotatedRule, surfaces: Surfaces) -> Caller {
    let operations = Operations {
        read: operations.contains('r'),
        write: operations.contains('w'),
        destructive: operations.contains('d'),
    };
    Caller { operations, unannotated, surfaces, ..Caller::agent("t") }
}

fn word(
    caller: &Caller,
    hints: Hints,
    variant: Option<Class>,
    surface: Option<TokenSurface>,
) -> &'static str {
    let tool = ToolName::parse("s:t").unwrap();
    let declaration = variant.map(|variant| (variant, Declaration::of(variant)));
    let declared = match &declaration {
        Some((variant, declaration)) => IntentClaim::Variant(*variant, declaration),
        None => IntentClaim::Nothing,
    };
    let found = Lookup::Tool { hints, lock: Lock::Callable, arguments: SchemaVerdict::Fits };
    let facts =
        Facts { caller, found, strictness: Strictness::Refuse, arguments: Strictness::Refuse };
    match decide(
        &Call {
            tool: &tool,
            request: Requested::Tool,
            surface,
            addressee: Addressee::Discovery,
            declared,
        },
        &facts,
    ) {
        Verdict::Allow(allowed) => allowed.effective.as_str(),
        Verdict::Refuse(refusal) if refusal.code == Code::NotPermitted => "-",
        Verdict::Refuse(refusal) => refusal.code.as_str(),
    }
}

/// `-` is NOT_PERMITTED; `r`, `w`, `d` are allowed with that effective class; `!` is a mismatch
/// between variant and hints, which no token changes. The columns are the variants read, write,
/// destructive, and no declaration.
#[test]
fn what_each_token_reaches() {
    use UnannotatedRule::{Allow, Deny};
    let tools = [READ_ONLY, UNHINTED, WRITING, DESTRUCTIVE, BOTH];
    for (operations, unannotated, expected) in [
        //              read-only  unhinted  writing  destructive  both
        ("r", Deny, "r--r ---- ---- !!-- !!--"),
        ("r", Allow, "r--r w--w ---- !!-- !!--"),
        ("w", Allow, "-w-- ww-w ww-w !!-- !!--"),
        ("d", Allow, "--d- --d- --d- !!dd !!dd"),
        ("rw", Allow, "rw-r ww-w ww-w !!-- !!--"),
        ("rw", Deny, "rw-r ---- ww-w !!-- !!--"),
        ("rd", Allow, "r-dr --d- --d- !!dd !!dd"),
        ("rwd", Allow, "rwdr wwdw wwdw !!dd !!dd"),
        ("rwd", Deny, "rwdr ---- wwdw !!dd !!dd"),
        ("", Allow, "---- ---- ---- !!-- !!--"),
        ("", Deny, "---- ---- ---- !!-- !!--"),
    ] {
        let caller = token(operations, unannotated, Surfaces::ALL);
        for surface in [None, Some(TokenSurface::Discovery), Some(TokenSurface::Passthrough)] {
            let cells = tools.map(|hints| {
                let cell = |variant| match word(&caller, hints, variant, surface) {
                    "SERVER_MISMATCH" => "!",
                    word => &word[..1],
                };
                VARIANTS.map(cell).concat()
            });
            assert_eq!(cells.join(" "), expected, "{operations} {unannotated:?} {surface:?}");
        }
    }
}

#[test]
fn a_token_stays_on_its_surfaces() {
    for (surfaces, discovery, passthrough) in [
        (Surfaces { discovery: false, passthrough: false }, "-", "-"),
        (Surfaces { discovery: false, passthrough: true }, "-", "read"),
        (Surfaces::DISCOVERY, "read", "-"),
        (Surfaces::ALL, "read", "read"),
    ] {
        let caller = token("rwd", UnannotatedRule::Allow, surfaces);
        let on = |surface| word(&caller, READ_ONLY, None, surface);
        assert_eq!(on(Some(TokenSurface::Discovery)), discovery, "{surfaces:?}");
        assert_eq!(on(Some(TokenSurface::Passthrough)), passthrough, "{surfaces:?}");
        assert_eq!(on(None), "read", "other doors ask for the person's own key");
    }
}

#[test]
fn a_forbidden_surface_reveals_nothing_about_its_tools() {
    let tool = ToolName::parse("s:t").unwrap();
    let caller = token("rwd", UnannotatedRule::Allow, Surfaces::DISCOVERY);
    let surface = Some(TokenSurface::Passthrough);
    let refusal = |found| {
        let facts = Facts {
            caller: &caller,
            found,
            strictness: Strictness::Refuse,
            arguments: Strictness::Refuse,
        };
        let (addressee, declared) = (Addressee::Passthrough, IntentClaim::Nothing);
        match decide(
            &Call { tool: &tool, request: Requested::Tool, surface, addressee, declared },
            &facts,
        ) {
            Verdict::Refuse(refusal) => refusal,
            Verdict::Allow(_) => panic!("allowed"),
        }
    };
    let nothing = refusal(Lookup::Nothing { near: vec!["s:tt".to_owned()] });
    assert_eq!(nothing.code, Code::NotPermitted);
    assert_eq!(
        nothing.message,
        "token 't' may not use the passthrough surface; ask the operator for a token that may"
    );
    assert_eq!(nothing.details["surface"], "passthrough");
    let found =
        Lookup::Tool { hints: READ_ONLY, lock: Lock::Callable, arguments: SchemaVerdict::Fits };
    assert_eq!(refusal(found), nothing);
}

proptest! {
    /// A tool is offered exactly if some call of it would be allowed.
    #[test]
    fn tools_are_offered_if_some_call_is_allowed(
        (read, write, destructive, deny) in any::<(bool, bool, bool, bool)>(),
        (read_only, destroys) in any::<(Option<bool>, Option<bool>)>(),
    ) {
        let operations = Operations { read, write, destructive };
        let unannotated = if deny { UnannotatedRule::Deny } else { UnannotatedRule::Allow };
        let caller = Caller { operations, unannotated, ..Caller::agent("t") };
        let hints = Hints { read_only, destructive: destroys, open_world: None };
        let is_allowed = |variant| Class::parse(word(&caller, hints, variant, None)).is_some();
        let declared = Class::ALL.into_iter().any(|class| is_allowed(Some(class)));
        prop_assert_eq!(permits(&caller, TokenSurface::Discovery, hints), declared);
        prop_assert_eq!(permits(&caller, TokenSurface::Passthrough, hints), is_allowed(None));
    }

    /// Checks the specification as one formula, for any hints and either strictness.
    #[test]
    fn an_allowed_call_is_covered_by_the_token(
        (read, write, destructive, deny) in any::<(bool, bool, bool, bool)>(),
        (read_only, destroys) in any::<(Option<bool>, Option<bool>)>(),
        variant in prop::sample::select(VARIANTS.to_vec()),
        strict in any::<bool>(),
    ) {
        let operations = Operations { read, write, destructive };
        let unannotated = if deny { UnannotatedRule::Deny } else { UnannotatedRule::Allow };
        let caller = Caller { operations, unannotated, ..Caller::agent("t") };
        let hints = Hints { read_only, destructive: destroys, open_world: None };
        let tool = ToolName::parse("s:t").unwrap();
        let declaration = Declaration::of(variant.unwrap_or(Class::Read));
        let declared =
            variant.map_or(IntentClaim::Nothing, |variant| IntentClaim::Variant(variant, &declaration));
        let found = Lookup::Tool { hints, lock: Lock::Callable, arguments: SchemaVerdict::Fits };
        let strictness = if strict { Strictness::Refuse } else { Strictness::Warn };
        let facts = Facts { caller: &caller, found, strictness, arguments: Strictness::Refuse };
        let call = Call {
            tool: &tool,
            request: Requested::Tool,
            surface: None,
            addressee: Addressee::Person,
            declared,
        };
        if let Verdict::Allow(allowed) = decide(&call, &facts) {
            let says_nothing = read_only.is_none() && destroys.is_none();
            prop_assert!(destructive || destroys != Some(true));
            prop_assert!(destructive || variant != Some(Class::Destructive));
            prop_assert!(!(says_nothing && deny));
            prop_assert!(write || destructive || variant != Some(Class::Write));
            prop_assert!(operations.allow(allowed.effective) || (read && says_nothing));
        }
    }
}
