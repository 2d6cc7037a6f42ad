//! A plugin's operation as a separate step.

use std::path::PathBuf;
use std::time::Duration;

use domain::Code;
use serde_json::{Map, Value};
use workflow::{Status, StepOutcome};

use crate::gate::{GateRequest, PluginGrant};
use crate::step::attempt::{Failure, Work};
use crate::step::call::text;

/// Part of the caller's name, in place of an agent's provider.
const OPERATION: &str = "operation";

impl Work<'_> {
    pub(super) async fn operation(
        &mut self,
        plugin: &str,
        operation: &str,
        inputs: &Map<String, Value>,
        dir: Option<&str>,
    ) -> Result<StepOutcome, Failure> {
        let root: PathBuf = self.attempt.dir(dir)?;
        let within = self.attempt.within();
        let request = GateRequest {
            agent: self.attempt.identity(OPERATION),
            root,
            builtins: false,
            servers: Vec::new(),
            plugins: vec![PluginGrant::one(plugin, operation)],
            patience: Duration::ZERO,
            kept_bytes: None,
            withheld: Vec::new(),
            trace: self.trace.clone(),
            cancel: self.attempt.cancel.clone(),
        };
        let gate = self.open(request).await?;
        let tool = gate.operation(plugin, operation);
        let inputs = Value::Object(inputs.clone());
        let result = self.call(&*gate, tool, &inputs, within).await?;
        let outcome = StepOutcome {
            output: text(&result),
            json: result.get("structuredContent").cloned(),
            ..StepOutcome::new(Status::Success)
        };
        if result["isError"] != Value::Bool(true) {
            return Ok(outcome);
        }
        let message = format!("{plugin}.{operation} failed: {}", outcome.output);
        let outcome = StepOutcome { status: Status::Failure, ..outcome };
        Err(Failure::new(Code::OperationFailed, message).with(outcome))
    }
}
