//! A server's question to the client within a call: sampling or elicitation. It names the server
//! where a client sees several, and is recorded with its answer before the server gets that.

use std::time::Duration;

use mcp::ErrorObject;
use mcp::message::{Raw, to_raw};
use mcp::object::{ObjectMembers, quote};
use mcp::peer::{Ask, Peer, RequestError};
use provider::{Call, CallContext, Declared};
use serde_json::value::RawValue;
use text::json::{self, Object};
use tokio::time::Instant;

use crate::Gateway;
use crate::question;

/// The form in which a client gets a server's questions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionForm {
    /// As sent: the client chose the server.
    Unchanged,
    /// With the server's name in front of the text.
    NamesServer,
}

/// The questions of one call.
pub(super) struct CallQuestions {
    gateway: Gateway,
    /// The call, without what it carries.
    call: Call,
    form: QuestionForm,
}

impl CallQuestions {
    pub(super) fn of(gateway: &Gateway, call: &Call, form: QuestionForm) -> CallQuestions {
        let call = Call {
            id: call.id.clone(),
            caller: call.caller.clone(),
            client: call.client.clone(),
            session: call.session.clone(),
            request_id: call.request_id.clone(),
            surface: call.surface,
            method: call.method,
            tool: call.tool.clone(),
            arguments: Object::empty(),
            declared: Declared::Nothing,
            other: Vec::new(),
        };
        CallQuestions { gateway: gateway.clone(), call, form }
    }

    pub(super) async fn ask(
        &self,
        peer: &Peer,
        method: &str,
        params: Option<Raw>,
        ctx: &CallContext,
    ) -> Result<Raw, RequestError> {
        let started = Instant::now();
        let params = match self.form {
            QuestionForm::Unchanged => params,
            QuestionForm::NamesServer => {
                let label = format!("Server '{}' asks: ", self.call.tool.server);
                match labelled(method, params.as_deref(), &label) {
                    Ok(labelled) => Some(labelled),
                    Err(error) => {
                        let refused = Err(RequestError::Refused(error));
                        let duration = started.elapsed();
                        self.record(method, params.as_deref(), &refused, duration).await?;
                        return refused;
                    }
                }
            }
        };
        let ask =
            Ask { cancel: ctx.cancel.clone(), ..Ask::new(method, params.clone(), ctx.remaining()) };
        let answer = peer.request(ask).await;
        self.record(method, params.as_deref(), &answer, started.elapsed()).await?;
        answer
    }

    async fn record(
        &self,
        method: &str,
        params: Option<&RawValue>,
        answer: &Result<Raw, RequestError>,
        duration: Duration,
    ) -> Result<(), RequestError> {
        let asked = question::AskedQuestion { call: &self.call, method, params, answer, duration };
        asked.record(&self.gateway).await.map_err(|error| {
            let message = format!("the client's answer is withheld: {error}");
            RequestError::Refused(ErrorObject::internal(message))
        })
    }
}

/// Puts the label in front of the text that the client's user or model is shown.
fn labelled(method: &str, params: Option<&RawValue>, label: &str) -> Result<Raw, ErrorObject> {
    let text = params.map_or("{}", RawValue::get);
    let mut members: ObjectMembers<'_> = serde_json::from_str(text).map_err(|error| {
        ErrorObject::invalid_params(format!("{method}: {}", json::explain(&error)))
    })?;
    if method == "elicitation/create" {
        prefix(&mut members, "message", label);
        return Ok(members.write());
    }
    let messages = members.get("messages").and_then(|messages| label_first(messages, label));
    let has_label = messages.is_some();
    if let Some(messages) = messages {
        members.set("messages", messages);
    }
    if !has_label || members.get("systemPrompt").is_some() {
        prefix(&mut members, "systemPrompt", label);
    }
    Ok(members.write())
}

/// Labels a member that is text; any other value is replaced by the label.
fn prefix(members: &mut ObjectMembers<'_>, name: &'static str, label: &str) {
    let text = members.get(name).and_then(|json| serde_json::from_str::<String>(json).ok());
    members.set(name, quote(&format!("{label}{}", text.unwrap_or_default())));
}

/// Labels the first text in a list of messages or of content blocks.
fn label_first(list: &str, label: &str) -> Option<String> {
    let mut items: Vec<Raw> = serde_json::from_str(list).ok()?;
    let labelled =
        items.iter().enumerate().find_map(|(at, item)| Some((at, label_item(item, label)?)));
    let (at, item) = labelled?;
    items[at] = item;
    Some(to_raw(&items).get().to_owned())
}

/// Labels a content block with text, or a message with such a block.
fn label_item(item: &RawValue, label: &str) -> Option<Raw> {
    let mut members = ObjectMembers::parse(item).ok()?;
    if let Some(content) = members.get("content") {
        let content = match content.starts_with('[') {
            true => label_first(content, label)?,
            false => label_item(serde_json::from_str(content).ok()?, label)?.get().to_owned(),
        };
        members.set("content", content);
    } else {
        members.get("text")?;
        prefix(&mut members, "text", label);
    }
    Some(members.write())
}

#[cfg(test)]
mod tests {
    use mcp::message::raw;

    use super::*;

    fn named(method: &str, params: &str) -> String {
        labelled(method, Some(&raw(params.to_owned())), "S: ").unwrap().get().to_owned()
    }

    #[test]
    fn the_servers_name_comes_before_the_text_and_the_rest_stays() {
        let elicit = |params: &str| named("elicitation/create", params);
        assert_eq!(elicit(r#"{"message":"Hi","n":1E2}"#), r#"{"message":"S: Hi","n":1E2}"#);
        assert_eq!(elicit("{}"), r#"{"message":"S: "}"#);
        let sample = |params: &str| named("sampling/createMessage", params);
        let message = |content: &str| {
            format!(r#"{{"messages":[{{"role":"user","content":{content}}}],"maxTokens":1.0}}"#)
        };
        let image = r#"{"type":"image","data":"AA=="}"#;
        let text = |text: &str| format!(r#"{{"type":"text","text":"{text}"}}"#);
        assert_eq!(sample(&message(&text("Hi"))), message(&text("S: Hi")));
        let blocks = |words: &str| message(&format!("[{image},{}]", text(words)));
        assert_eq!(sample(&blocks("Hi")), blocks("S: Hi"));
        let alone = message(image);
        let end = r#""systemPrompt":"S: "}"#;
        assert_eq!(sample(&alone), format!("{},{end}", alone.strip_suffix('}').unwrap()));
        let both = r#"{"systemPrompt":"Be","messages":[{"content":{"text":"Hi"}}]}"#;
        let labels = r#"{"systemPrompt":"S: Be","messages":[{"content":{"text":"S: Hi"}}]}"#;
        assert_eq!(sample(both), labels);
    }

    #[test]
    fn a_question_that_two_parsers_read_differently_is_refused() {
        let twice = raw(r#"{"message":"a","message":"b"}"#.to_owned());
        assert!(labelled("elicitation/create", Some(&twice), "S: ").is_err());
    }
}
