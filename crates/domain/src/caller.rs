//! Who calls, and what that caller may see and do.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::tool::Class;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name of the token that was shown.
    pub token: Arc<str>,
    pub role: Role,
    pub servers: Servers,
    pub operations: Operations,
    /// Whether a caller with only `read` may call tools that carry no hint.
    pub unannotated: Unannotated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Admin,
    Agent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Servers {
    All,
    Only(BTreeSet<String>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operations {
    pub read: bool,
    pub write: bool,
    pub destructive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unannotated {
    Allow,
    Deny,
}

impl Operations {
    pub const ALL: Operations = Operations { read: true, write: true, destructive: true };

    pub fn allow(self, class: Class) -> bool {
        match class {
            Class::Read => self.read,
            Class::Write => self.write,
            Class::Destructive => self.destructive,
        }
    }
}

impl Caller {
    /// The person's own key: everything.
    pub fn admin() -> Caller {
        Caller::unrestricted("admin", Role::Admin)
    }

    /// The token of the first start: all servers, all operations, no admin route.
    pub fn agent(token: &str) -> Caller {
        Caller::unrestricted(token, Role::Agent)
    }

    fn unrestricted(token: &str, role: Role) -> Caller {
        Caller {
            token: token.into(),
            role,
            servers: Servers::All,
            operations: Operations::ALL,
            unannotated: Unannotated::Allow,
        }
    }

    pub fn sees(&self, server: &str) -> bool {
        match &self.servers {
            Servers::All => true,
            Servers::Only(names) => names.contains(server),
        }
    }

    pub fn sees_tool(&self, server: &str, _tool: &str) -> bool {
        self.sees(server)
    }

    pub fn sees_all(&self) -> bool {
        self.servers == Servers::All
    }
}
