//! The OpenAPI description of one route: its parameters, responses and refusals.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use domain::Code;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{
    ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder, Schema, SecurityRequirement,
};
use utoipa::{IntoParams, ToSchema};

use crate::access::RouteAccess;
use crate::answer;
use crate::view::{ErrorAnswer, words};

/// The name of the only security scheme.
pub(crate) const ADMIN_KEY: &str = "admin_key";

pub(crate) const REQUEST_ID: &str = "x-request-id";

const JSON: &str = "application/json";

/// The schemas that an operation refers to, by name.
pub(crate) type Schemas = Vec<(String, RefOr<Schema>)>;

pub(crate) struct Operation {
    builder: OperationBuilder,
    queries: Vec<String>,
    answers: Vec<(StatusCode, ResponseBuilder)>,
    refusals: BTreeMap<StatusCode, Vec<Code>>,
    schemas: Schemas,
}

impl Operation {
    pub(crate) fn new(summary: &str) -> Operation {
        let operation = Operation {
            builder: OperationBuilder::new().summary(Some(summary)),
            queries: Vec::new(),
            answers: Vec::new(),
            refusals: BTreeMap::new(),
            schemas: Vec::new(),
        };
        // A request under a foreign host name is refused before anything else is checked.
        operation.mentions::<ErrorAnswer>().refuses(&[Code::Forbidden])
    }

    /// Adds a path parameter.
    pub(crate) fn path(self, name: &str, description: &str) -> Operation {
        let parameter = ParameterBuilder::new()
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(words::text()));
        self.parameter(parameter.name(name).description(Some(description)).build())
    }

    /// Adds an optional header.
    pub(crate) fn header(
        self,
        name: &str,
        description: &str,
        value: impl Into<RefOr<Schema>>,
    ) -> Operation {
        let parameter = ParameterBuilder::new().parameter_in(ParameterIn::Header);
        let parameter = parameter.required(Required::False).schema(Some(value));
        self.parameter(parameter.name(name).description(Some(description)).build())
    }

    /// Adds the members of `T` as query parameters.
    pub(crate) fn queries<T: IntoParams>(self) -> Operation {
        T::into_params(|| Some(ParameterIn::Query)).into_iter().fold(
            self,
            |operation, mut query| {
                query.schema = query.schema.map(never_null);
                operation.parameter(query)
            },
        )
    }

    fn parameter(mut self, parameter: Parameter) -> Operation {
        if matches!(parameter.parameter_in, ParameterIn::Query) {
            self.queries.push(parameter.name.clone());
        }
        self.builder = self.builder.parameter(parameter);
        self.refuses(&[Code::InvalidRequest])
    }

    /// Adds a required body.
    pub(crate) fn body<T: ToSchema>(self) -> Operation {
        self.with_body::<T>(Required::True)
    }

    /// Adds an optional body.
    pub(crate) fn optional_body<T: ToSchema>(self) -> Operation {
        self.with_body::<T>(Required::False)
    }

    fn with_body<T: ToSchema>(mut self, required: Required) -> Operation {
        let content = ContentBuilder::new().schema(Some(reference::<T>())).build();
        let body = RequestBodyBuilder::new().required(Some(required)).content(JSON, content);
        self.builder = self.builder.request_body(Some(body.build()));
        self.mentions::<T>().refuses(&[
            Code::InvalidRequest,
            Code::RequestTimeout,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
        ])
    }

    /// Responds with 200 and JSON.
    pub(crate) fn gives<T: ToSchema>(self, description: &str) -> Operation {
        self.answers::<T>(StatusCode::OK, description)
    }

    /// Responds with 201 and JSON.
    pub(crate) fn makes<T: ToSchema>(self, description: &str) -> Operation {
        self.answers::<T>(StatusCode::CREATED, description)
    }

    pub(crate) fn answers<T: ToSchema>(self, status: StatusCode, description: &str) -> Operation {
        self.mentions::<T>().answers_with(status, description, &[JSON], reference::<T>())
    }

    /// Responds with 200 and text of one of these media types.
    pub(crate) fn gives_text(self, description: &str, kinds: &[&str]) -> Operation {
        self.answers_with(StatusCode::OK, description, kinds, words::text().into())
    }

    /// Responds with 200 and a stream of these events.
    pub(crate) fn streams<T: ToSchema>(self, description: &str) -> Operation {
        let kinds = ["text/event-stream"];
        self.mentions::<T>().answers_with(StatusCode::OK, description, &kinds, reference::<T>())
    }

    fn answers_with(
        mut self,
        status: StatusCode,
        description: &str,
        kinds: &[&str],
        schema: RefOr<Schema>,
    ) -> Operation {
        let response = kinds.iter().fold(answer(description), |response, kind| {
            let content = ContentBuilder::new().schema(Some(schema.clone()));
            response.content(*kind, content.build())
        });
        self.answers.push((status, response));
        self
    }

    /// Adds the schema of `T` to the document, and those that it refers to.
    pub(crate) fn mentions<T: ToSchema>(mut self) -> Operation {
        self.schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(&mut self.schemas);
        self
    }

    /// Adds the error codes that the route may respond with.
    pub(crate) fn refuses(mut self, codes: &[Code]) -> Operation {
        for code in codes {
            let known = self.refusals.entry(answer::status(*code)).or_default();
            if !known.contains(code) {
                known.push(*code);
            }
        }
        self
    }

    /// Returns the names of the query parameters.
    pub(crate) fn into_queries(self) -> Vec<String> {
        self.queries
    }

    /// Builds the operation for a route with this access, and the schemas that it refers to.
    pub(crate) fn build(
        self,
        id: &str,
        access: RouteAccess,
    ) -> (utoipa::openapi::path::Operation, Schemas) {
        let tag = id.split("::").next().unwrap_or_default().to_owned();
        let whole = match access {
            RouteAccess::Anyone | RouteAccess::Code => self,
            RouteAccess::Admin => {
                self.refuses(&[Code::Unauthorized, Code::InvalidRequest, Code::TooManyRequests])
            }
        };
        let mut builder = whole.builder.operation_id(Some(id.replace("::", "_"))).tag(tag);
        if access == RouteAccess::Admin {
            builder = builder.security(SecurityRequirement::new(ADMIN_KEY, [""; 0]));
        }
        for (status, response) in whole.answers {
            builder = builder.response(status.as_str(), response.build());
        }
        for (status, codes) in whole.refusals {
            builder = builder.response(status.as_str(), refusal(&codes));
        }
        (builder.build(), whole.schemas)
    }
}

