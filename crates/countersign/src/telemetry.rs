//! Spans leave through here, by OTLP: where to is in [`destination`], how they are kept from holding
//! up a call in [`delivery`], what the rest of the program sees of it in [`tracer`]. No type of
//! OpenTelemetry leaves this folder, and telemetry never stops the gate.

mod delivery;
mod destination;
mod tracer;

use std::sync::Arc;
use std::time::Duration;

use domain::config::{OtlpProtocol, Telemetry as Wanted};
use opentelemetry::trace::TracerProvider;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::tonic_types::transport::ClientTlsConfig;
use opentelemetry_otlp::{
    ExporterBuildError, Protocol, SpanExporter, WithExportConfig, WithTonicConfig,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use provider::Tracer;

use crate::telemetry::delivery::{Delivery, Queue, Sluice};
use crate::telemetry::destination::Destination;
use crate::telemetry::tracer::OtelTracer;

/// How long the program's end waits for spans to be delivered.
const FLUSH_WAIT: Duration = Duration::from_secs(2);

/// Spans are delivered while this is kept; [`Telemetry::end`] delivers the last ones.
pub(crate) struct Telemetry(Option<SdkTracerProvider>);

impl Telemetry {
    /// Must be called within the runtime that is to deliver the spans. What is wrong is told, and
    /// the gate does without spans.
    pub(crate) fn start(wanted: &Wanted) -> Telemetry {
        let variable = |name: &str| std::env::var(name).ok();
        let started = match Destination::find(wanted, variable) {
            Ok(None) => return Telemetry(None),
            Ok(Some(destination)) => {
                provider(&destination, variable).map_err(|error| error.to_string())
            }
            Err(reason) => Err(reason),
        };
        match started {
            Ok(provider) => Telemetry(Some(provider)),
            Err(reason) => {
                tracing::warn!("no spans are sent: {reason}");
                Telemetry(None)
            }
        }
    }

    /// Makes the spans, where any are wanted.
    pub(crate) fn tracer(&self) -> Option<Arc<dyn Tracer>> {
        let scope = InstrumentationScope::builder("countersign")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build();
        let tracer = self.0.as_ref()?.tracer_with_scope(scope);
        Some(Arc::new(OtelTracer::new(tracer)))
    }

    /// Delivers what waits, as far as the time allows.
    pub(crate) async fn end(self) {
        let Some(provider) = self.0 else {
            return;
        };
        let flushing = move || provider.shutdown_with_timeout(FLUSH_WAIT);
        if let Ok(Err(error)) = tokio::task::spawn_blocking(flushing).await {
            tracing::debug!(%error, "spans were lost at the end");
        }
    }
}

fn provider(
    destination: &Destination,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<SdkTracerProvider, ExporterBuildError> {
    let exporter = exporter(destination)?;
    let queue = Arc::new(Queue::new(variable));
    let delivery = Delivery::new(exporter, queue.clone(), destination.host());
    let resource = Resource::builder()
        .with_service_name(destination.service_name.clone())
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let provider = SdkTracerProvider::builder()
        .with_resource(resource)
        .with_span_processor(Sluice::new(delivery, queue));
    Ok(provider.build())
}

/// Headers and the timeout are read from the environment by the exporter itself.
fn exporter(destination: &Destination) -> Result<SpanExporter, ExporterBuildError> {
    let builder = SpanExporter::builder();
    match destination.protocol {
        OtlpProtocol::Grpc => {
            let builder = builder.with_tonic().with_endpoint(destination.endpoint.clone());
            if destination.endpoint.starts_with("http://") {
                return builder.build();
            }
            builder.with_tls_config(ClientTlsConfig::new().with_native_roots()).build()
        }
        OtlpProtocol::Http => builder
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(destination.endpoint.clone())
            .build(),
    }
}
