//! A closed loop of calls over the stdin and stdout of a server: several are under way at a time.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde::Deserialize;
use testkit::answer::expect_echo;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::client::INITIALIZE;
use super::load::{Burst, ToolCall, next_text};

pub(crate) struct PipeCrew {
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    clients: usize,
}

#[derive(Deserialize)]
struct Message {
    id: Option<u64>,
    method: Option<serde::de::IgnoredAny>,
}

impl PipeCrew {
    pub(crate) async fn start(command: &mut Command, clients: usize) -> Result<PipeCrew, String> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| error.to_string())?;
        let stdin = child.stdin.take().expect("stdin is piped");
        let lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let mut crew = PipeCrew { child, stdin, lines, clients };
        let hello = INITIALIZE.replace('\n', " ");
        crew.send(&format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{hello}}}"#))
            .await?;
        crew.answer().await?;
        crew.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await?;
        Ok(crew)
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    pub(crate) async fn work(&mut self, time: Duration, payload_bytes: usize) -> Burst {
        let mut burst = Burst::default();
        let started = Instant::now();
        if let Err(error) = self.call_until(started + time, payload_bytes, &mut burst).await {
            burst.add(Err(error));
        }
        burst.seconds = started.elapsed().as_secs_f64();
        burst
    }

    async fn call_until(
        &mut self,
        end: Instant,
        payload_bytes: usize,
        burst: &mut Burst,
    ) -> Result<(), String> {
        let mut waiting = HashMap::new();
        for _ in 0..self.clients {
            self.call(payload_bytes, &mut waiting).await?;
        }
        while !waiting.is_empty() {
            let (id, line) = self.answer().await?;
            let Some((word, since)) = waiting.remove(&id) else { continue };
            let took_us = Instant::elapsed(&since).as_secs_f64() * 1e6;
            burst.add(expect_echo(&line, id, &word).map(|()| took_us));
            if Instant::now() < end {
                self.call(payload_bytes, &mut waiting).await?;
            }
        }
        Ok(())
    }

    async fn call(
        &mut self,
        payload_bytes: usize,
        waiting: &mut HashMap<u64, (String, Instant)>,
    ) -> Result<(), String> {
        let (id, word, text) = next_text(payload_bytes);
        let params = ToolCall::Named("echo_read".to_owned()).params(&text);
        waiting.insert(id, (word, Instant::now()));
        self.send(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#
        ))
        .await
    }

    async fn send(&mut self, line: &str) -> Result<(), String> {
        let sent = self.stdin.write_all(format!("{line}\n").as_bytes()).await;
        sent.map_err(|error| error.to_string())
    }

    /// Returns the next response; the server's own messages are passed over.
    async fn answer(&mut self) -> Result<(u64, String), String> {
        loop {
            let line = self.lines.next_line().await.map_err(|error| error.to_string())?;
            let line = line.ok_or("the server has ended")?;
            let message = serde_json::from_str::<Message>(&line);
            if let Ok(Message { id: Some(id), method: None }) = message {
                return Ok((id, line));
            }
        }
    }
}
