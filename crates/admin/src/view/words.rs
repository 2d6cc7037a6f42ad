//! Schemas of single values: closed lists of words, which the domain defines, and texts with their
//! own format.

use domain::caller::{TokenSurface, UnannotatedRule};
use domain::catalog::Server;
use domain::config::{
    ArgumentCheck, AutoApprove, LoginScope, OAuthGrant, Sharing, Start, TokenAuth,
};
use domain::intent::Sensitivity;
use domain::policy::Lock;
use domain::tool::Class;
use domain::trust::{ItemKind, ReviewChange, ServerChange};
use gateway::operator::LoginProgress;
use receipt::RiskLevel;
use serde_json::Value;
use store::read::{Period, TouchAccess};
use store::run::{RunStatus, StepStatus};
use store::{RecordKind, RecordStatus};
use suspect::WarningKind;
use touch::contention;
use touch::targets::Access;
use utoipa::openapi::schema::{AdditionalProperties, ArrayBuilder, SchemaType, Type};
use utoipa::openapi::{
    KnownFormat, Object, ObjectBuilder, OneOfBuilder, RefOr, Schema, SchemaFormat,
};

/// The word for all servers; no server can have it as its name.
pub(crate) const EVERY_SERVER: &str = "*";

/// The word for an item that no longer exists.
pub(crate) const REMOVED: &str = "removed";

/// The possible outcomes of a receipt.
pub(crate) const RECEIPT_STATUSES: [&str; 3] = ["success", "failure", "pending"];

/// A duration as people write it. More digits could exceed the limits of its uses.
const DURATION: &str = "^[1-9][0-9]{0,5}(ms|s|m|h|d)$";

/// A name of a server, a token or a profile: plain characters, and neither `.` nor `..`.
const NAME: &str = r"^(\.{0,2}[A-Za-z0-9_-][A-Za-z0-9_.-]*|\.{3,})$";
const NAME_CHARS_MAX: usize = 64;

/// The maximum number of concurrent calls to a server.
const CONCURRENT_MAX: usize = 10_000;

pub(crate) fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

pub(crate) fn text_or_null() -> Object {
    or_null(text())
}

pub(crate) fn count_between(min: usize, max: usize) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(min)).maximum(Some(max))
}

pub(crate) fn one_of(words: impl IntoIterator<Item = &'static str>) -> ObjectBuilder {
    text().enum_values(Some(words))
}

fn list_of(items: impl Into<RefOr<Schema>>) -> ArrayBuilder {
    ArrayBuilder::new().items(items.into())
}

/// Allows null as well.
pub(crate) fn or_null(object: ObjectBuilder) -> Object {
    let mut object = object.build();
    if let SchemaType::Type(kind) = object.schema_type {
        object.schema_type = [kind, Type::Null].into_iter().collect();
    }
    object.enum_values.iter_mut().for_each(|words| words.push(Value::Null));
    object
}

fn list_or_null(list: ArrayBuilder) -> utoipa::openapi::Array {
    let mut list = list.build();
    list.schema_type = [Type::Array, Type::Null].into_iter().collect();
    list
}

pub(crate) fn anything() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::AnyValue)
}

pub(crate) fn any_object() -> ObjectBuilder {
    ObjectBuilder::new().additional_properties(Some(AdditionalProperties::FreeForm(true)))
}

pub(crate) fn any_object_or_null() -> Object {
    or_null(any_object())
}

pub(crate) fn moment() -> ObjectBuilder {
    text().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
}

pub(crate) fn moment_or_null() -> Object {
    or_null(moment())
}

pub(crate) fn duration() -> ObjectBuilder {
    text().pattern(Some(DURATION))
}

pub(crate) fn duration_or_null() -> Object {
    or_null(duration())
}

/// Describes a duration as people write it, or a number of seconds.
pub(crate) fn duration_or_seconds() -> OneOfBuilder {
    let seconds = ObjectBuilder::new().schema_type(Type::Number).minimum(Some(0));
    OneOfBuilder::new().item(duration()).item(seconds.description(Some("In seconds.")))
}

/// Describes `sha256:` and the digest.
pub(crate) fn digest() -> ObjectBuilder {
    text().pattern(Some("^sha256:[0-9a-f]{64}$"))
}

pub(crate) fn digest_or_null() -> Object {
    or_null(digest())
}

pub(crate) fn did() -> ObjectBuilder {
    text().pattern(Some("^did:key:z"))
}

pub(crate) fn name() -> ObjectBuilder {
    text().pattern(Some(NAME)).max_length(Some(NAME_CHARS_MAX))
}

pub(crate) fn name_or_null() -> Object {
    or_null(name())
}

/// Describes text with at least one character.
pub(crate) fn filled() -> ObjectBuilder {
    text().min_length(Some(1))
}

