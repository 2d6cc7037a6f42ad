//! Checks of the document against the table of routes, and for consistency.

use std::collections::BTreeSet;

use serde_json::Value;

use super::*;

fn written() -> Value {
    serde_json::to_value(document()).unwrap()
}

/// Collects every value under this key, at any depth.
fn every<'a>(value: &'a Value, key: &str, found: &mut Vec<&'a Value>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get(key));
            members.values().for_each(|value| every(value, key, found));
        }
        Value::Array(items) => items.iter().for_each(|value| every(value, key, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn the_document_describes_exactly_the_existing_routes() {
    let document = written();
    assert_eq!(document["openapi"], "3.1.0");
    let mut told = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        told.extend(methods.as_object().unwrap().keys().map(|method| (method.clone(), &**path)));
    }
    let routes: BTreeSet<(String, &str)> =
        routes::all().map(|route| (route.method.to_ascii_lowercase(), route.path)).collect();
    assert_eq!(told, routes);
}

#[test]
fn parts_of_a_path_are_its_parameters() {
    let document = written();
    for route in routes::all() {
        let operation = &document["paths"][route.path][route.method.to_ascii_lowercase()];
        let told: Vec<&str> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "path")
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        let parts = route.path.split('/').filter_map(|part| part.strip_prefix('{'));
        let parts: Vec<&str> = parts.map(|part| part.trim_end_matches('}')).collect();
        assert_eq!(told, parts, "{} {}", route.method, route.path);
        let is_open = operation["security"].is_null();
        assert_eq!(is_open, route.access != crate::access::RouteAccess::Admin, "{}", route.path);
    }
}

#[test]
fn every_reference_resolves_and_every_schema_is_used() {
    let document = written();
    let mut references = Vec::new();
    every(&document, "$ref", &mut references);
    let named: BTreeSet<&str> = references.iter().map(|name| name.as_str().unwrap()).collect();
    for name in &named {
        let place = name.strip_prefix('#').unwrap();
        assert!(document.pointer(place).is_some(), "{name} is not there");
    }
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        let place = format!("#/components/schemas/{name}");
        assert!(named.contains(&*place), "nobody needs {name}");
    }
}

#[test]
fn operations_have_ids_of_their_own() {
    let document = written();
    let mut ids = Vec::new();
    every(&document["paths"], "operationId", &mut ids);
    let distinct: BTreeSet<&str> = ids.iter().map(|id| id.as_str().unwrap()).collect();
    assert_eq!(distinct.len(), routes::all().count());
}

/// The members of a config entry are those that may be posted.
#[test]
fn every_key_of_a_server_is_described() {
    let document = written();
    let told = &document["components"]["schemas"]["NewServer"]["properties"];
    let told: BTreeSet<&str> = told.as_object().unwrap().keys().map(String::as_str).collect();
    let keys: BTreeSet<&str> = domain::config::server_keys().collect();
    assert_eq!(told, keys);
}
