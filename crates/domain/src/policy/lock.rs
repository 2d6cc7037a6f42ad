//! Determines whether a tool is locked for everyone, and the reason. One classifier with one
//! precedence: search, dispatch, lists, counts, REST and the command line show its result.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;

use super::Strictness;
use super::addressee::Addressee;
use crate::code::Code;
use crate::config::ToolRules;
use crate::method::SubjectItem;
use crate::refusal::Refusal;
use crate::tool::ToolName;
use touch::targets::TargetMapping;

/// The reason a tool cannot be called, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockStatus {
    ServerQuarantined,
    ServerDisabled,
    DisabledByConfig,
    DisabledByUser,
    PendingApproval,
    DisabledUnknown,
    SchemaTooCostly,
}

impl LockStatus {
    pub const ALL: [LockStatus; 7] = [
        LockStatus::ServerQuarantined,
        LockStatus::ServerDisabled,
        LockStatus::DisabledByConfig,
        LockStatus::DisabledByUser,
        LockStatus::PendingApproval,
        LockStatus::DisabledUnknown,
        LockStatus::SchemaTooCostly,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            LockStatus::ServerQuarantined => "server_quarantined",
            LockStatus::ServerDisabled => "server_disabled",
            LockStatus::DisabledByConfig => "disabled_by_config",
            LockStatus::DisabledByUser => "disabled_by_user",
            LockStatus::PendingApproval => "pending_approval",
            LockStatus::DisabledUnknown => "disabled_unknown",
            LockStatus::SchemaTooCostly => "schema_too_costly",
        }
    }

    /// Says who can lift the lock, and how: a model can only ask for it.
    pub fn remediation(self, addressee: Addressee) -> &'static str {
        match (self, addressee) {
            (LockStatus::ServerQuarantined, Addressee::Person) => {
                "The server is quarantined: review and approve it on the page or with `countersign \
                 upstream review`."
            }
            (LockStatus::ServerQuarantined, _) => {
                "The server is quarantined: a person must review and approve it first, on the page \
                 or with `countersign upstream review`."
            }
            (LockStatus::ServerDisabled, Addressee::Person) => {
                "The server is switched off: enable it on the page or with `countersign upstream \
                 enable`."
            }
            (LockStatus::ServerDisabled, _) => {
                "The server is switched off: ask the person who runs Countersign to enable the \
                 server first, on the page or with `countersign upstream enable`."
            }
            (LockStatus::DisabledByConfig, _) => {
                "The tool is locked by the operator's configuration. This is operator policy and \
                 not user-overridable: only the operator can change it, by editing the config."
            }
            (LockStatus::DisabledByUser, Addressee::Person) => {
                "A person switched the tool off: switch it on again on the page or with \
                 `countersign tools enable`."
            }
            (LockStatus::DisabledByUser, _) => {
                "A person switched the tool off: ask the user to switch it on again, on the page \
                 or with `countersign tools enable`."
            }
            (LockStatus::PendingApproval, Addressee::Person) => {
                "The tool is new or has changed since it was approved: review and approve it on \
                 the page or with `countersign tools approve`."
            }
            (LockStatus::PendingApproval, _) => {
                "The tool is new or has changed since it was approved: ask the user to review and \
                 approve it, on the page or with `countersign tools approve`."
            }
            (LockStatus::DisabledUnknown, Addressee::Person) => {
                "The reason for the lock cannot be read: the gate's log has the details."
            }
            (LockStatus::DisabledUnknown, _) => {
                "The reason for the lock cannot be read: ask the person who runs Countersign to \
                 check its logs."
            }
            (LockStatus::SchemaTooCostly, _) => {
                "Checking arguments against the tool's input schema would take too long: only the \
                 maintainer of the server can fix this, by simplifying the schema. The gate's log \
                 has the details."
            }
        }
    }

    /// Reports whether the tool's text has not been approved, so that only its name is shown.
    pub fn distrusts_text(self) -> bool {
        match self {
            LockStatus::ServerQuarantined
            | LockStatus::PendingApproval
            | LockStatus::DisabledUnknown
            | LockStatus::SchemaTooCostly => true,
            LockStatus::ServerDisabled
            | LockStatus::DisabledByConfig
            | LockStatus::DisabledByUser => false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    Callable,
    Locked(LockStatus),
}

impl Lock {
    /// Returns the word for this lock on every surface.
    pub fn as_str(self) -> &'static str {
        match self {
            Lock::Callable => "callable",
            Lock::Locked(status) => status.as_str(),
        }
    }

    /// Returns every possible result of [`Lock::as_str`].
    pub fn words() -> Vec<&'static str> {
        let locked = LockStatus::ALL.into_iter().map(Lock::Locked);
        std::iter::once(Lock::Callable).chain(locked).map(Lock::as_str).collect()
    }
}

