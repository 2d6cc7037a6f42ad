//! `countersign runs list|show|watch`.

mod story;
mod watch;

use admin::view::{RunEntry, RunPage, StepEntry};
use gateway::plan::Reach;
use jiff::Zoned;

use crate::cli::Runs;
use crate::control::{encode, get, with_query};
use crate::exit::Failure;
use crate::output::status::spoken;
use crate::output::{self, Rest, cut, fields, local_time, milliseconds, or_dash, table};
use crate::site::Site;

const PATH: &str = "/api/v1/runs";

/// The length of a shortened id. An id begins with the time in milliseconds, which two runs seldom
/// share.
const SHORT_ID: usize = "01a1de05-f636".len();

/// The width of names and messages, which can be of any length; the JSON has them in full.
const NAME_WIDTH: usize = 40;
const ERROR_WIDTH: usize = 80;

pub(crate) async fn run(site: &Site, verb: Runs) -> Result<(), Failure> {
    site.home()?.must_exist()?;
    match verb {
        Runs::List { status, workflow, rows, output } => {
            let filters = vec![("status", status), ("workflow", workflow)];
            let path = with_query(PATH, &[filters, rows.values()].concat());
            let answer = get(site, Reach::Nothing, &path).await?;
            let list = |page: &RunPage| list(&page.runs, &Zoned::now());
            if let Some(page) = output::answer(output, &answer, list)? {
                Rest {
                    shown: page.runs.len(),
                    total: page.total,
                    is_exact: page.total_is_exact,
                    next_cursor: page.next_cursor.as_deref(),
                }
                .tell();
            }
            Ok(())
        }
        Runs::Show { id, output } => {
            let path = format!("{PATH}/{}", encode(&id));
            let answer = get(site, Reach::Nothing, &path).await?;
            output::answer(output, &answer, |run| show(run, &Zoned::now())).map(|_| ())
        }
        Runs::Watch { id, output } => watch::run(site, id, output).await,
    }
}

fn list(runs: &[RunEntry], now: &Zoned) -> String {
    if runs.is_empty() {
        return "no matching runs".to_owned();
    }
    let row = |run: &RunEntry| {
        vec![
            run.id.chars().take(SHORT_ID).collect(),
            cut(&run.workflow, NAME_WIDTH),
            spoken(&run.status).to_owned(),
            local_time(&run.started_at, now),
            milliseconds(run.duration_ms),
            run.steps_total.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    table(&["id", "workflow", "status", "started", "took", "steps"], &rows)
}

fn show(run: &RunEntry, now: &Zoned) -> String {
    let steps = run.steps.as_deref().unwrap_or_default();
    let mut parts = vec![general(run, steps.len())];
    if !steps.is_empty() {
        parts.push(step_table(steps));
    }
    parts.extend(story::stories(steps, now));
    parts.join("\n\n")
}

fn general(run: &RunEntry, steps_shown: usize) -> String {
    let version = run.version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let exit_code = run.exit_code.map(|code| format!(" (exit code {code})")).unwrap_or_default();
    let mut lines = vec![
        ("id", run.id.clone()),
        ("workflow", format!("{}{version}", run.workflow)),
        ("file", or_dash(run.file.as_deref())),
        ("resumes", or_dash(run.resumed_from.as_deref())),
        ("status", format!("{}{exit_code}", spoken(&run.status))),
        ("message", or_dash(run.message.as_deref())),
        ("started", run.started_at.clone()),
        ("took", milliseconds(run.duration_ms)),
        ("tokens", number(run.tokens)),
        ("cost", cost(run.cost_usd)),
        ("trace", or_dash(run.trace_id.as_deref())),
        ("signed", "no: only the calls of its steps have receipts".to_owned()),
    ];
    if run.steps_total > steps_shown as u64 {
        let steps = format!("{} (the last {steps_shown} are shown)", run.steps_total);
        lines.push(("steps", steps));
    }
    fields(&lines)
}

fn step_table(steps: &[StepEntry]) -> String {
    let row = |step: &StepEntry| {
        vec![
            step.number.to_string(),
            cut(&step.state, NAME_WIDTH),
            step.attempt.to_string(),
            step.provider.clone().unwrap_or_else(|| step.kind.clone()),
            spoken(&step.status).to_owned(),
            milliseconds(step.duration_ms),
            number(step.tokens),
            number(step.calls_total),
            cut(&error(step), ERROR_WIDTH),
        ]
    };
    let rows: Vec<Vec<String>> = steps.iter().map(row).collect();
    let head =
        ["step", "state", "attempt", "provider", "status", "took", "tokens", "calls", "error"];
    table(&head, &rows)
}

fn error(step: &StepEntry) -> String {
    match (&step.error_code, &step.error_message) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(word), None) | (None, Some(word)) => word.clone(),
        (None, None) => "-".to_owned(),
    }
}

