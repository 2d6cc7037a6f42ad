//! What one route takes, gives and refuses.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use domain::Code;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{
    ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder, SecurityRequirement,
};

use super::schema::{Schema, part, text};
use super::{ADMIN_KEY, REQUEST_ID};
use crate::answer;
use crate::routes::Access;

const JSON: &str = "application/json";

pub(crate) struct Operation {
    told: OperationBuilder,
    queries: Vec<String>,
    given: Vec<(StatusCode, ResponseBuilder)>,
    refused: BTreeMap<StatusCode, Vec<Code>>,
}

impl Operation {
    pub(crate) fn new(summary: &str) -> Operation {
        let told = OperationBuilder::new().summary(Some(summary));
        Operation { told, queries: Vec::new(), given: Vec::new(), refused: BTreeMap::new() }
            // Whoever asks under a foreign name, before anything else is looked at.
            .refuses(&[Code::Forbidden])
    }

    /// A part of the path.
    pub(crate) fn path(self, name: &str, words: &str) -> Operation {
        self.parameter(ParameterIn::Path, name, words, text())
    }

    pub(crate) fn query(mut self, name: &str, words: &str, value: impl Into<Schema>) -> Operation {
        self.queries.push(name.to_owned());
        self.parameter(ParameterIn::Query, name, words, value)
    }

    pub(crate) fn header(self, name: &str, words: &str, value: impl Into<Schema>) -> Operation {
        self.parameter(ParameterIn::Header, name, words, value)
    }

    fn parameter(
        mut self,
        place: ParameterIn,
        name: &str,
        words: &str,
        value: impl Into<Schema>,
    ) -> Operation {
        let is_part = matches!(place, ParameterIn::Path);
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(place)
            .required(if is_part { Required::True } else { Required::False })
            .description(Some(words))
            .schema(Some(value));
        self.told = self.told.parameter(parameter);
        self.refuses(&[Code::InvalidRequest])
    }

    pub(crate) fn body(self, value: Schema) -> Operation {
        self.with_body(Required::True, value)
    }

    /// A body that may be left out.
    pub(crate) fn optional_body(self, value: impl Into<Schema>) -> Operation {
        self.with_body(Required::False, value.into())
    }

    fn with_body(mut self, required: Required, value: Schema) -> Operation {
        let content = ContentBuilder::new().schema(Some(value)).build();
        let body = RequestBodyBuilder::new().required(Some(required)).content(JSON, content);
        self.told = self.told.request_body(Some(body.build()));
        self.refuses(&[
            Code::InvalidRequest,
            Code::RequestTimeout,
            Code::PayloadTooLarge,
            Code::UnsupportedMediaType,
        ])
    }

    /// Answers 200 with JSON.
    pub(crate) fn gives(self, words: &str, value: impl Into<Schema>) -> Operation {
        self.answers(StatusCode::OK, words, &[JSON], value)
    }

    /// Answers 201 with JSON.
    pub(crate) fn makes(self, words: &str, value: impl Into<Schema>) -> Operation {
        self.answers(StatusCode::CREATED, words, &[JSON], value)
    }

    pub(crate) fn answers(
        mut self,
        status: StatusCode,
        words: &str,
        kinds: &[&str],
        value: impl Into<Schema>,
    ) -> Operation {
        let value = value.into();
        let response = kinds.iter().fold(answer(words), |response, kind| {
            let content = ContentBuilder::new().schema(Some(value.clone()));
            response.content(*kind, content.build())
        });
        self.given.push((status, response));
        self
    }

    /// Codes with which it may answer instead.
    pub(crate) fn refuses(mut self, codes: &[Code]) -> Operation {
        for code in codes {
            let known = self.refused.entry(answer::status(*code)).or_default();
            if !known.contains(code) {
                known.push(*code);
            }
        }
        self
    }

    /// The names of the parameters that its query may have.
    pub(crate) fn into_queries(self) -> Vec<String> {
        self.queries
    }

    /// The whole, for a route that such callers may use.
    pub(crate) fn build(self, id: &str, access: Access) -> utoipa::openapi::path::Operation {
        let tag = id.split("::").next().unwrap_or_default().to_owned();
        let whole = match access {
            Access::Anyone | Access::Code => self,
            Access::Admin => self.refuses(&[Code::Unauthorized, Code::InvalidRequest]),
        };
        let mut told = whole.told.operation_id(Some(id.replace("::", "_"))).tag(tag);
        if access == Access::Admin {
            told = told.security(SecurityRequirement::new(ADMIN_KEY, [""; 0]));
        }
        for (status, response) in whole.given {
            told = told.response(status.as_str(), response.build());
        }
        for (status, codes) in whole.refused {
            told = told.response(status.as_str(), refusal(&codes));
        }
        told.build()
    }
}

/// Every answer names its request.
fn answer(words: &str) -> ResponseBuilder {
    let header = Ref::new(format!("#/components/headers/{REQUEST_ID}"));
    ResponseBuilder::new().description(words).header_ref(REQUEST_ID, header)
}

fn refusal(codes: &[Code]) -> RefOr<Response> {
    let words: Vec<String> =
        codes.iter().map(|code| format!("`{code}`: {}", code.meaning())).collect();
    let content = ContentBuilder::new().schema(Some(part("Error"))).build();
    answer(&words.join("; ")).content(JSON, content).into()
}
