//! Who calls, and what that caller may see and do.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::config::ServerOrigin;

mod profile;
mod rights;
pub mod scope;
#[cfg(test)]
mod tests;

pub use profile::{Profile, ProfileTools};
pub use rights::{Operations, Surfaces, TokenSurface, UnannotatedRule};
pub use scope::Scope;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name of the token that was shown.
    pub token: Arc<str>,
    pub role: Role,
    /// Those that the token and the profile both name: `All` is a caller without a profile, from
    /// whom nothing is hidden.
    pub servers: Servers,
    pub operations: Operations,
    /// Whether the caller may use tools that carry no hint.
    pub unannotated: UnannotatedRule,
    pub surfaces: Surfaces,
    pub profile: ProfileRule,
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

/// What a caller is held to beside its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileRule {
    None,
    In(Arc<Profile>),
    /// The token names a profile that is no longer there: nothing is seen until it is back.
    Missing(Arc<str>),
}

impl Servers {
    fn within(&self, names: &BTreeSet<String>) -> Servers {
        match self {
            Servers::All => Servers::Only(names.clone()),
            Servers::Only(own) => Servers::Only(own.intersection(names).cloned().collect()),
        }
    }
}

impl Caller {
    /// The person's own key: everything.
    pub fn admin() -> Caller {
        Caller::unrestricted("admin", Role::Admin)
    }

    /// The token of the first start: all servers, operations and surfaces, no admin route.
    pub fn agent(token: &str) -> Caller {
        Caller::unrestricted(token, Role::Agent)
    }

    /// The holder of a token with this scope. `profile` is the one of the configuration that has
    /// the name in the scope; without it, or with one that a folder's file made up, nothing is
    /// seen.
    pub fn from_scope(token: &str, scope: &Scope, profile: Option<Arc<Profile>>) -> Caller {
        let servers = scope.servers.clone().map_or(Servers::All, Servers::Only);
        let caller = Caller {
            servers,
            operations: scope.operations,
            unannotated: scope.unannotated,
            surfaces: scope.surfaces,
            ..Caller::agent(token)
        };
        let Some(name) = &scope.profile else { return caller };
        let meant =
            |profile: &Arc<Profile>| *profile.name == **name && profile.origin == ServerOrigin::Own;
        match profile.filter(meant) {
            Some(profile) => caller.narrowed(profile),
            None => Caller {
                servers: Servers::Only(BTreeSet::new()),
                profile: ProfileRule::Missing(name.as_str().into()),
                ..caller
            },
        }
    }

    fn unrestricted(token: &str, role: Role) -> Caller {
        Caller {
            token: token.into(),
            role,
            servers: Servers::All,
            operations: Operations::ALL,
            unannotated: UnannotatedRule::Allow,
            surfaces: Surfaces::ALL,
            profile: ProfileRule::None,
        }
    }

    /// The same caller within a profile, beside the one that holds already.
    #[must_use]
    pub fn narrowed(&self, profile: Arc<Profile>) -> Caller {
        let servers = self.servers.within(&profile.servers);
        let profile = match &self.profile {
            ProfileRule::None => ProfileRule::In(profile),
            ProfileRule::In(own) if *own == profile => ProfileRule::In(profile),
            ProfileRule::In(own) => ProfileRule::In(Arc::new(own.intersection(&profile))),
            ProfileRule::Missing(name) => ProfileRule::Missing(name.clone()),
        };
        Caller { servers, profile, ..self.clone() }
    }

    /// Whether a server is there for this caller. Of its tools, [`Caller::sees_tool`] knows.
    pub fn sees(&self, server: &str) -> bool {
        match &self.servers {
            Servers::All => true,
            Servers::Only(names) => names.contains(server),
        }
    }

    /// Whether a tool is there for this caller.
    pub fn sees_tool(&self, server: &str, tool: &str) -> bool {
        let in_profile = match &self.profile {
            ProfileRule::None => true,
            ProfileRule::In(profile) => profile.has_tool(server, tool),
            ProfileRule::Missing(_) => false,
        };
        in_profile && self.sees(server)
    }

    /// The same caller once its token is no longer good: nothing is there for it.
    #[must_use]
    pub fn barred(&self) -> Caller {
        let servers = Servers::Only(BTreeSet::new());
        let operations = Operations::NONE;
        let surfaces = Surfaces { discovery: false, passthrough: false };
        Caller { servers, operations, surfaces, ..self.clone() }
    }

    /// Nothing that is there is hidden from the caller.
    pub fn sees_all(&self) -> bool {
        self.servers == Servers::All && self.profile == ProfileRule::None
    }

    /// Whether the caller may come through this door.
    pub fn uses(&self, surface: TokenSurface) -> bool {
        self.surfaces.include(surface)
    }
}