fn number(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

fn cost(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |dollars| format!("${dollars:.4}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn now() -> Zoned {
        "2026-02-03T12:00:00+00:00[UTC]".parse().unwrap()
    }

    fn steps() -> Value {
        let call = json!({"id": "0197", "server_name": "files", "tool_name": "Read",
            "status": "error", "error_code": "TIMEOUT", "duration_ms": 1.5,
            "timestamp": "2026-02-03T09:08:08Z",
            "target": {"system": "filesystem", "resource": "/a"}});
        json!([
            {"number": 1, "state": "ask", "kind": "agent", "attempt": 1, "provider": "claude",
             "started_at": "2026-02-03T09:08:07.123Z", "sessions": [], "status": "timed_out", "duration_ms": 9_000.0, "tokens": 1200, "calls_total": 150,
             "error_code": "TIMEOUT", "error_message": "too\nlate", "calls": [call], "output": "and I",
             "stderr": "Killed\n", "texts": [
                {"timestamp": "2026-02-03T09:08:07.500Z", "kind": "text", "text": "I look\u{1b}[1m.\nCarefully."},
                {"timestamp": "2026-02-03T09:08:09.500Z", "kind": "text", "text": "and I"},
                {"timestamp": "2026-02-03T09:08:09.600Z", "kind": "error", "text": "overloaded"}]},
            {"number": 2, "state": "test", "kind": "command", "attempt": 1, "provider": null,
             "started_at": "2026-02-03T09:08:07.123Z", "sessions": [], "status": "success", "duration_ms": 20.0, "tokens": null, "calls_total": 0,
             "error_code": null, "error_message": null, "calls": [], "output": "1 passed\n"},
        ])
    }

    fn run() -> RunEntry {
        let run = json!({"id": "01a1de05-f636-7275-a785-685f5814b426", "workflow": "deploy\u{1b}",
            "version": "1.0", "file": "/flow.yaml", "pid": 7, "status": "failure",
            "message": "no luck", "exit_code": 3, "started_at": "2026-02-03T09:08:07.123Z",
            "ended_at": "2026-02-03T09:08:17.123Z", "duration_ms": 10_000.0, "trace_id": null,
            "steps_total": 2, "tokens": 1200, "cost_usd": 0.05, "steps": steps()});
        output::read(&run).unwrap()
    }

    #[test]
    fn a_run_is_listed_with_its_outcome() {
        let shown = list(&[run()], &now());
        let line = "01a1de05-f636  deploy⟨U+001B⟩  failed  09:08:07  10.0 s  2";
        assert_eq!(shown.lines().nth(1), Some(line), "{shown}");
        assert_eq!(list(&[], &now()), "no matching runs");
    }

    #[test]
    fn a_run_is_shown_with_its_steps_and_their_calls() {
        let shown = show(&run(), &now());
        for line in [
            "workflow  deploy⟨U+001B⟩ 1.0",
            "status    failed (exit code 3)",
            "cost      $0.0500",
            "signed    no: only the calls of its steps have receipts",
            "1     ask    1        claude    timed out  9.0 s  1200    150    TIMEOUT: too late",
            "2     test   1        command   success    20 ms  -       0      -",
        ] {
            assert!(shown.lines().any(|found| found == line), "{line}\n---\n{shown}");
        }
        let story = "\
step 1: ask (claude), timed out
  … 149 earlier calls: see 'countersign activity list'
  09:08:07  > I look⟨U+001B⟩[1m.
            > Carefully.
  09:08:08  files:Read  failed TIMEOUT  1.5 ms  filesystem /a  0197
  09:08:09  > and I
  09:08:09  ! overloaded
  stderr | Killed

step 2: test, success
  stdout | 1 passed";
        assert!(shown.ends_with(story), "{shown}");
        assert!(!shown.contains("are shown"), "{shown}");
        let mut long = run();
        long.steps_total = 1_500;
        assert!(show(&long, &now()).contains("steps     1500 (the last 2 are shown)"));
    }
}
