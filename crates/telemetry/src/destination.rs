//! The destination of spans. Endpoint and protocol come from one source: the config if it names an
//! endpoint, since that is the operator's choice, otherwise the environment. Reads nothing itself.

use std::time::Duration;

use axum::http::Uri;
use domain::config::{OtlpProtocol, Telemetry};

/// The path at which a collector accepts spans by OTLP over HTTP.
const TRACES_PATH: &str = "/v1/traces";

/// The default time limit of a delivery, the same as OpenTelemetry's.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Destination {
    pub(super) endpoint: String,
    pub(super) protocol: OtlpProtocol,
    pub(super) service_name: String,
    pub(super) timeout: Duration,
    /// Certificates to trust in addition to the system's.
    pub(super) certificate: Option<CertificateFile>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct CertificateFile {
    /// The variable that named the file, for messages.
    pub(super) variable: &'static str,
    pub(super) path: String,
}

impl Destination {
    /// Returns none if no spans are wanted, or an error in words if they are but cannot be sent.
    pub(super) fn find(
        config: &Telemetry,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Destination>, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let says = |name: &str, word: &str| {
            variable(name).is_some_and(|value| value.trim().eq_ignore_ascii_case(word))
        };
        if says("OTEL_SDK_DISABLED", "true") || says("OTEL_TRACES_EXPORTER", "none") {
            return Ok(None);
        }
        let Some((endpoint, protocol)) = endpoint(config, &variable)? else {
            return Ok(None);
        };
        let certificate =
            ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE"]
                .into_iter()
                .find_map(|name| Some(CertificateFile { variable: name, path: variable(name)? }));
        Ok(Some(Destination {
            endpoint,
            protocol,
            service_name: service_name(config, &variable),
            timeout: timeout(&variable),
            certificate,
        }))
    }

    /// Returns the address without parts that may be secret.
    pub(super) fn host(&self) -> String {
        let uri = self.endpoint.parse::<Uri>().ok();
        let authority = uri.as_ref().and_then(Uri::authority).map(|authority| authority.as_str());
        let host = authority.and_then(|authority| authority.rsplit('@').next());
        host.unwrap_or("the collector").to_owned()
    }
}

fn endpoint(
    config: &Telemetry,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<(String, OtlpProtocol)>, String> {
    if !config.exporter.is_empty() {
        return Ok(Some((of_signal(&config.exporter, config.protocol), config.protocol)));
    }
    let protocol = || {
        let named = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]
            .into_iter()
            .find_map(|name| Some((name, variable(name)?)));
        match named.as_ref().map(|(name, value)| (name, value.trim())) {
            None => Ok(config.protocol),
            Some((_, "grpc")) => Ok(OtlpProtocol::Grpc),
            Some((_, "http/protobuf")) => Ok(OtlpProtocol::Http),
            Some((name, other)) => {
                Err(format!("{name}: '{other}' is not supported: use grpc or http/protobuf"))
            }
        }
    };
    // An endpoint for spans alone is used unchanged.
    if let Some(endpoint) = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
        return Ok(Some((endpoint.trim().to_owned(), protocol()?)));
    }
    match variable("OTEL_EXPORTER_OTLP_ENDPOINT") {
        Some(endpoint) => {
            let protocol = protocol()?;
            Ok(Some((of_signal(endpoint.trim(), protocol), protocol)))
        }
        None => Ok(None),
    }
}

/// Returns a collector's address for spans.
fn of_signal(base: &str, protocol: OtlpProtocol) -> String {
    match protocol {
        OtlpProtocol::Grpc => base.to_owned(),
        OtlpProtocol::Http if base.ends_with(TRACES_PATH) => base.to_owned(),
        OtlpProtocol::Http => format!("{}{TRACES_PATH}", base.trim_end_matches('/')),
    }
}

fn timeout(variable: &impl Fn(&str) -> Option<String>) -> Duration {
    let named = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
    let text = named.into_iter().find_map(variable);
    let milliseconds = text.and_then(|text| text.trim().parse().ok());
    milliseconds.map_or(TIMEOUT, Duration::from_millis)
}