pub(crate) fn tool_name() -> ObjectBuilder {
    text().pattern(Some(r"^[A-Za-z0-9_.-]+:\S"))
}

pub(crate) fn reason_or_null() -> Object {
    or_null(text().max_length(Some(domain::intent::REASON_CHARS_MAX)))
}

pub(crate) fn class() -> ObjectBuilder {
    one_of(Class::ALL.map(Class::as_str))
}

pub(crate) fn class_or_null() -> Object {
    or_null(class())
}

pub(crate) fn variant() -> ObjectBuilder {
    one_of(Class::ALL.map(Class::variant))
}

pub(crate) fn sensitivity_or_null() -> Object {
    or_null(one_of(Sensitivity::ALL.map(Sensitivity::as_str)))
}

pub(crate) fn record_kind() -> ObjectBuilder {
    one_of(RecordKind::ALL.map(RecordKind::as_str))
}

pub(crate) fn record_status() -> ObjectBuilder {
    one_of(RecordStatus::ALL.map(RecordStatus::as_str))
}

/// Describes a count for each outcome.
pub(crate) fn status_counts() -> ObjectBuilder {
    let count = || ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    RecordStatus::ALL.iter().fold(ObjectBuilder::new(), |counts, status| {
        counts.property(status.as_str(), count()).required(status.as_str())
    })
}

pub(crate) fn period() -> ObjectBuilder {
    one_of(Period::ALL.map(Period::as_str))
}

pub(crate) fn period_or_day() -> ObjectBuilder {
    period().default(Some(Period::Day.as_str().into()))
}

/// Describes what a call did to a resource.
pub(crate) fn access() -> ObjectBuilder {
    one_of(Access::ALL.map(Access::as_str))
}

/// Describes the effect on a resource that a filter asks for.
pub(crate) fn touch_access() -> ObjectBuilder {
    one_of(TouchAccess::ALL.map(TouchAccess::as_str))
}

/// Describes the id of an edge.
pub(crate) fn edge_id() -> ObjectBuilder {
    text().pattern(Some("^[0-9a-f]{12}$"))
}

pub(crate) fn contention_kind() -> ObjectBuilder {
    one_of(contention::ContentionKind::ALL.map(contention::ContentionKind::as_str))
}

pub(crate) fn lock() -> ObjectBuilder {
    one_of(Lock::words())
}

pub(crate) fn lock_or_null() -> Object {
    or_null(lock())
}

pub(crate) fn lock_or_removed() -> ObjectBuilder {
    one_of(Lock::words().into_iter().chain([REMOVED]))
}

pub(crate) fn server_state() -> ObjectBuilder {
    one_of(Server::STATE_WORDS)
}

pub(crate) fn server_state_or_null() -> Object {
    or_null(server_state())
}

pub(crate) fn server_state_or_removed() -> ObjectBuilder {
    one_of(Server::STATE_WORDS.into_iter().chain([REMOVED]))
}

pub(crate) fn login_state() -> ObjectBuilder {
    one_of(LoginProgress::WORDS)
}

/// An address on this machine, with any port but the reserved ones.
pub(crate) fn redirect_or_null() -> Object {
    const REDIRECT: &str = "^http://127\\.0\\.0\\.1:([1-9][0-9]{3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|\
                            65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])/callback$";
    or_null(text().pattern(Some(REDIRECT)))
}

pub(crate) fn token_auth() -> ObjectBuilder {
    one_of(TokenAuth::NAMES.iter().copied())
}

pub(crate) fn scopes() -> ArrayBuilder {
    list_of(text().pattern(Some(r"^[!#-\[\]-~]+$")))
}

pub(crate) fn oauth_grant() -> ObjectBuilder {
    one_of(OAuthGrant::NAMES.iter().copied())
}

pub(crate) fn origin() -> ObjectBuilder {
    one_of(["own", "found", "added"])
}

pub(crate) fn server_warning() -> ObjectBuilder {
    one_of(["unknown_tool", "unfit_target_rule"])
}

pub(crate) fn text_warning() -> ObjectBuilder {
    one_of(WarningKind::ALL.map(WarningKind::as_str))
}

pub(crate) fn item_kind() -> ObjectBuilder {
    one_of(ItemKind::ALL.map(ItemKind::as_str)).default(Some(ItemKind::Tool.as_str().into()))
}

pub(crate) fn item_kind_or_null() -> Object {
    or_null(item_kind())
}

/// Lists the kinds of which a server can have several.
pub(crate) fn named_item_kind_or_null() -> Object {
    let kinds = [ItemKind::Tool, ItemKind::Prompt, ItemKind::Template].map(ItemKind::as_str);
    or_null(one_of(kinds).default(Some(ItemKind::Tool.as_str().into())))
}

pub(crate) fn instructions_kind() -> ObjectBuilder {
    one_of([ItemKind::Instructions.as_str()])
}

