//! Refuses query parameters that a route's description does not name, on every route alike.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::{MatchedPath, Query, Request};
use domain::{Code, Refusal, near};
use serde_json::json;

use crate::routes;

/// The number of suggestions for an unknown parameter.
const NEAR_MAX: usize = 1;

type RouteParameters = HashMap<(&'static str, &'static str), Vec<String>>;

/// The parameters of each route, by method and path.
static KNOWN: LazyLock<RouteParameters> = LazyLock::new(|| {
    routes::all()
        .map(|route| ((route.method, route.path), (route.described)().into_queries()))
        .collect()
});

pub(crate) fn check(request: &Request) -> Result<(), Refusal> {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let known = path.and_then(|path| KNOWN.get(&(request.method().as_str(), path)));
    let (Some(known), Some(_)) = (known, request.uri().query()) else { return Ok(()) };
    // A query that cannot be parsed is reported by the handler's own extractor.
    let given = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let given = given.map(|Query(given)| given).unwrap_or_default();
    match given.into_iter().find(|(name, _)| !known.contains(name)) {
        Some((name, _)) => Err(unknown(&name, known)),
        None => Ok(()),
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
