//! A run as a person sees it while it happens and afterwards: the screen, the events, the record,
//! and another process that watches.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::model::{ModelAnswer, Then, Turn};
use testkit::program::{run, stderr, stdout};
use testkit::run::is_long_or_skipped;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::agents::stage::{PATIENCE, Stage, ended};
use crate::agents::{ours, say};

/// An agent that says something, waits for the file `go`, and ends.
pub(crate) const TALKS: &str = r#"
line() { printf '%s\n' "$1"; }
line '{"type":"system","subtype":"init","model":"m-1"}'
line '{"type":"assistant","message":{"id":"1","usage":{"input_tokens":10,"output_tokens":5},"content":[{"type":"text","text":"I look at it\u001b[2J first."}]}}'
while [ ! -e "$HOME_OF_GATE/../go" ]; do sleep 0.05; done
line '{"type":"assistant","message":{"id":"2","usage":{"input_tokens":20,"output_tokens":5},"content":[{"type":"text","text":"All is well."}]}}'
line '{"type":"result","subtype":"success","is_error":false,"result":"All is well.","usage":{"input_tokens":30,"output_tokens":10},"total_cost_usd":0.25}'
"#;

/// Writes a workflow with one agent, a script in the place of Claude, that may use all its tools.
fn flow_of(stage: &Stage, script: &str, options: Value) -> PathBuf {
    let mut step = stage.step_with(&json!({"enable": false}), &stage.fake_claude(script));
    for (name, value) in options.as_object().into_iter().flatten() {
        step["options"][name] = value.clone();
    }
    stage.flow_of(json!({"initial": "task", "task": step}))
}

pub(crate) fn go(stage: &Stage) {
    std::fs::write(stage.dir().join("go"), "").unwrap();
}

/// The output of a program, line by line, while it runs.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Running { child, lines }
    }

    pub(crate) async fn next(&mut self) -> Option<String> {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        line.expect("a line comes").unwrap()
    }

    /// Reads lines up to one that contains the words.
    pub(crate) async fn until(&mut self, words: &str) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(line) = self.next().await {
            let is_it = line.contains(words);
            seen.push(line);
            if is_it {
                return seen;
            }
        }
        panic!("no '{words}' in {seen:#?}");
    }

    pub(crate) async fn rest(mut self) -> (Option<i32>, Vec<String>) {
        let mut seen = Vec::new();
        while let Some(line) = self.next().await {
            seen.push(line);
        }
        (self.child.wait().await.unwrap().code(), seen)
    }
}

fn json_of(line: &String) -> Value {
    serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))
}

/// The frame shows the agent's words while it works; they are no command to the terminal.
#[tokio::test]
async fn a_terminal_shows_a_run_while_it_happens() {
    let stage = Stage::new("claude", []).await;
    let mut step = stage.step_with(&json!({"enable": false}), &stage.fake_claude(TALKS));
    step["on_success"] = json!("check");
    let check = json!({"type": "step", "command": "echo oh no >&2; exit 3", "on_success": "done"});
    let flow = stage.flow_of(json!({"initial": "task", "task": step, "check": check}));
    let typed = format!("{} run {}", env!("CARGO_BIN_EXE_countersign"), flow.display());
    let terminal = |colour: bool| {
        // Gives its command a terminal.
        let mut command = stage.countersign_at("/usr/bin/script".as_ref(), "-qec");
        command.arg(&typed).arg("/dev/null").env("TERM", "xterm");
        if !colour {
            command.env("NO_COLOR", "1");
        }
        command
    };
    let mut running = Running::start(terminal(false));
    let frame = running.until("> I look at it").await;
    assert!(frame.iter().any(|line| line.contains("task (claude)")), "{frame:?}");
    go(&stage);
    let (code, rest) = running.rest().await;
    assert_eq!(code, Some(3), "{rest:?}");
    let shown = format!("{}\n{}", frame.join("\n"), rest.join("\n"));
    for words in [
        "\r\x1b[J",
        "1 turn, 15 tokens",
        "ok         task (claude)",
        "40 tokens, $0.2500",
        "  > All is well.",
        "failed     check",
        "COMMAND_FAILED: the command failed with exit code 3",
        "stderr | oh no",
        "failed     run ",
    ] {
        assert!(shown.contains(words), "{words}: {shown:?}");
    }
    assert!(!shown.contains("\x1b[2J") && !shown.contains("\x1b[32m"), "{shown:?}");
    let (_, lines) = Running::start(terminal(true)).rest().await;
    assert!(lines.iter().any(|line| line.contains("\x1b[32mok")), "{lines:?}");
}