pub(crate) fn item_status() -> ObjectBuilder {
    one_of(["pending_approval", "approved"])
}

pub(crate) fn change() -> ObjectBuilder {
    one_of(ReviewChange::ALL.map(ReviewChange::as_str))
}

pub(crate) fn server_change() -> ObjectBuilder {
    one_of(ServerChange::ALL.map(ServerChange::as_str))
}

pub(crate) fn mark() -> ObjectBuilder {
    one_of(["same", "removed", "added", "skipped"])
}

pub(crate) fn transport() -> ObjectBuilder {
    one_of(["stdio", "http", "sse"])
}

pub(crate) fn auto_approve() -> ObjectBuilder {
    one_of(AutoApprove::NAMES.iter().copied())
}

pub(crate) fn sharing() -> ObjectBuilder {
    one_of(Sharing::NAMES.iter().copied())
}

pub(crate) fn arguments() -> ObjectBuilder {
    one_of(ArgumentCheck::NAMES.iter().copied())
}

pub(crate) fn login_scope() -> ObjectBuilder {
    one_of(LoginScope::NAMES.iter().copied())
}

pub(crate) fn start() -> ObjectBuilder {
    one_of(Start::NAMES.iter().copied())
}

pub(crate) fn concurrent() -> ObjectBuilder {
    count_between(1, CONCURRENT_MAX)
}

pub(crate) fn token_state() -> ObjectBuilder {
    one_of(["valid", "expired", "revoked"])
}

pub(crate) fn operations() -> ArrayBuilder {
    list_of(class())
}

pub(crate) fn some_operations() -> ArrayBuilder {
    operations().min_items(Some(1))
}

pub(crate) fn surfaces() -> ArrayBuilder {
    list_of(one_of(TokenSurface::ALL.map(TokenSurface::as_str)))
}

pub(crate) fn some_surfaces_or_null() -> utoipa::openapi::Array {
    list_or_null(surfaces().min_items(Some(1)))
}

/// Describes names of servers, or only the word for all of them.
pub(crate) fn some_servers_or_null() -> OneOfBuilder {
    let every = list_of(one_of([EVERY_SERVER])).min_items(Some(1)).max_items(Some(1));
    let every = every.description(Some("All servers, which is the default."));
    let null = ObjectBuilder::new().schema_type(Type::Null);
    OneOfBuilder::new().item(every).item(list_of(name()).min_items(Some(1))).item(null)
}

pub(crate) fn unannotated() -> ObjectBuilder {
    one_of(UnannotatedRule::ALL.map(UnannotatedRule::as_str))
}

pub(crate) fn unannotated_or_null() -> Object {
    or_null(unannotated())
}

pub(crate) fn risk_level() -> ObjectBuilder {
    one_of(RiskLevel::ALL.map(RiskLevel::as_str))
}

pub(crate) fn receipt_status() -> ObjectBuilder {
    one_of(RECEIPT_STATUSES)
}

pub(crate) fn chain_state_or_null() -> Object {
    or_null(one_of(["open", "complete", "interrupted", "unclosed", "expired", "damaged"]))
}

pub(crate) fn chain_status() -> ObjectBuilder {
    one_of(["complete", "interrupted", "unknown"])
}

pub(crate) fn run_status() -> ObjectBuilder {
    one_of(RunStatus::ALL.map(RunStatus::as_str))
}

pub(crate) fn step_status() -> ObjectBuilder {
    one_of(StepStatus::ALL.map(StepStatus::as_str))
}

pub(crate) fn error_code() -> ObjectBuilder {
    one_of(domain::Code::ALL.iter().map(|code| code.as_str()))
}

pub(crate) fn ledger_state() -> ObjectBuilder {
    one_of(["ok", "failing"])
}

pub(crate) fn config_state() -> ObjectBuilder {
    one_of(["ok", "rejected"])
}

pub(crate) fn queued() -> ObjectBuilder {
    one_of(["queued"])
}

pub(crate) fn alive() -> ObjectBuilder {
    one_of(["ok"])
}

pub(crate) fn readiness() -> ObjectBuilder {
    one_of(["ready", "unready"])
}

pub(crate) fn activity_phase() -> ObjectBuilder {
    one_of(["start", "end", "refused", "bypass"])
}

pub(crate) fn run_phase() -> ObjectBuilder {
    one_of(["start", "end"])
}

pub(crate) fn event_name() -> ObjectBuilder {
    one_of(["activity", "contention", "ledger", "run", "server", "tool"])
}

/// Describes the number of a change of the ledger.
pub(crate) fn change_number() -> ObjectBuilder {
    let number = ObjectBuilder::new().schema_type(Type::Integer);
    number.minimum(Some(0)).maximum(Some(i64::MAX))
}

pub(crate) fn event_number() -> ObjectBuilder {
    text().pattern(Some("^[0-9]+$"))
}
