//! Exports spans by OTLP: [`destination`] finds the address, [`trust`] the certificates,
//! [`delivery`] keeps exports from delaying a call, and [`tracer`] is the interface for the rest of
//! the program. No type of OpenTelemetry leaves this crate, and telemetry never stops the gate.

mod client;
mod delivery;
mod destination;
mod tracer;
mod trust;

use std::sync::Arc;
use std::time::Duration;

use domain::config::{OtlpProtocol, Telemetry as Wanted};
use mcp::task;
use opentelemetry::trace::TracerProvider;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{
    Protocol, SpanExporter, WithExportConfig, WithHttpConfig, WithTonicConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use provider::Tracer;
use redact::Redactor;

use crate::client::{Client, Reason};
use crate::delivery::{Delivery, Queue, Sluice};
use crate::destination::Destination;
use crate::tracer::OtelTracer;

/// The time that shutdown waits for spans to be delivered.
const FLUSH_WAIT: Duration = Duration::from_secs(2);

/// Returns the redactor of the moment: a reload of the config brings another one.
pub type CurrentRedactor = fn() -> Arc<Redactor>;

/// Delivers spans while it is kept; [`SpanExport::end`] delivers the last ones.
pub struct SpanExport {
    /// Absent if no spans are wanted, or none can be exported.
    provider: Option<SdkTracerProvider>,
    redactor: CurrentRedactor,
}

impl SpanExport {
    /// Starts telemetry. Must be called within the runtime that delivers the spans. A fault is
    /// logged, and the gate runs without spans.
    pub fn start(wanted: &Wanted, redactor: CurrentRedactor) -> SpanExport {
        let variable = |name: &str| std::env::var(name).ok();
        let started = match Destination::find(wanted, variable) {
            Ok(None) => return SpanExport { provider: None, redactor },
            Ok(Some(destination)) => provider(&destination, variable),
            Err(reason) => Err(reason),
        };
        let provider =
            started.inspect_err(|reason| tracing::warn!("spans are not exported: {reason}")).ok();
        SpanExport { provider, redactor }
    }

    /// Returns the tracer, if spans are wanted.
    pub fn tracer(&self) -> Option<Arc<dyn Tracer>> {
        let scope = InstrumentationScope::builder("countersign")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        let tracer = self.provider.as_ref()?.tracer_with_scope(scope);
        Some(Arc::new(OtelTracer::new(tracer, self.redactor)))
    }

    /// Delivers as many waiting spans as time allows.
    pub async fn end(self) {
        let Some(provider) = self.provider else {
            return;
        };
        let flushing = move || provider.shutdown_with_timeout(FLUSH_WAIT);
        if let Ok(Err(error)) = task::spawn_blocking(flushing).await {
            tracing::debug!(%error, "spans were lost at shutdown");
        }
    }
}

fn provider(
    destination: &Destination,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<SdkTracerProvider, String> {
    let reason = Reason::default();
    let exporter = exporter(destination, reason.clone())?;
    let queue = Arc::new(Queue::new(variable));
    let delivery = Delivery::new(exporter, queue.clone(), destination, reason);
    let resource = Resource::builder()
        .with_service_name(destination.service_name.clone())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let provider = SdkTracerProvider::builder()
        .with_resource(resource)
        .with_span_processor(Sluice::new(delivery, queue));
    Ok(provider.build())
}

/// Builds the exporter, which reads headers from the environment itself.
fn exporter(destination: &Destination, reason: Reason) -> Result<SpanExporter, String> {
    match destination.protocol {
        OtlpProtocol::Grpc => grpc_exporter(destination),
        OtlpProtocol::Http => SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(destination.endpoint.clone())
            .with_http_client(Client::new(destination, reason)?)
            .build()
            .map_err(|error| error.to_string()),
    }
}

fn grpc_exporter(destination: &Destination) -> Result<SpanExporter, String> {
    let builder = || SpanExporter::builder().with_tonic().with_endpoint(&*destination.endpoint);
    if destination.endpoint.starts_with("http://") {
        return builder().build().map_err(|error| error.to_string());
    }
    let mut outcome = Err("no trusted certificates".to_owned());
    for config in trust::grpc_configs(destination)? {
        let built = builder().with_tls_config(config).build();
        outcome = built.map_err(|error| error.to_string());
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}
