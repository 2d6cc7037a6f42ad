//! The model's server: sends one request, with retries, and returns its answer. Follows no
//! redirects: the key would be sent along. The key is removed here from every text of the server.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use jiff::Timestamp;
use mcp::http::PooledResponse;
use mcp::http::target::HttpTarget;
use serde_json::Value;
use tokio::time::{Instant, timeout};
use workflow::ModelApi;

use super::answer::{self, AnswerFault, Assembly, ModelAnswer};
use super::retry::{self, RetryAdvice};
use super::settings::{ModelSettings, RequestForm};

/// Maximum silence of a server. A model that reads a long input on a small machine, or that answers
/// in one piece, takes minutes to its first byte; the step's own timeout bounds the rest.
const SILENCE_MAX: Duration = Duration::from_secs(10 * 60);

/// Time for what follows a complete answer: the usage, and the end.
const LAST_WORDS_MAX: Duration = Duration::from_secs(5);

/// Time for the end of the response after the answer's end, so that the connection can be reused.
const GOODBYE_MAX: Duration = Duration::from_millis(100);

/// Every request contains the whole conversation so far.
const REQUEST_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes read from the body of an error, and the part of its text that is reported.
const ERROR_BYTES_MAX: usize = 64 * 1024;
const WORDS_CHARS_MAX: usize = 300;

pub(super) struct ModelServer<'a> {
    settings: &'a ModelSettings,
    target: HttpTarget,
    headers: HeaderMap,
    form: RequestForm,
}

/// The reason a request has no answer.
struct RequestFailure {
    words: String,
    /// The server's own text, which may still contain the key.
    said: String,
    again: RetryAdvice,
    status: Option<StatusCode>,
}

impl RequestFailure {
    fn new(words: impl Into<String>, again: RetryAdvice) -> RequestFailure {
        RequestFailure { words: words.into(), said: String::new(), again, status: None }
    }
}

impl From<AnswerFault> for RequestFailure {
    fn from(fault: AnswerFault) -> RequestFailure {
        let again = match &fault {
            AnswerFault::LongPiece(_)
            | AnswerFault::Long(_)
            | AnswerFault::ManyCalls
            | AnswerFault::ManyDetails
            | AnswerFault::NoChoices
            | AnswerFault::NoOutput => RetryAdvice::Never,
            AnswerFault::Rubbish(_) | AnswerFault::Unfinished => RetryAdvice::Later,
            AnswerFault::Reported { status, .. } => {
                status.map_or(RetryAdvice::Never, |status| retry::of_status(status, None))
            }
        };
        match fault {
            AnswerFault::Reported { message, .. } => {
                RequestFailure { said: message, ..RequestFailure::new("reported an error", again) }
            }
            other => RequestFailure::new(other.to_string(), again),
        }
    }
}

