//! The caller of a tool, and what that caller may see and do.

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
    /// The name of the presented token.
    pub token: Arc<str>,
    /// Identifies an agent's token; `None` for the operator and for steps of a run.
    pub token_id: Option<TokenId>,
    pub role: Role,
    /// The servers allowed by both the token and the profile. `All` is a caller without a profile,
    /// for whom nothing is hidden.
    pub servers: Servers,
    pub operations: Operations,
    /// The rule for tools without hints.
    pub unannotated: UnannotatedRule,
    pub surfaces: Surfaces,
    pub profile: ProfileRule,
}

/// The hash of an agent's token. It tells tokens of the same name apart: a name is free again once its
/// token is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenId(pub [u8; 32]);

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

/// The caller's restriction beyond its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileRule {
    None,
    In(Arc<Profile>),
    /// The token names a profile that no longer exists: nothing is visible until it is restored.
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
    /// Returns the caller with the admin key, who may do everything.
    pub fn admin() -> Caller {
        Caller::unrestricted("admin", Role::Admin)
    }

    /// Returns the caller with the token of the first start: all servers, operations and surfaces,
    /// but no admin routes.
    pub fn agent(token: &str) -> Caller {
        Caller::unrestricted(token, Role::Agent)
    }

    /// Returns the same caller as the holder of this token.
    #[must_use]
    pub fn with_token(self, id: TokenId) -> Caller {
        Caller { token_id: Some(id), ..self }
    }

    /// Returns the holder of a token with this scope. `profile` is the configured profile that the
    /// scope names. If it is absent or was defined by a folder's file, nothing is visible.
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
            token_id: None,
            role,
            servers: Servers::All,
            operations: Operations::ALL,
            unannotated: UnannotatedRule::Allow,
            surfaces: Surfaces::ALL,
            profile: ProfileRule::None,
        }
    }

    /// Returns the same caller, restricted to this profile in addition to its current one.
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

    /// Reports whether this caller can see a server. [`Caller::sees_tool`] decides for its tools.
    pub fn sees(&self, server: &str) -> bool {
        match &self.servers {
            Servers::All => true,
            Servers::Only(names) => names.contains(server),
        }
    }

    /// Reports whether this caller can see a tool.
    pub fn sees_tool(&self, server: &str, tool: &str) -> bool {
        let in_profile = match &self.profile {
            ProfileRule::None => true,
            ProfileRule::In(profile) => profile.has_tool(server, tool),
            ProfileRule::Missing(_) => false,
        };
        in_profile && self.sees(server)
    }

    /// Returns the same caller after its token became invalid: nothing is visible to it.
    #[must_use]
    pub fn barred(&self) -> Caller {
        let servers = Servers::Only(BTreeSet::new());
        let operations = Operations::NONE;
        let surfaces = Surfaces { discovery: false, passthrough: false };
        Caller { servers, operations, surfaces, ..self.clone() }
    }

    /// Reports whether nothing is hidden from the caller, and no tool forbidden to it.
    pub fn is_unrestricted(&self) -> bool {
        self.servers == Servers::All
            && self.profile == ProfileRule::None
            && self.operations == Operations::ALL
            && self.unannotated == UnannotatedRule::Allow
    }

    /// Reports whether both callers may see and call the same tools.
    pub fn has_rights_of(&self, other: &Caller) -> bool {
        self.operations == other.operations
            && self.unannotated == other.unannotated
            && self.profile == other.profile
            && self.servers == other.servers
    }

    /// Reports whether the caller may use this surface.
    pub fn uses(&self, surface: TokenSurface) -> bool {
        self.surfaces.include(surface)
    }
}
