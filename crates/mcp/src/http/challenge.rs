//! The `Bearer` challenge of a `WWW-Authenticate` header.

use http::HeaderMap;
use http::header::WWW_AUTHENTICATE;

use crate::limits;

/// The parts of a server's refusal that say how to be authorized. The values are the server's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    /// The address of the protected resource's metadata.
    pub resource_metadata: Option<String>,
    /// The scopes that the request needs, separated by spaces.
    pub scope: Option<String>,
    pub error: Option<String>,
}

impl Challenge {
    /// Reads the first `Bearer` challenge of a response; empty if there is none.
    pub fn of(headers: &HeaderMap) -> Challenge {
        let texts = headers.get_all(WWW_AUTHENTICATE).iter();
        let texts = texts.filter(|text| text.len() <= limits::CHALLENGE_BYTES_MAX);
        let mut texts = texts.filter_map(|text| text.to_str().ok());
        texts.find_map(Challenge::parse).unwrap_or_default()
    }

    /// Reports whether the token lacks a scope that the request needs.
    pub fn wants_more_scope(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }

    fn parse(text: &str) -> Option<Challenge> {
        let mut found: Option<Challenge> = None;
        let mut rest = text;
        loop {
            rest = rest.trim_start_matches([' ', '\t', ',']);
            let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
            if end == 0 {
                return found;
            }
            let (name, after) = rest.split_at(end);
            match after.trim_start().strip_prefix('=') {
                Some(value) if !value.starts_with('=') => {
                    let (value, after) = value_of(value.trim_start())?;
                    if let Some(challenge) = &mut found {
                        challenge.set(name, value);
                    }
                    rest = after;
                }
                // A scheme, which ends the parameters of the one before.
                _ if found.is_some() => return found,
                _ => {
                    found = name.eq_ignore_ascii_case("bearer").then(Challenge::default);
                    rest = after;
                }
            }
        }
    }

    fn set(&mut self, name: &str, value: String) {
        let slot = match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => &mut self.resource_metadata,
            "scope" => &mut self.scope,
            "error" => &mut self.error,
            _ => return,
        };
        // The first one counts, if a server repeats a parameter.
        slot.get_or_insert(value);
    }
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// Returns a value, quoted or not, and the text after it.
fn value_of(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(texts: &[&str]) -> Challenge {
        let mut headers = HeaderMap::new();
        for text in texts {
            headers.append(WWW_AUTHENTICATE, text.parse().unwrap());
        }
        Challenge::of(&headers)
    }

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        for texts in [
            &["Bearer resource_metadata=\"https://a/m\", scope=\"a b\""][..],
            &["bearer scope=\"a b\",resource_metadata=https://a/m"],
            &[
                "Basic realm=\"Bearer scope=\\\"x\\\"\", Bearer scope=\"a b\", resource_metadata=\"https://a/m\"",
            ],
            &[
                "Negotiate",
                "Bearer  realm=x , scope = \"a b\" , resource_metadata=\"https://a/m\", Basic realm=y",
            ],
        ] {
            let challenge = of(texts);
            assert_eq!(challenge.resource_metadata.as_deref(), Some("https://a/m"), "{texts:?}");
            assert_eq!(challenge.scope.as_deref(), Some("a b"), "{texts:?}");
        }
    }

    #[test]
    fn what_is_no_challenge_is_empty() {
        let long = format!("Bearer scope=\"{}\"", "x".repeat(limits::CHALLENGE_BYTES_MAX));
        for text in ["", "Basic realm=\"x\"", "Bearer scope=\"unclosed", "===", "\"", &long] {
            assert_eq!(of(&[text]), Challenge::default(), "{text:.40}");
        }
    }

    #[test]
    fn only_insufficient_scope_wants_more_scope() {
        assert!(of(&["Bearer error=\"insufficient_scope\", scope=\"w\""]).wants_more_scope());
        assert!(!of(&["Bearer error=\"invalid_token\""]).wants_more_scope());
    }
}