/// Returns the service name; the environment may replace the config's default.
fn service_name(config: &Telemetry, variable: &impl Fn(&str) -> Option<String>) -> String {
    if config.service_name != Telemetry::default().service_name {
        return config.service_name.clone();
    }
    let attribute = || {
        let attributes = variable("OTEL_RESOURCE_ATTRIBUTES")?;
        let mut pairs = attributes.split(',').filter_map(|pair| pair.split_once('='));
        let (_, name) = pairs.find(|(key, _)| key.trim() == "service.name")?;
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    };
    variable("OTEL_SERVICE_NAME").or_else(attribute).unwrap_or_else(|| config.service_name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(
        config: &Telemetry,
        variables: &[(&str, &str)],
    ) -> Result<Option<Destination>, String> {
        let variable = |name: &str| {
            let (_, value) = variables.iter().find(|(key, _)| *key == name)?;
            Some((*value).to_owned())
        };
        Destination::find(config, variable)
    }

    fn config(exporter: &str, protocol: OtlpProtocol) -> Telemetry {
        Telemetry { exporter: exporter.to_owned(), protocol, ..Telemetry::default() }
    }

    const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://env:4317");

    #[test]
    fn no_spans_without_an_endpoint_or_where_they_are_switched_off() {
        let none = Telemetry::default();
        let some = config("http://c:4317", OtlpProtocol::Grpc);
        for (config, variables) in [
            (&none, vec![]),
            (&none, vec![("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]),
            (&none, vec![("OTEL_SERVICE_NAME", "x"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "nonsense")]),
            (&none, vec![ENDPOINT, ("OTEL_SDK_DISABLED", "TRUE")]),
            (&some, vec![("OTEL_SDK_DISABLED", "true")]),
            (&some, vec![("OTEL_TRACES_EXPORTER", "none")]),
        ] {
            assert_eq!(found(config, &variables), Ok(None), "{variables:?}");
        }
    }

    #[test]
    fn the_config_names_the_endpoint_before_the_environment_does() {
        let grpc = OtlpProtocol::Grpc;
        let http = OtlpProtocol::Http;
        let traces = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces/x");
        let over_http = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");
        let over_grpc = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc");
        for (config, variables, endpoint, protocol) in [
            (config("http://c:4317", grpc), vec![ENDPOINT, over_http], "http://c:4317", grpc),
            (config("http://c/", http), vec![ENDPOINT], "http://c/v1/traces", http),
            (config("http://c/v1/traces", http), vec![], "http://c/v1/traces", http),
            (config("", grpc), vec![ENDPOINT], "http://env:4317", grpc),
            (config("", grpc), vec![ENDPOINT, over_http], "http://env:4317/v1/traces", http),
            (config("", http), vec![ENDPOINT], "http://env:4317/v1/traces", http),
            (config("", http), vec![ENDPOINT, over_http, over_grpc], "http://env:4317", grpc),
            (config("", grpc), vec![ENDPOINT, traces, over_http], "http://traces/x", http),
        ] {
            let found = found(&config, &variables).unwrap().unwrap();
            assert_eq!((&*found.endpoint, found.protocol), (endpoint, protocol), "{variables:?}");
        }
    }

    #[test]
    fn the_service_name_comes_from_the_first_source_that_sets_it() {
        let named = |name: &str| Telemetry {
            service_name: name.to_owned(),
            ..config("http://c", OtlpProtocol::Grpc)
        };
        let variable = ("OTEL_SERVICE_NAME", "variable");
        let attribute = ("OTEL_RESOURCE_ATTRIBUTES", "a=b, service.name = attribute ,c=d");
        for (config, variables, expected) in [
            (named("mine"), vec![variable, attribute], "mine"),
            (named("countersign"), vec![variable, attribute], "variable"),
            (named("countersign"), vec![attribute], "attribute"),
            (named("countersign"), vec![("OTEL_RESOURCE_ATTRIBUTES", "a=b")], "countersign"),
            (named("countersign"), vec![], "countersign"),
        ] {
            let found = found(&config, &variables).unwrap().unwrap();
            assert_eq!(found.service_name, expected, "{variables:?}");
        }
    }

    #[test]
    fn an_unsupported_protocol_is_reported() {
        let json = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
        let error = found(&Telemetry::default(), &[ENDPOINT, json]).unwrap_err();
        assert!(error.contains("OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json'"), "{error}");
    }

    #[test]
    fn variables_for_traces_override_general_ones() {
        let config = config("https://c", OtlpProtocol::Http);
        let time = ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500");
        let time_of_spans = ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "20");
        let file = ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/all.pem");
        let file_of_spans = ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "/spans.pem");
        for (variables, milliseconds, certificate) in [
            (vec![], 10_000, None),
            (vec![("OTEL_EXPORTER_OTLP_TIMEOUT", "soon")], 10_000, None),
            (vec![time, file], 1500, Some(file)),
            (vec![time, time_of_spans, file, file_of_spans], 20, Some(file_of_spans)),
        ] {
            let found = found(&config, &variables).unwrap().unwrap();
            assert_eq!(found.timeout, Duration::from_millis(milliseconds), "{variables:?}");
            let named = found.certificate.as_ref().map(|file| (file.variable, &*file.path));
            assert_eq!(named, certificate, "{variables:?}");
        }
    }

    #[test]
    fn messages_name_the_host_alone() {
        let secret = config("https://me:pw@c.example:4317/key", OtlpProtocol::Grpc);
        assert_eq!(found(&secret, &[]).unwrap().unwrap().host(), "c.example:4317");
    }
}
