//! Refuses query parameters that a route's description does not name, on every route alike, and
//! explains those that a handler cannot parse.

use axum::extract::{MatchedPath, Query, Request};
use axum::http::Uri;
use domain::{Code, Refusal};
use serde_json::json;
use text::near;

/// The number of suggestions for an unknown parameter.
const NEAR_MAX: usize = 1;

/// Refuses a query that names a parameter unknown to the request's route. `known` returns the
/// parameters of a route by its method and path.
pub(crate) fn check(
    request: &Request,
    known: for<'r> fn(&'r str, &'r str) -> Option<&'r [String]>,
) -> Result<(), Refusal> {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let known = path.and_then(|path| known(request.method().as_str(), path));
    let (Some(known), Some(_)) = (known, request.uri().query()) else { return Ok(()) };
    // A query that cannot be parsed is reported by the handler's own extractor.
    let given = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let given = given.map(|Query(given)| given).unwrap_or_default();
    match given.into_iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => Err(unknown(&name, known)),
        None => Ok(()),
    }
}

/// Explains a query that the handler's extractor rejects: it names the parameter before a colon,
/// and then the parser's fault.
pub(crate) fn invalid(uri: &Uri, rejection: &str) -> Refusal {
    let refuse = |message: String| Refusal::new(Code::InvalidRequest, message);
    let Ok(Query(given)) = Query::<Vec<(String, String)>>::try_from_uri(uri) else {
        return refuse("the query is not made of name=value pairs in percent-encoding".to_owned());
    };
    let repeated = given
        .iter()
        .enumerate()
        .find(|(at, (name, _))| given[..*at].iter().any(|(n, _)| n == name));
    if let Some((_, (name, _))) = repeated {
        return refuse(format!("duplicate parameter '{name}'")).with(json!({"field": name}));
    }
    let named = |(name, _): &&(String, String)| rejection.contains(&format!(": {name}: "));
    match given.iter().find(named) {
        Some((name, value)) => {
            let expected =
                if rejection.contains("`true`") { "true or false" } else { "a whole number" };
            refuse(format!("{name} must be {expected}, got '{value}'"))
                .with(json!({"field": name, "provided": value}))
        }
        None => match rejection.split_once("missing field `") {
            Some((_, rest)) => {
                let name = rest.trim_end_matches('`');
                refuse(format!("{name} is required")).with(json!({"field": name}))
            }
            None => refuse("a parameter of the query is invalid".to_owned()),
        },
    }
}

fn unknown(name: &str, known: &[String]) -> Refusal {
    let near = near::names(name, known.iter().map(String::as_str), NEAR_MAX);
    let words = match (near.as_slice(), known) {
        ([], []) => ": this route takes none".to_owned(),
        ([], known) => format!(": expected {}", known.join(", ")),
        (near, _) => near::hint(near),
    };
    Refusal::new(Code::InvalidRequest, format!("unknown parameter '{name}'{words}"))
        .with(json!({"field": name, "valid_values": known}))
}