impl<'a> ModelServer<'a> {
    pub(super) fn new(settings: &'a ModelSettings) -> Result<ModelServer<'a>, String> {
        let target = HttpTarget::new(settings.url.clone(), HeaderMap::new())?;
        let mut headers = target.headers().clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        let agent = concat!("countersign/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        settings.authorize(&mut headers)?;
        Ok(ModelServer { settings, target, headers, form: RequestForm::default() })
    }

    /// Sends the request until there is an answer, or a retry is pointless. The step ends at
    /// `deadline`.
    pub(super) async fn ask(
        &mut self,
        messages: &[String],
        tools: &[String],
        deadline: Instant,
    ) -> Result<ModelAnswer, String> {
        let mut attempt = 1;
        loop {
            let body = self.settings.body(messages, tools, self.form);
            let failed = match self.once(body).await {
                Ok(answer) => return Ok(self.cleared(answer)),
                Err(failed) => failed,
            };
            if let Some(form) = accepted_form(self.form, &failed) {
                self.form = form;
                continue;
            }
            let words = self.words(&failed);
            let random = getrandom::u32().unwrap_or(u32::MAX / 2);
            let Some(wait) = retry::wait(failed.again, attempt, random) else {
                return Err(match attempt {
                    1 => words,
                    times => format!("{words}; gave up after {times} attempts"),
                });
            };
            if wait > deadline.saturating_duration_since(Instant::now()) {
                let seconds = wait.as_secs();
                return Err(format!(
                    "{words}; the next attempt is due in {seconds} s, after the step's timeout"
                ));
            }
            tracing::warn!(attempt, wait_ms = wait.as_millis(), "{words}; retrying");
            tokio::time::sleep(wait).await;
            attempt += 1;
        }
    }

    /// Returns the message for people. The key is removed before anything is cut: even half of it
    /// is too much.
    fn words(&self, failed: &RequestFailure) -> String {
        let clear = |text: &str| {
            self.settings.secrets().fold(text.to_owned(), |text, key| key.clear(&text))
        };
        let words = format!("model server at {}: {}", self.target.host(), clear(&failed.words));
        match one_line(&clear(&failed.said)) {
            said if said.is_empty() => words,
            said => format!("{words}: {said}"),
        }
    }

    /// Removes the key from an answer, which would carry it into outputs and records.
    fn cleared(&self, mut answer: ModelAnswer) -> ModelAnswer {
        for key in self.settings.secrets() {
            let reasoning = &mut answer.reasoning;
            let said = [&mut answer.text, &mut answer.refusal];
            let texts = said.into_iter().chain([&mut reasoning.content, &mut reasoning.text]);
            texts
                .chain(&mut answer.model)
                .chain(&mut answer.finish)
                .for_each(|it| key.clear_said(it));
            for call in &mut answer.calls {
                let texts = [&mut call.id, &mut call.name, &mut call.arguments];
                texts.into_iter().for_each(|text| key.clear_said(text));
                call.extra_content.iter_mut().for_each(|extra| key.clear_value(extra));
            }
            let values = reasoning.details.iter_mut().chain(&mut answer.items);
            values.for_each(|value| key.clear_value(value));
        }
        answer
    }

    async fn once(&self, body: String) -> Result<ModelAnswer, RequestFailure> {
        if body.len() > REQUEST_BYTES_MAX {
            let words = format!(
                "the conversation has grown to {} bytes, too many for one request",
                body.len()
            );
            return Err(RequestFailure::new(words, RetryAdvice::Never));
        }
        let sending = self.target.send(Method::POST, self.headers.clone(), Bytes::from(body));
        let sent = timeout(SILENCE_MAX, sending).await.map_err(|_| silent())?;
        let response = sent.map_err(|cause| {
            RequestFailure::new(format!("no response: {cause}"), RetryAdvice::Later)
        })?;
        match response.status() {
            status if status.is_success() => read(self.settings.api, response).await,
            status if status.is_redirection() => {
                let words = format!(
                    "redirected to {}; redirects are not followed, because the key would be sent \
                     along: set base_url to the new address",
                    self.target.elsewhere(&response)
                );
                Err(RequestFailure::new(words, RetryAdvice::Never))
            }
            status => Err(self.refused(status, response).await),
        }
    }

    async fn refused(&self, status: StatusCode, response: PooledResponse) -> RequestFailure {
        let wait = retry::stated_wait(response.headers(), Timestamp::now());
        let mut again = retry::of_status(status.as_u16(), wait);
        let body = error_body(response).await;
        let error: Value = serde_json::from_str(&body).unwrap_or_default();
        // The quota will not be refilled while we wait.
        if [&error["error"]["code"], &error["error"]["type"]]
            .contains(&&"insufficient_quota".into())
        {
            again = RetryAdvice::Never;
        }
        let said = answer::message(&error).unwrap_or_else(|| match body.trim_start() {
            page if page.starts_with('<') => String::new(),
            text => text.to_owned(),
        });
        let words = match status {
            StatusCode::UNAUTHORIZED if self.settings.key.is_given() => {
                "rejected the api_key (HTTP 401)".to_owned()
            }
            StatusCode::UNAUTHORIZED => {
                "requires a key (HTTP 401): set options.api_key or OPENAI_API_KEY".to_owned()
            }
            StatusCode::NOT_FOUND => {
                let path = self.settings.url.path();
                format!("path {path} or the model does not exist (HTTP 404)")
            }
            status => format!("responded with HTTP {status}"),
        };
        RequestFailure { words, said, again, status: Some(status) }
    }
}

/// Returns another form of the request if the server rejected this one for its form.
fn accepted_form(form: RequestForm, failed: &RequestFailure) -> Option<RequestForm> {
    const EXTRAS: [&str; 5] =
        ["stream_options", "include_usage", "'include'", "\"include\"", "encrypted"];
    let refused = [StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY];
    failed.status.filter(|status| refused.contains(status))?;
    let said = failed.said.to_ascii_lowercase();
    if form.has_extras && EXTRAS.iter().any(|name| said.contains(name)) {
        return Some(RequestForm { has_extras: false, ..form });
    }
    let is_limit = !form.has_old_limit && said.contains("max_completion_tokens");
    is_limit.then_some(RequestForm { has_old_limit: true, ..form })
}

async fn read(api: ModelApi, mut response: PooledResponse) -> Result<ModelAnswer, RequestFailure> {
    let mut assembly = Assembly::new(api);
    loop {
        let patience = if assembly.is_finished() { LAST_WORDS_MAX } else { SILENCE_MAX };
        match timeout(patience, response.chunk()).await {
            Ok(Ok(Some(chunk))) => assembly.push(&chunk)?,
            Ok(Ok(None)) => break,
            // The rest is not needed.
            Ok(Err(_)) | Err(_) if assembly.is_finished() => break,
            Ok(Err(_)) => return Err(AnswerFault::Unfinished.into()),
            Err(_) => return Err(silent()),
        }
        if assembly.is_done() {
            let _ = timeout(GOODBYE_MAX, response.chunk()).await;
            break;
        }
    }
    Ok(assembly.end()?)
}

fn silent() -> RequestFailure {
    let words = format!("no data for {} s", SILENCE_MAX.as_secs());
    RequestFailure::new(words, RetryAdvice::Later)
}

/// Reads the body up to the size and time limits.
async fn error_body(mut response: PooledResponse) -> String {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk[..chunk.len().min(ERROR_BYTES_MAX - body.len())]);
            if body.len() == ERROR_BYTES_MAX {
                break;
            }
        }
    };
    let _ = timeout(LAST_WORDS_MAX, reading).await;
    String::from_utf8_lossy(&body).into_owned()
}