/// The settings of one server, from the operator's configuration and from people's switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerRules {
    pub quarantined: bool,
    pub disabled: bool,
    pub tools: ToolRules,
    /// Tools that a person disabled.
    pub switched_off: BTreeSet<String>,
    /// The reaction to arguments that do not match a tool's input schema.
    pub arguments: Strictness,
    /// Names the resources that calls touch.
    pub targets: Option<Arc<TargetMapping>>,
}

/// The approval of a tool's text, by a person or by rules that a person set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalState {
    Approved,
    Pending,
    /// The approval could not be read.
    Unknown,
    /// Its input schema is too costly to check, whatever the approval.
    TooCostly,
}

/// Returns the lock of a server's tool, which applies to every caller. The first match wins.
pub fn lock(rules: &ServerRules, tool: &str, approval: ApprovalState) -> Lock {
    if rules.quarantined {
        Lock::Locked(LockStatus::ServerQuarantined)
    } else if rules.disabled {
        Lock::Locked(LockStatus::ServerDisabled)
    } else if !rules.tools.allow(tool) {
        Lock::Locked(LockStatus::DisabledByConfig)
    } else if rules.switched_off.contains(tool) {
        Lock::Locked(LockStatus::DisabledByUser)
    } else {
        match approval {
            ApprovalState::Approved => Lock::Callable,
            ApprovalState::Pending => Lock::Locked(LockStatus::PendingApproval),
            ApprovalState::Unknown => Lock::Locked(LockStatus::DisabledUnknown),
            ApprovalState::TooCostly => Lock::Locked(LockStatus::SchemaTooCostly),
        }
    }
}

/// Returns the lock of a prompt, a template or a resource. Rules about tools do not apply to them.
pub fn subject_lock(rules: &ServerRules, approval: ApprovalState) -> Lock {
    let (quarantined, disabled) = (rules.quarantined, rules.disabled);
    lock(&ServerRules { quarantined, disabled, ..ServerRules::default() }, "", approval)
}

/// Returns the refusal for a request other than a tool call, by what it is about.
pub fn blocked_request(
    name: &ToolName,
    subject: Option<SubjectItem<'_>>,
    status: LockStatus,
    addressee: Addressee,
) -> Refusal {
    let (noun, what) = subject.map_or(("method", &*name.tool), |item| (item.noun(), item.name()));
    let word = status.as_str();
    let remediation = match (status, addressee) {
        (LockStatus::PendingApproval, Addressee::Person) => {
            "It is new or has changed since it was approved: review and approve it on the page or \
             with `countersign upstream review`."
        }
        (LockStatus::PendingApproval, _) => {
            "It is new or has changed since it was approved: ask the user to review and approve it, \
             on the page or with `countersign upstream review`."
        }
        _ => status.remediation(addressee),
    };
    let message = format!(
        "The {noun} '{what}' of server '{}' is locked ({word}). {remediation}",
        name.server
    );
    Refusal::new(Code::ToolBlocked, message)
        .with(json!({"status": word, "remediation": remediation}))
}