fn reference<T: ToSchema>() -> RefOr<Schema> {
    Ref::from_schema_name(T::name()).into()
}

/// Removes null from a schema: a query has no null, only absent parameters.
fn never_null(schema: RefOr<Schema>) -> RefOr<Schema> {
    match schema {
        RefOr::T(Schema::OneOf(choice)) => choice.items.into_iter().next().unwrap_or_default(),
        RefOr::T(Schema::Object(mut object)) => {
            if let SchemaType::Array(kinds) = &object.schema_type {
                let kind = kinds.iter().find(|kind| **kind != Type::Null).cloned();
                object.schema_type = kind.map_or(SchemaType::AnyValue, SchemaType::Type);
            }
            RefOr::T(object.into())
        }
        other => other,
    }
}

/// Describes a response; every response names its request.
fn answer(description: &str) -> ResponseBuilder {
    let header = Ref::new(format!("#/components/headers/{REQUEST_ID}"));
    ResponseBuilder::new().description(description).header_ref(REQUEST_ID, header)
}

fn refusal(codes: &[Code]) -> RefOr<Response> {
    let meanings: Vec<String> =
        codes.iter().map(|code| format!("`{code}`: {}", code.meaning())).collect();
    let content = ContentBuilder::new().schema(Some(reference::<ErrorAnswer>())).build();
    answer(&meanings.join("; ")).content(JSON, content).into()
}