/// Formats a server's text for use within ours.
fn one_line(text: &str) -> String {
    let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(WORDS_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use workflow::ResolvedOptions;

    use super::*;

    fn settings(url: String) -> ModelSettings {
        let (base_url, model) = (Some(url), Some("m".to_owned()));
        let options = ResolvedOptions { base_url, model, ..ResolvedOptions::default() };
        ModelSettings::new(&options, &[]).unwrap()
    }

    /// Ten minutes, four times over, on a simulated clock.
    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let settings = settings(format!("http://{}", listener.local_addr().unwrap()));
        let mut server = ModelServer::new(&settings).unwrap();
        let begun = Instant::now();
        let deadline = begun + Duration::from_secs(60 * 60);
        let fault = server.ask(&[], &[], deadline).await.unwrap_err();
        let said = "model server at 127.0.0.1: no data for 600 s; gave up after 4 attempts";
        assert_eq!(fault, said);
        assert!(begun.elapsed() >= SILENCE_MAX * 4);
    }

    #[tokio::test]
    async fn an_oversized_request_is_not_sent() {
        let settings = settings("http://127.0.0.1:1".to_owned());
        let mut server = ModelServer::new(&settings).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        let much = "x".repeat(REQUEST_BYTES_MAX);
        let fault = server.ask(&[much], &[], deadline).await.unwrap_err();
        assert!(fault.ends_with("bytes, too many for one request"), "{fault}");
    }

    #[test]
    fn truncation_never_leaves_part_of_a_key() {
        let key = "zebra-4711-violin-quagga";
        let (base_url, model) = (Some("http://127.0.0.1:1"), Some("m".to_owned()));
        let base_url = base_url.map(str::to_owned);
        let options = ResolvedOptions { base_url, model, ..ResolvedOptions::default() };
        let settings =
            ModelSettings::new(&options, &[("OPENAI_API_KEY".into(), key.into())]).unwrap();
        let server = ModelServer::new(&settings).unwrap();
        for before in 0..WORDS_CHARS_MAX {
            let said = format!("{}{key}", "x".repeat(before));
            let words = server
                .words(&RequestFailure { said, ..RequestFailure::new("no", RetryAdvice::Never) });
            assert!(!words.contains("zeb"), "{words}");
        }
    }

    #[test]
    fn server_messages_are_shortened_to_one_line() {
        assert_eq!(one_line(" a\r\n\tb \u{e9} "), "a b \u{e9}");
        assert_eq!(one_line(&"\u{e9}".repeat(400)).chars().count(), WORDS_CHARS_MAX + 1);
    }
}
