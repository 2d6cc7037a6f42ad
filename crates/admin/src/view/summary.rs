//! Counts of calls.

use serde::{Deserialize, Serialize};
use store::read::summary::{Bucket, ServerTool, Tally};
use store::read::{Period, Summary};
use utoipa::ToSchema;

use super::{milliseconds, moment, words};

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ActivitySummary {
    #[schema(schema_with = words::period)]
    pub period: String,
    #[schema(schema_with = words::moment)]
    pub start: String,
    #[schema(schema_with = words::moment)]
    pub end: String,
    pub calls: u64,
    #[schema(schema_with = words::status_counts)]
    pub by_status: serde_json::Map<String, serde_json::Value>,
    pub by_server: Vec<ServerCounts>,
    pub by_tool: Vec<ToolCounts>,
    pub by_intent: Vec<IntentCounts>,
    pub by_agent: Vec<AgentCounts>,
    pub buckets: Vec<TimeBucket>,
    pub bucket_seconds: u64,
    pub duration_ms: DurationPercentiles,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ServerCounts {
    pub server: String,
    pub calls: u64,
    pub errors: u64,
    pub blocked: u64,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct ToolCounts {
    pub server: String,
    pub tool: String,
    pub calls: u64,
    pub errors: u64,
    pub blocked: u64,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct IntentCounts {
    pub intent_type: String,
    pub calls: u64,
    pub errors: u64,
    pub blocked: u64,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct AgentCounts {
    pub agent: String,
    pub calls: u64,
    pub errors: u64,
    pub blocked: u64,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct TimeBucket {
    #[schema(schema_with = words::moment)]
    pub start: String,
    /// Calls by effective class, refused ones too; a refused call may have none.
    pub reads: u64,
    pub writes: u64,
    pub destructive: u64,
    pub calls: u64,
    pub errors: u64,
    pub blocked: u64,
}

#[derive(Serialize, Deserialize, ToSchema)]
pub struct DurationPercentiles {
    #[schema(required, minimum = 0)]
    pub p50: Option<f64>,
    #[schema(required, minimum = 0)]
    pub p95: Option<f64>,
}

impl ActivitySummary {
    pub(crate) fn new(period: Period, summary: &Summary) -> ActivitySummary {
        let statuses = summary.by_status.iter();
        ActivitySummary {
            period: period.as_str().to_owned(),
            start: moment(summary.start),
            end: moment(summary.end),
            calls: summary.calls,
            by_status: statuses
                .map(|(status, count)| (status.as_str().to_owned(), (*count).into()))
                .collect(),
            by_server: summary.by_server.iter().map(ServerCounts::from).collect(),
            by_tool: summary.by_tool.iter().map(ToolCounts::from).collect(),
            by_intent: summary.by_intent.iter().map(IntentCounts::from).collect(),
            by_agent: summary.by_agent.iter().map(AgentCounts::from).collect(),
            buckets: summary.buckets.iter().map(TimeBucket::from).collect(),
            bucket_seconds: summary.bucket_width.as_secs(),
            duration_ms: DurationPercentiles {
                p50: summary.duration_p50.map(milliseconds),
                p95: summary.duration_p95.map(milliseconds),
            },
        }
    }
}

impl From<&Tally<String>> for ServerCounts {
    fn from(Tally { of, counts }: &Tally<String>) -> ServerCounts {
        let (calls, errors, blocked) = (counts.calls, counts.errors, counts.blocked);
        ServerCounts { server: of.clone(), calls, errors, blocked }
    }
}

impl From<&Tally<ServerTool>> for ToolCounts {
    fn from(Tally { of: ServerTool { server, tool }, counts }: &Tally<ServerTool>) -> ToolCounts {
        let (calls, errors, blocked) = (counts.calls, counts.errors, counts.blocked);
        ToolCounts { server: server.clone(), tool: tool.clone(), calls, errors, blocked }
    }
}

impl From<&Tally<String>> for IntentCounts {
    fn from(Tally { of, counts }: &Tally<String>) -> IntentCounts {
        let (calls, errors, blocked) = (counts.calls, counts.errors, counts.blocked);
        IntentCounts { intent_type: of.clone(), calls, errors, blocked }
    }
}

impl From<&Tally<String>> for AgentCounts {
    fn from(Tally { of, counts }: &Tally<String>) -> AgentCounts {
        let (calls, errors, blocked) = (counts.calls, counts.errors, counts.blocked);
        AgentCounts { agent: of.clone(), calls, errors, blocked }
    }
}

impl From<&Bucket> for TimeBucket {
    fn from(bucket: &Bucket) -> TimeBucket {
        TimeBucket {
            start: moment(bucket.start),
            reads: bucket.reads,
            writes: bucket.writes,
            destructive: bucket.destructive,
            calls: bucket.counts.calls,
            errors: bucket.counts.errors,
            blocked: bucket.counts.blocked,
        }
    }
}
