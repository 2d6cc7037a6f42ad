//! Who a token belongs to. Tokens are kept and compared as hashes, so that neither memory nor
//! timing gives one away.

use std::sync::Arc;

use domain::Caller;
use sha2::{Digest, Sha256};

pub struct Tokens {
    known: Vec<([u8; 32], Arc<Caller>)>,
}

impl Tokens {
    pub fn new(tokens: impl IntoIterator<Item = (String, Caller)>) -> Tokens {
        let known =
            tokens.into_iter().map(|(token, caller)| (digest(&token), Arc::new(caller))).collect();
        Tokens { known }
    }

    pub fn caller(&self, token: &str) -> Option<Arc<Caller>> {
        let shown = digest(token);
        self.known.iter().find(|(known, _)| *known == shown).map(|(_, caller)| caller.clone())
    }

    /// The caller behind an `Authorization: Bearer …` header.
    pub fn bearer(&self, headers: &axum::http::HeaderMap) -> Option<Arc<Caller>> {
        let header = headers.get(axum::http::header::AUTHORIZATION)?.to_str().ok()?;
        let (scheme, token) = header.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| self.caller(token.trim()))?
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::*;

    #[test]
    fn only_known_tokens_open() {
        let tokens = Tokens::new([("secret".to_owned(), Caller::agent("agent"))]);
        let bearer = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("authorization", HeaderValue::from_str(value).unwrap());
            tokens.bearer(&headers).map(|caller| caller.token.to_string())
        };
        assert_eq!(bearer("Bearer secret").as_deref(), Some("agent"));
        assert_eq!(bearer("bearer  secret").as_deref(), Some("agent"));
        for wrong in
            ["Bearer", "Bearer ", "Bearer secre", "Bearer secrets", "Basic secret", "secret"]
        {
            assert_eq!(bearer(wrong), None, "{wrong}");
        }
        assert!(tokens.bearer(&HeaderMap::new()).is_none());
    }
}
