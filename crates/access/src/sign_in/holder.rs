//! The holder of a grant: all callers, or one agent token. It decides under which name the grant is
//! stored, so that no token can reach the grant of another, nor that of an earlier one of its name.

use std::sync::Arc;

use domain::caller::TokenId;

/// Bytes of a token's hash in the name of its grant, enough to tell tokens apart.
const ID_BYTES: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantHolder {
    Everybody,
    /// Finds out what a server wants that each token signs in to for itself. It never has a grant.
    Nobody,
    Token {
        name: Arc<str>,
        id: TokenId,
    },
}

impl GrantHolder {
    /// Returns the name of the grant in the vault. Names of servers and tokens have no spaces.
    pub(super) fn grant_name(&self, server: &str) -> String {
        match self {
            GrantHolder::Everybody => server.to_owned(),
            GrantHolder::Nobody => format!("{server} "),
            GrantHolder::Token { name, id } => format!("{server}{}", token_part(name, id)),
        }
    }

    /// Returns the command with which a person signs in.
    pub(super) fn login_command(&self, server: &str) -> String {
        let token = match self {
            GrantHolder::Everybody => String::new(),
            GrantHolder::Nobody => " --token NAME".to_owned(),
            GrantHolder::Token { name, .. } => format!(" --token {name}"),
        };
        format!("countersign upstream login {server}{token}")
    }

    /// Returns the id of the token, if it is one.
    pub(super) fn token_id(&self) -> Option<TokenId> {
        match self {
            GrantHolder::Everybody | GrantHolder::Nobody => None,
            GrantHolder::Token { id, .. } => Some(*id),
        }
    }
}

/// Reports whether a grant is of a server that each token signs in to for itself.
pub(super) fn is_of_server(grant: &str, server: &str) -> bool {
    grant.strip_prefix(server).is_some_and(|rest| rest.starts_with(' '))
}

/// Reports whether a grant is of this token, whatever the server.
pub(super) fn is_of_token(grant: &str, name: &str, id: &TokenId) -> bool {
    grant.ends_with(&token_part(name, id))
}

fn token_part(name: &str, id: &TokenId) -> String {
    format!(" {name} {}", text::hex::encode(&id.0[..ID_BYTES]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_holder_has_a_grant_of_its_own() {
        let token =
            |name: &str, id| GrantHolder::Token { name: name.into(), id: TokenId([id; 32]) };
        let holders = [
            GrantHolder::Everybody,
            GrantHolder::Nobody,
            token("a", 1),
            token("a", 2),
            token("b", 1),
        ];
        let names: Vec<String> = ["s", "s.a"]
            .iter()
            .flat_map(|server| holders.each_ref().map(|it| it.grant_name(server)))
            .collect();
        let mut distinct = names.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        let own: Vec<&String> = names.iter().filter(|name| is_of_server(name, "s")).collect();
        assert_eq!(own.len(), 4, "{own:?}");
        let of_token = names.iter().filter(|name| is_of_token(name, "a", &TokenId([1; 32])));
        assert_eq!(of_token.count(), 2, "one for each server");
    }

    #[test]
    fn the_command_names_the_token() {
        let token = GrantHolder::Token { name: "ci".into(), id: TokenId([0; 32]) };
        assert_eq!(token.login_command("s"), "countersign upstream login s --token ci");
        assert_eq!(GrantHolder::Everybody.login_command("s"), "countersign upstream login s");
    }
}
