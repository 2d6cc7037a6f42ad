//! A request to a stateless server, which may take several rounds: the server returns questions, the
//! client behind the call answers them, and the request is sent again with the answers.

use mcp::error::{ErrorObject, HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION};
use mcp::message::{Notification, Raw};
use mcp::peer::Ask;
use mcp::stateless::{InputRequired, ResultKind};
use provider::{CallContext, ProviderError};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::limits;
use crate::upstream::exchange::{Carrier, request};
use crate::upstream::server_side::LISTS_CHANGED;

/// The requests that a server may answer with questions.
const ASKING: [&str; 3] = ["tools/call", "resources/read", "prompts/get"];

/// Sends a request until it is complete; one call, however many rounds that takes.
pub(super) async fn completed(
    carrier: &Carrier,
    ctx: &CallContext,
    ask: Ask,
) -> Result<Raw, ProviderError> {
    let mut next = ask.again(ask.params.clone());
    for _ in 0..limits::CALL_ROUNDS_MAX {
        let result = request(&carrier.to.peer, next).await;
        let result = result.map_err(|error| understood(carrier, error))?;
        let asked = match ResultKind::of(&result, &carrier.to.peer) {
            Ok(ResultKind::Complete) => return Ok(result),
            Ok(ResultKind::InputRequired(asked)) if ASKING.contains(&&*ask.method) => asked,
            Ok(ResultKind::InputRequired(_)) => {
                return Err(unusable("it asks for input, which this method has no place for"));
            }
            Ok(ResultKind::Unknown(kind)) => {
                return Err(unusable(&format!("its result is of the unknown type '{kind}'")));
            }
            Err(fault) => return Err(unusable(&format!("its result is not valid: {fault}"))),
        };
        let answers = answers(carrier, ctx, &asked).await?;
        let params = asked.answered(ask.params.as_ref(), &answers);
        next = Ask { timeout: ctx.step_remaining(), ..ask.again(params) };
    }
    let rounds = limits::CALL_ROUNDS_MAX;
    Err(ProviderError::Unanswered(format!("it still asks for input after {rounds} rounds")))
}

/// Asks the client what the server wants to know, one question after the other.
async fn answers(
    carrier: &Carrier,
    ctx: &CallContext,
    asked: &InputRequired,
) -> Result<Vec<Raw>, ProviderError> {
    let mut answers = Vec::with_capacity(asked.questions.len());
    for (_, question) in &asked.questions {
        let Some(running) = &carrier.asked else {
            return Err(undeclared(&question.method));
        };
        if ctx.cancel.is_cancelled() {
            return Err(ProviderError::Cancelled { sent: true });
        }
        answers.push(running.answer(&question.method, question.params.clone()).await?);
    }
    Ok(answers)
}

/// Says that the client did not declare what a question needs.
pub(super) fn undeclared(method: &str) -> ProviderError {
    let method: String = method.chars().take(64).collect();
    ProviderError::Unanswered(format!("it asks for '{method}', which this client did not declare"))
}

fn unusable(words: &str) -> ProviderError {
    ProviderError::Lost(words.to_owned())
}

/// Acts on the errors of the stateless protocol itself.
fn understood(carrier: &Carrier, error: ProviderError) -> ProviderError {
    let ProviderError::Protocol(refused) = &error else { return error };
    match refused.code {
        MISSING_CAPABILITY => {
            let missing = missing(refused).unwrap_or_else(|| refused.message.clone());
            let words = format!("it needs a client that declares {missing}");
            ProviderError::Unanswered(words)
        }
        // Nothing was done, and the next connection finds out what the server speaks now.
        UNSUPPORTED_VERSION => {
            let words = "it no longer speaks protocol 2026-07-28";
            carrier.to.peer.close(words);
            ProviderError::Unavailable(words.to_owned())
        }
        // Its tools may demand other headers by now.
        HEADER_MISMATCH => {
            let method = LISTS_CHANGED[0].to_owned();
            carrier.to.peer.receive(Notification { method, params: None }.into());
            error
        }
        _ => error,
    }
}

/// Returns the names of the capabilities that an error demands.
fn missing(error: &ErrorObject) -> Option<String> {
    #[derive(Deserialize)]
    struct Told {
        data: Demand,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Demand {
        required_capabilities: Map<String, Value>,
    }
    let told: Told = serde_json::from_str(error.text().get()).ok()?;
    let names = told.data.required_capabilities.keys();
    let names: Vec<String> = names.take(8).map(|it| it.chars().take(64).collect()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}