/// Each event is printed when it happens, not at the end.
#[tokio::test]
async fn smoke_events_are_printed_as_they_happen() {
    let stage = Stage::new("claude", []).await;
    let flow = flow_of(&stage, TALKS, json!({}));
    let mut running = Running::start(stage.command(&flow, &["-o", "jsonl"]));
    let mut lines = running.until(r#""type":"text""#).await;
    go(&stage);
    let (code, rest) = running.rest().await;
    assert_eq!(code, Some(0));
    lines.extend(rest);
    let events: Vec<Value> = lines.iter().map(json_of).collect();
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let expected =
        ["run", "step_began", "usage", "text", "usage", "text", "usage", "step_ended", "end"];
    assert_eq!(types, expected, "{lines:#?}");
    assert_eq!(events[3]["text"], "I look at it\u{1b}[2J first.");
    assert!(!lines.iter().any(|line| line.contains('\x1b')), "{lines:?}");
    assert_eq!(events[2]["tokens"], 15, "{}", events[2]);
    assert_eq!(
        (&events[6]["turns"], &events[6]["cost_usd"]),
        (&json!(2), &json!(0.25)),
        "{}",
        events[6]
    );
    assert_eq!(
        (&events[7]["output"], &events[7]["step"]),
        (&json!("All is well."), &json!(1)),
        "{}",
        events[7]
    );
    let end = &events[8];
    assert_eq!(
        (&end["status"], &end["exit_code"], &end["state"]),
        (&json!("success"), &json!(0), &json!("done"))
    );
}

/// An agent's calls appear with their targets and outcomes, between its texts, while it works
/// and in the record.
#[tokio::test]
async fn calls_and_texts_are_told_in_their_order() {
    let turns = [
        ours("Read", json!({"path": "a.txt"})),
        ours("Bash", json!({"command": "exit 4"})),
        say("all done"),
    ];
    let stage = Stage::scripted(turns).await;
    let mut step = stage.step(&json!({"enable": true}));
    step["on_success"] = json!("check");
    let check = json!({"type": "step", "command": "echo printed; echo complained >&2", "on_success": "done"});
    let flow = stage.flow_of(json!({"initial": "task", "task": step, "check": check}));
    let output = stage.run(&flow, &["-o", "jsonl"]).await;
    let lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    assert_eq!(output.status.code(), Some(0), "{lines:#?}{}", stderr(&output));
    let told: Vec<String> = lines
        .iter()
        .map(json_of)
        .filter_map(|event| match event["type"].as_str().unwrap() {
            "call" if event["status"] == "pending" => None,
            "call" => Some(format!("{} {} {}", event["step"], event["tool"], event["status"])),
            "text" => Some(format!("{} {}", event["step"], event["text"])),
            "step_ended" => Some(format!("{} ended", event["step"])),
            _ => None,
        })
        .collect();
    let expected = [
        r#"1 "Read" "success""#,
        r#"1 "Bash" "error""#,
        r#"1 "all done""#,
        "1 ended",
        r#"2 "Bash" "success""#,
        "2 ended",
    ];
    let mut sorted = told.clone();
    sorted.sort();
    let mut wanted = expected.map(str::to_owned).to_vec();
    wanted.sort();
    assert_eq!(sorted, wanted, "{told:#?}");
    let place = |words: &str| told.iter().position(|it| it == words).unwrap();
    assert!(place(expected[0]) < place(expected[1]) && place(expected[1]) < place("1 ended"));
    assert!(place(expected[4]) < place("2 ended"), "{told:#?}");
    let read = lines.iter().map(json_of).find(|event| event["tool"] == "Read").unwrap();
    assert_eq!(read["target"], json!(stage.workspace().join("a.txt")), "{read}");

    let told = stage.last_run().await;
    let step = &told["steps"][0];
    assert_eq!(step["texts"][0]["text"], "all done", "{step}");
    assert!(step["texts"][0]["timestamp"].as_str() > step["calls"][1]["timestamp"].as_str());
    let check = &told["steps"][1];
    assert_eq!((&check["output"], &check["stderr"]), (&json!("printed\n"), &json!("complained\n")));
    let id = told["id"].as_str().unwrap();
    let shown = stdout(&run(stage.dir(), ["runs", "show", id]).await);
    let story: Vec<&str> = shown.lines().skip_while(|line| !line.starts_with("step 1: ")).collect();
    let parts = [
        "step 1: task (claude), success",
        "workspace:Read  success",
        "workspace:Bash  failed",
        "> all done",
        "step 2: check, success",
        "workspace:Bash",
        "stdout | printed",
        "stderr | complained",
    ];
    let mut from = 0;
    for part in parts {
        let at = story[from..].iter().position(|line| line.contains(part));
        from += at.unwrap_or_else(|| panic!("{part} after line {from}: {shown}")) + 1;
    }
}

/// Node prints a stack after its message.
#[tokio::test]
async fn a_crash_is_told_by_its_first_error() {
    let stage = Stage::new("claude", []).await;
    let crash = r#"
cat >&2 <<'END'
node:internal/modules/cjs/loader:1215
  throw err;
  ^

Error: Cannot find module '/opt/claude/cli.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1212:15)
END
i=0; while [ $i -lt 200 ]; do echo "    at frame$i (x.js:$i:1)" >&2; i=$((i+1)); done
echo "Node.js v22.22.0" >&2
exit 1
"#;
    let flow = flow_of(&stage, crash, json!({}));
    let (told, words) = stage.run_json(&flow, &[]).await;
    let message = told["steps"][0]["error_message"].as_str().unwrap();
    assert_eq!(
        message,
        "the agent exited without a result; stderr: Error: Cannot find module \
         '/opt/claude/cli.js' | Node.js v22.22.0",
        "{words}"
    );
}

/// An agent that never stops on its own.
const ENDLESS: &str = r#"
line() { printf '%s\n' "$1"; }
line '{"type":"system","subtype":"init","model":"m-1"}'
n=0
while true; do
  n=$((n+1))
  line '{"type":"assistant","message":{"id":"'$n'","usage":{"input_tokens":10,"output_tokens":5},"content":[{"type":"text","text":"turn '$n'"}]}}'
  sleep 0.05
done
"#;

/// An agent that tells its cost at the end, as Claude does.
const COSTLY: &str = r#"
printf '%s\n' '{"type":"result","subtype":"success","is_error":false,"result":"done","usage":{"input_tokens":30,"output_tokens":10},"total_cost_usd":0.25}'
"#;

#[tokio::test]
async fn an_agent_beyond_a_limit_is_ended() {
    for (script, options, words, said) in [
        (ENDLESS, json!({"max_turns": 3}), "began turn 4, beyond max_turns (3)", "turn "),
        (ENDLESS, json!({"max_tokens": 40}), "used 45 tokens, beyond max_tokens (40)", "turn "),
        (
            COSTLY,
            json!({"max_cost_usd": 0.2}),
            "cost $0.2500, beyond max_cost_usd ($0.2000)",
            "done",
        ),
    ] {
        let stage = Stage::new("claude", []).await;
        let flow = flow_of(&stage, script, options);
        let (told, all) = stage.run_json(&flow, &[]).await;
        let step = &told["steps"][0];
        assert_eq!(
            (&step["status"], &step["error_code"]),
            (&json!("failure"), &json!("AGENT_LIMIT")),
            "{all}"
        );
        assert!(step["error_message"].as_str().unwrap().contains(words), "{all}");
        assert!(step["output"].as_str().unwrap().starts_with(said), "what it said is kept: {all}");
        assert!(step["tokens"].as_u64().is_some(), "{all}");
        stage.assert_nothing_left().await;
    }
    let enough = json!({"max_turns": 1000, "max_tokens": 1000, "max_cost_usd": 1.0});
    let stage = Stage::new("claude", []).await;
    let (told, all) = stage.run_json(&flow_of(&stage, COSTLY, enough), &[]).await;
    assert_eq!(told["status"], "success", "{all}");
}

/// The output of a model that never stops calling tools.
fn endless_calls() -> impl Iterator<Item = Turn> {
    (0..60).map(|_| ours("Read", json!({"path": "a.txt"})))
}

/// Asserts that a step is ended at a limit, long before its model would end it.
async fn keeps_to(stage: Stage, limit: &str, most: u64) {
    let mut step = stage.step(&json!({"enable": true}));
    step["options"][limit] = json!(most);
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let (told, all) = stage.run_json(&flow, &[]).await;
    let step = &told["steps"][0];
    assert_eq!(step["error_code"], "AGENT_LIMIT", "{all}");
    assert!(step["error_message"].as_str().unwrap().contains(limit), "{all}");
    assert!(step["calls"].as_u64().unwrap() < 20, "{all}");
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn an_agent_whose_model_never_stops_keeps_to_its_limits() {
    keeps_to(Stage::scripted(endless_calls()).await, "max_turns", 3).await;
    keeps_to(Stage::new("openai_compatible", endless_calls()).await, "max_tokens", 40).await;
}

#[tokio::test]
async fn long_real_agents_keep_to_their_limits() {
    if !is_long_or_skipped() {
        return;
    }
    for provider in ["claude", "codex", "gemini"] {
        keeps_to(Stage::new(provider, endless_calls()).await, "max_turns", 3).await;
    }
}

/// Claude tells its cost only at the end, but keeps to a budget itself.
#[tokio::test]
async fn long_claude_spends_no_more_than_its_budget() {
    if !is_long_or_skipped() {
        return;
    }
    let stage = Stage::new("claude", endless_calls()).await;
    let mut step = stage.step(&json!({"enable": true}));
    step["options"]["max_cost_usd"] = json!(0.000_1);
    let flow = stage.flow_of(json!({"initial": "task", "task": step}));
    let (told, all) = stage.run_json(&flow, &[]).await;
    let step = &told["steps"][0];
    assert_eq!(step["error_code"], "AGENT_LIMIT", "{all}");
    assert!(step["error_message"].as_str().unwrap().contains("beyond max_cost_usd"), "{all}");
    let asked = stage.model.turns().len();
    assert!(asked < 4, "{asked} requests: {all}");
    stage.assert_nothing_left().await;
}

/// Prints half a sentence as Claude Code does, word by word, and nothing more.
const HALF_A_SENTENCE: &str = r#"
piece() { printf '{"type":"stream_event","event":%s}\n' "$1"; }
piece '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'
piece '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I look "}}'
piece '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"at the"}}'
exec sleep 1000"#;

/// Returns the response of a model that says the same and then falls silent.
fn half_a_sentence() -> Turn {
    let usage = json!({"input_tokens": 10, "output_tokens": 1});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "m-1",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    let block = json!({"type": "text", "text": ""});
    let piece = |text: &str| {
        let delta = json!({"type": "text_delta", "text": text});
        json!({"type": "content_block_delta", "index": 0, "delta": delta})
    };
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        piece("I look "),
        piece("at the"),
    ];
    Turn::Raw(ModelAnswer::events(&events).then(Then::Silence))
}

/// Asserts that half a sentence is shown, and ends the run.
async fn is_shown_before_it_is_complete(stage: &Stage, flow: &Path) {
    let mut running = Running::start(stage.command(flow, &["-o", "jsonl"]));
    let mut said = String::new();
    while said != "I look at the" {
        let line = running.until(r#""type":"text""#).await.pop().unwrap();
        let event = json_of(&line);
        assert_eq!(event["begins"], said.is_empty(), "{line}");
        said.push_str(event["text"].as_str().unwrap());
    }
    let run = rustix::process::Pid::from_raw(running.child.id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(run, rustix::process::Signal::INT).unwrap();
    let (code, _) = running.rest().await;
    assert_eq!(code, Some(130));
    stage.assert_nothing_left().await;
}

#[tokio::test]
async fn a_text_is_shown_before_it_is_complete() {
    let stage = Stage::new("claude", []).await;
    let flow = flow_of(&stage, HALF_A_SENTENCE, json!({}));
    is_shown_before_it_is_complete(&stage, &flow).await;
}

#[tokio::test]
async fn long_a_text_of_claude_is_shown_before_it_is_complete() {
    if is_long_or_skipped() {
        let stage = Stage::new("claude", [half_a_sentence()]).await;
        let flow = stage.flow(&json!({"enable": true}));
        is_shown_before_it_is_complete(&stage, &flow).await;
    }
}

#[tokio::test]
async fn another_process_watches_a_run_until_it_ends() {
    let stage = Stage::new("claude", []).await;
    let flow = flow_of(&stage, TALKS, json!({}));
    let watch = |args: &[&str]| {
        let mut command = stage.countersign("runs");
        command.arg("watch").args(args);
        command
    };
    let output = ended(watch(&[])).await;
    assert!(!output.status.success(), "no home yet: {}", stderr(&output));
    let mut running = Running::start(stage.command(&flow, &["-o", "jsonl"]));
    let first = json_of(&running.next().await.unwrap());
    running.until(r#""type":"text""#).await;
    let id = first["id"].as_str().unwrap();
    let mut events = Running::start(watch(&["-o", "jsonl"]));
    let mut lines = Running::start(watch(&[id]));
    events.until(r#""type":"step_began""#).await;
    go(&stage);
    let (code, seen) = events.rest().await;
    assert_eq!(code, Some(0), "{seen:?}");
    let types: Vec<String> =
        seen.iter().map(|line| json_of(line)["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(types, ["text", "text", "step_ended", "end"], "{seen:#?}");
    assert_eq!(json_of(&seen[3])["status"], "success");
    lines.until("task | All is well.").await;
    let (code, rest) = lines.rest().await;
    assert_eq!(code, Some(0));
    assert!(rest[0].starts_with("ok         task (claude)"), "{rest:?}");
    assert_eq!(rest[1], format!("success    run {id}"));
    running.rest().await;
    let output = ended(watch(&[])).await;
    assert!(stderr(&output).contains("no run is running"), "{}", stderr(&output));
    let output = ended(watch(&[&id[..13]])).await;
    assert!(stdout(&output).contains("ok         task"), "a run that has ended is shown at once");
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_below(&path));
        } else if path.is_file() {
            found.push(path);
        }
    }
    found
}

/// Text, stderr, output and inputs of a run are kept; the secrets in them are not.
#[tokio::test]
async fn no_secret_of_a_run_is_kept() {
    let stage = Stage::new("claude", []).await;
    let secrets: Vec<String> =
        (0..5).map(|number| format!("ghp_{number}bcdefghijABCDEFGHIJ0123456789klmno1")).collect();
    let script = format!(
        r#"
line() {{ printf '%s\n' "$1"; }}
echo 'token {0}' >&2
line '{{"type":"assistant","message":{{"id":"1","content":[{{"type":"text","text":"I found {1} there."}}]}}}}'
line '{{"type":"result","subtype":"success","is_error":false,"result":"It is {2}."}}'
"#,
        secrets[0], secrets[1], secrets[2]
    );
    let mut step = stage.step_with(&json!({"enable": false}), &stage.fake_claude(&script));
    step["on_success"] = json!("check");
    let check =
        json!({"type": "step", "command": format!("echo {}", secrets[3]), "on_success": "done"});
    let states = json!({"initial": "task", "task": step, "check": check,
        "done": {"type": "terminal", "status": "success"}});
    let inputs = json!([{"name": "key"}, {"name": "env"}]);
    let flow = stage.dir().join("flow.yaml");
    std::fs::write(&flow, json!({"name": "flow", "inputs": inputs, "states": states}).to_string())
        .unwrap();
    let key = format!("key={}", secrets[4]);
    let output = stage.run(&flow, &["-i", &key, "-i", "env=staging-7"]).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = stage.last_run().await.to_string();
    assert!(told.contains("I found ") && told.contains(" there."), "{told}");
    let mut bytes = Vec::new();
    for file in files_below(&stage.home()) {
        bytes.extend(std::fs::read(file).unwrap());
    }
    let kept = String::from_utf8_lossy(&bytes);
    assert!(kept.contains("staging-7"), "other inputs are kept");
    for secret in &secrets {
        assert!(!kept.contains(secret.as_str()), "{secret}");
    }
}
