//! The OpenAPI description of the API. It is built from the table of routes, each of which supplies
//! its parameters and response types, so it covers every route.

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::HttpMethod;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, Paths,
};

use crate::operation::{ADMIN_KEY, REQUEST_ID};
use crate::routes;
use crate::view::words;

pub(crate) fn text() -> String {
    serde_json::to_string(&document()).unwrap_or_default()
}

fn document() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Countersign")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "The operator's API. Every response has an `x-request-id`, which is yours if you sent \
             one. Later versions may add members to responses; a request with an unknown parameter \
             or member is rejected.",
        ))
        .license(Some(LicenseBuilder::new().name("MIT OR Apache-2.0").build()));
    let (mut paths, mut components) = (Paths::new(), components());
    for route in routes::all() {
        let (operation, schemas) = (route.described)().build(route.handler, route.access);
        paths.add_path_operation(route.path, vec![method(route.method)], operation);
        components = components.schemas_from_iter(schemas);
    }
    OpenApiBuilder::new().info(info).paths(paths).components(Some(components.build())).build()
}

fn components() -> ComponentsBuilder {
    let key = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("The content of `<home>/api-key`."));
    let header = HeaderBuilder::new()
        .schema(Some(words::text()))
        .description(Some("The id of the request, which errors and records repeat."));
    ComponentsBuilder::new()
        .security_scheme(ADMIN_KEY, SecurityScheme::Http(key.build()))
        .header(REQUEST_ID, header.build())
}

/// Returns the HTTP method of a route.
fn method(word: &str) -> HttpMethod {
    match word {
        "POST" => HttpMethod::Post,
        "DELETE" => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

#[cfg(test)]
mod tests;