/// Returns the refusal for a locked tool. It gives the reason and who can change it, and nothing of
/// the tool's own text.
pub fn blocked(tool: &ToolName, status: LockStatus, addressee: Addressee) -> Refusal {
    let (word, remediation) = (status.as_str(), status.remediation(addressee));
    let more = match addressee {
        Addressee::Discovery => {
            " To see which tools are locked and why, use retrieve_tools with include_disabled:true."
        }
        Addressee::Person => {
            " To see which tools are locked and why, run `countersign tools list`."
        }
        Addressee::Passthrough => "",
    };
    let message = format!("Tool '{tool}' is locked ({word}). {remediation}{more}");
    Refusal::new(Code::ToolBlocked, message)
        .with(json!({"status": word, "remediation": remediation}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// One line per server, list and switch, with the lock of a tool that is approved, pending and
    /// unreadable.
    const TABLE: &str = "
        quarantined           none          on   server_quarantined server_quarantined server_quarantined
        quarantined           none          off  server_quarantined server_quarantined server_quarantined
        quarantined           only-it       on   server_quarantined server_quarantined server_quarantined
        quarantined           only-it       off  server_quarantined server_quarantined server_quarantined
        quarantined           only-other    on   server_quarantined server_quarantined server_quarantined
        quarantined           only-other    off  server_quarantined server_quarantined server_quarantined
        quarantined           except-it     on   server_quarantined server_quarantined server_quarantined
        quarantined           except-it     off  server_quarantined server_quarantined server_quarantined
        quarantined           except-other  on   server_quarantined server_quarantined server_quarantined
        quarantined           except-other  off  server_quarantined server_quarantined server_quarantined
        quarantined,disabled  none          on   server_quarantined server_quarantined server_quarantined
        quarantined,disabled  none          off  server_quarantined server_quarantined server_quarantined
        quarantined,disabled  only-it       on   server_quarantined server_quarantined server_quarantined
        quarantined,disabled  only-it       off  server_quarantined server_quarantined server_quarantined
        quarantined,disabled  only-other    on   server_quarantined server_quarantined server_quarantined
        quarantined,disabled  only-other    off  server_quarantined server_quarantined server_quarantined
        quarantined,disabled  except-it     on   server_quarantined server_quarantined server_quarantined
        quarantined,disabled  except-it     off  server_quarantined server_quarantined server_quarantined
        quarantined,disabled  except-other  on   server_quarantined server_quarantined server_quarantined
        quarantined,disabled  except-other  off  server_quarantined server_quarantined server_quarantined
        disabled              none          on   server_disabled    server_disabled    server_disabled
        disabled              none          off  server_disabled    server_disabled    server_disabled
        disabled              only-it       on   server_disabled    server_disabled    server_disabled
        disabled              only-it       off  server_disabled    server_disabled    server_disabled
        disabled              only-other    on   server_disabled    server_disabled    server_disabled
        disabled              only-other    off  server_disabled    server_disabled    server_disabled
        disabled              except-it     on   server_disabled    server_disabled    server_disabled
        disabled              except-it     off  server_disabled    server_disabled    server_disabled
        disabled              except-other  on   server_disabled    server_disabled    server_disabled
        disabled              except-other  off  server_disabled    server_disabled    server_disabled
        enabled               none          on   callable           pending_approval   disabled_unknown
        enabled               none          off  disabled_by_user   disabled_by_user   disabled_by_user
        enabled               only-it       on   callable           pending_approval   disabled_unknown
        enabled               only-it       off  disabled_by_user   disabled_by_user   disabled_by_user
        enabled               only-other    on   disabled_by_config disabled_by_config disabled_by_config
        enabled               only-other    off  disabled_by_config disabled_by_config disabled_by_config
        enabled               except-it     on   disabled_by_config disabled_by_config disabled_by_config
        enabled               except-it     off  disabled_by_config disabled_by_config disabled_by_config
        enabled               except-other  on   callable           pending_approval   disabled_unknown
        enabled               except-other  off  disabled_by_user   disabled_by_user   disabled_by_user
    ";

    #[test]
    fn the_first_lock_that_applies_determines_the_status() {
        let mut seen = BTreeSet::new();
        for line in TABLE.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [server, list, switch, expected @ ..] = words.as_slice() else {
                panic!("{line}");
            };
            let rules = ServerRules {
                quarantined: server.contains("quarantined"),
                disabled: server.contains("disabled"),
                tools: match *list {
                    "none" => ToolRules::All,
                    "only-it" => ToolRules::Only(names(&["it"])),
                    "only-other" => ToolRules::Only(names(&["other"])),
                    "except-it" => ToolRules::Except(names(&["it"])),
                    "except-other" => ToolRules::Except(names(&["other"])),
                    other => panic!("{other}"),
                },
                switched_off: if *switch == "off" { names(&["it"]) } else { names(&["other"]) },
                ..ServerRules::default()
            };
            let approvals =
                [ApprovalState::Approved, ApprovalState::Pending, ApprovalState::Unknown];
            let locks = approvals.map(|approval| lock(&rules, "it", approval).as_str());
            assert_eq!(locks, expected, "{line}");
            assert!(seen.insert((*server, *list, *switch)), "twice: {line}");
        }
        assert_eq!(seen.len(), 4 * 5 * 2, "a combination is missing");
    }

    #[test]
    fn a_lock_of_the_config_gets_no_advice_for_users() {
        let tool = ToolName { server: "s".to_owned(), tool: "t".to_owned() };
        for addressee in [Addressee::Discovery, Addressee::Passthrough, Addressee::Person] {
            for status in LockStatus::ALL {
                let refusal = blocked(&tool, status, addressee);
                assert_eq!(refusal.details["status"], status.as_str());
                assert_eq!(refusal.details["remediation"], status.remediation(addressee));
                let advises_user = ["ask the user", "tools enable", "switch it on"]
                    .iter()
                    .any(|advice| refusal.message.contains(advice));
                let is_config = status == LockStatus::DisabledByConfig;
                assert!(!(is_config && advises_user), "{}", refusal.message);
                assert_eq!(is_config, refusal.message.contains("not user-overridable"));
            }
        }
    }

    #[test]
    fn advice_suits_its_reader() {
        let tool = ToolName { server: "s".to_owned(), tool: "t".to_owned() };
        for status in LockStatus::ALL {
            let message = |addressee| blocked(&tool, status, addressee).message;
            assert!(message(Addressee::Discovery).ends_with("include_disabled:true."));
            assert!(!message(Addressee::Passthrough).contains("retrieve_tools"));
            assert!(!message(Addressee::Person).contains("retrieve_tools"));
            assert!(
                !message(Addressee::Person).contains("ask the"),
                "{}",
                message(Addressee::Person)
            );
        }
    }
}
