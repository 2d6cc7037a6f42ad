//! Delivers spans through a bounded queue: no call waits for a collector. Spans that cannot be
//! delivered are dropped, which is logged once and not with every batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_otlp::SpanExporter as OtlpExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Span, SpanData, SpanExporter, SpanProcessor,
};
use tokio::runtime::Handle;

use crate::client::Reason;
use crate::destination::Destination;

/// The default of `OTEL_BSP_MAX_QUEUE_SIZE`: about a megabyte of spans.
const WAITING_MAX: usize = 2048;

/// The maximum that the variable may set: memory for the queue is allocated at the start.
const WAITING_LIMIT: usize = 64 * 1024;

/// Counts the spans that wait for delivery.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: AtomicUsize,
    max: usize,
}

impl Queue {
    pub(super) fn new(variable: impl Fn(&str) -> Option<String>) -> Queue {
        let max = variable("OTEL_BSP_MAX_QUEUE_SIZE").and_then(|text| text.trim().parse().ok());
        let max = max.filter(|max| *max > 0).unwrap_or(WAITING_MAX).min(WAITING_LIMIT);
        Queue { waiting: AtomicUsize::new(0), max }
    }

    fn has_room(&self) -> bool {
        let room = |waiting: usize| (waiting < self.max).then_some(waiting + 1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok()
    }

    fn taken(&self, count: usize) {
        self.waiting.fetch_sub(count, Ordering::Relaxed);
    }
}

/// Passes spans on to the batches while there is room for them.
#[derive(Debug)]
pub(super) struct Sluice {
    batches: BatchSpanProcessor,
    queue: Arc<Queue>,
    has_told: AtomicBool,
}

impl Sluice {
    /// Creates the sluice. The batches read the other `OTEL_BSP_*` variables themselves.
    pub(super) fn new(delivery: Delivery, queue: Arc<Queue>) -> Sluice {
        let config = BatchConfigBuilder::default().with_max_queue_size(queue.max).build();
        let batches = BatchSpanProcessor::builder(delivery).with_batch_config(config).build();
        Sluice { batches, queue, has_told: AtomicBool::new(false) }
    }
}

impl SpanProcessor for Sluice {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if self.queue.has_room() {
            self.batches.on_end(span);
        } else if !self.has_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                waiting = self.queue.max,
                "dropping spans: the collector does not keep up"
            );
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}

/// Hands batches to the exporter, on the runtime that it needs.
#[derive(Debug)]
pub(super) struct Delivery {
    exporter: Arc<OtlpExporter>,
    queue: Arc<Queue>,
    runtime: Handle,
    host: String,
    /// The time limit of a delivery, since connecting over gRPC has none.
    time: Duration,
    reason: Reason,
    is_failing: AtomicBool,
    lost: AtomicUsize,
}

impl Delivery {
    /// Creates the delivery. Must be called within the runtime.
    pub(super) fn new(
        exporter: OtlpExporter,
        queue: Arc<Queue>,
        destination: &Destination,
        reason: Reason,
    ) -> Delivery {
        Delivery {
            exporter: Arc::new(exporter),
            queue,
            runtime: Handle::current(),
            host: destination.host(),
            // A retry may begin when the first attempt has used up its time.
            time: destination.timeout.saturating_mul(2),
            reason,
            is_failing: AtomicBool::new(false),
            lost: AtomicUsize::new(0),
        }
    }

    fn tell(&self, count: usize, outcome: &OTelSdkResult) {
        match outcome {
            Ok(()) => {
                let lost = self.lost.swap(0, Ordering::Relaxed);
                if self.is_failing.swap(false, Ordering::Relaxed) {
                    tracing::info!(lost, "exporting spans to {} again", self.host);
                }
            }
            Err(error) => {
                self.lost.fetch_add(count, Ordering::Relaxed);
                if !self.is_failing.swap(true, Ordering::Relaxed) {
                    let reason = self.reason.take().unwrap_or_else(|| error.to_string());
                    tracing::warn!("cannot export spans to {}, dropping them: {reason}", self.host);
                }
            }
        }
    }
}

impl SpanExporter for Delivery {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        self.queue.taken(count);
        let (exporter, time) = (self.exporter.clone(), self.time);
        let sending = self.runtime.spawn(async move {
            let sending = tokio::time::timeout(time, exporter.export(batch));
            sending.await.unwrap_or(Err(OTelSdkError::Timeout(time)))
        });
        let outcome = sending
            .await
            .unwrap_or_else(|error| Err(OTelSdkError::InternalFailure(error.to_string())));
        self.tell(count, &outcome);
        outcome
    }

    fn set_resource(&mut self, resource: &Resource) {
        // Nothing is exported before the resource is known, so nothing else holds it.
        if let Some(exporter) = Arc::get_mut(&mut self.exporter) {
            exporter.set_resource(resource);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_has_room_again_once_spans_are_taken() {
        let queue = Queue::new(|_| Some("2".to_owned()));
        assert!(queue.has_room() && queue.has_room() && !queue.has_room());
        queue.taken(2);
        assert!(queue.has_room());
        for (text, max) in [
            (None, WAITING_MAX),
            (Some("0"), WAITING_MAX),
            (Some("many"), WAITING_MAX),
            (Some("100000000000"), WAITING_LIMIT),
        ] {
            assert_eq!(Queue::new(|_| text.map(str::to_owned)).max, max, "{text:?}");
        }
    }
}
