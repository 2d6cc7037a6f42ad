//! `countersign runs list|show`.

use gateway::plan::Reach;
use jiff::Zoned;
use serde_json::Value;

use crate::cli::{Place, Runs};
use crate::control::{encode, get, with_query};
use crate::exit::Failure;
use crate::output::{self, cut, entries, fields, local_time, milliseconds, or_dash, table, text};

const PATH: &str = "/api/v1/runs";

/// An id begins with the time in milliseconds, which two runs seldom share.
const SHORT_ID: usize = "01a1de05-f636".len();

/// Names and messages can be as long as they like; JSON has all of them.
const NAME_WIDTH: usize = 40;
const ERROR_WIDTH: usize = 80;

pub(crate) async fn run(place: &Place, verb: Runs) -> Result<(), Failure> {
    match verb {
        Runs::List { status, workflow, rows, output } => {
            let filters = vec![("status", status), ("workflow", workflow)];
            let path = with_query(PATH, &[filters, rows.values()].concat());
            let answer = get(place, Reach::Nothing, &path).await?;
            output::print(output, &answer, |answer| list(answer, &Zoned::now()))?;
            output::tell_next(output, &answer, entries(&answer, "runs").len());
            Ok(())
        }
        Runs::Show { id, output } => {
            let path = format!("{PATH}/{}", encode(&id));
            let answer = get(place, Reach::Nothing, &path).await?;
            output::print(output, &answer, |run| show(run, &Zoned::now()))
        }
    }
}

fn list(answer: &Value, now: &Zoned) -> String {
    let row = |run: &Value| {
        vec![
            text(run, "id").chars().take(SHORT_ID).collect(),
            cut(&text(run, "workflow"), NAME_WIDTH),
            text(run, "status"),
            local_time(&text(run, "started_at"), now),
            milliseconds(&run["duration_ms"]),
            run["steps_total"].to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = entries(answer, "runs").iter().map(row).collect();
    if rows.is_empty() {
        return "no runs that fit".to_owned();
    }
    table(&["id", "workflow", "status", "started", "took", "steps"], &rows)
}

fn show(run: &Value, now: &Zoned) -> String {
    let steps = entries(run, "steps");
    let mut parts = vec![general(run)];
    if !steps.is_empty() {
        parts.push(step_table(steps));
    }
    let calls: Vec<Vec<String>> = steps.iter().flat_map(|step| call_rows(step, now)).collect();
    if !calls.is_empty() {
        parts.push(table(&["step", "time", "tool", "status", "took", "target", "id"], &calls));
    }
    parts.join("\n\n")
}

fn general(run: &Value) -> String {
    let version = match run["version"].as_str() {
        Some(version) => format!(" {version}"),
        None => String::new(),
    };
    let exit_code = match run["exit_code"].as_u64() {
        Some(code) => format!(" (exit code {code})"),
        None => String::new(),
    };
    let mut lines = vec![
        ("id", text(run, "id")),
        ("workflow", format!("{}{version}", text(run, "workflow"))),
        ("file", or_dash(&run["file"])),
        ("status", format!("{}{exit_code}", text(run, "status"))),
        ("message", or_dash(&run["message"])),
        ("started", text(run, "started_at")),
        ("took", milliseconds(&run["duration_ms"])),
        ("tokens", number(&run["tokens"])),
        ("cost", cost(&run["cost_usd"])),
        ("trace", or_dash(&run["trace_id"])),
    ];
    let (shown, total) = (entries(run, "steps").len(), run["steps_total"].as_u64());
    if let Some(total) = total.filter(|total| usize::try_from(*total).is_ok_and(|all| all > shown))
    {
        lines.push(("steps", format!("{total}, of which the last {shown} are shown")));
    }
    fields(&lines)
}

fn step_table(steps: &[Value]) -> String {
    let row = |step: &Value| {
        vec![
            number(&step["number"]),
            cut(&text(step, "state"), NAME_WIDTH),
            number(&step["attempt"]),
            match step["provider"].as_str() {
                Some(provider) => provider.to_owned(),
                None => text(step, "kind"),
            },
            text(step, "status"),
            milliseconds(&step["duration_ms"]),
            number(&step["tokens"]),
            number(&step["calls_total"]),
            cut(&error(step), ERROR_WIDTH),
        ]
    };
    let rows: Vec<Vec<String>> = steps.iter().map(row).collect();
    let head =
        ["step", "state", "attempt", "provider", "status", "took", "tokens", "calls", "error"];
    table(&head, &rows)
}

fn call_rows(step: &Value, now: &Zoned) -> Vec<Vec<String>> {
    let row = |call: &Value| {
        let status = match call["error_code"].as_str() {
            Some(code) => format!("{} {code}", text(call, "status")),
            None => text(call, "status"),
        };
        let target = match &call["target"] {
            Value::Null => "-".to_owned(),
            target => format!("{} {}", text(target, "system"), text(target, "resource")),
        };
        vec![
            number(&step["number"]),
            local_time(&text(call, "timestamp"), now),
            cut(&format!("{}:{}", text(call, "server_name"), text(call, "tool_name")), NAME_WIDTH),
            status,
            milliseconds(&call["duration_ms"]),
            cut(&target, ERROR_WIDTH),
            text(call, "id"),
        ]
    };
    entries(step, "calls").iter().map(row).collect()
}

fn error(step: &Value) -> String {
    match (step["error_code"].as_str(), step["error_message"].as_str()) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(word), None) | (None, Some(word)) => word.to_owned(),
        (None, None) => "-".to_owned(),
    }
}

fn number(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".to_owned(), |number| number.to_string())
}

fn cost(value: &Value) -> String {
    value.as_f64().map_or_else(|| "-".to_owned(), |dollars| format!("${dollars:.4}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
             "status": "timed_out", "duration_ms": 9_000.0, "tokens": 1200, "calls_total": 150,
             "error_code": "TIMEOUT", "error_message": "too\nlate", "calls": [call]},
            {"number": 2, "state": "test", "kind": "command", "attempt": 1, "provider": null,
             "status": "success", "duration_ms": 20.0, "tokens": null, "calls_total": 0,
             "error_code": null, "error_message": null, "calls": []},
        ])
    }

    fn run() -> Value {
        json!({"id": "01a1de05-f636-7275-a785-685f5814b426", "workflow": "deploy\u{1b}",
            "version": "1.0", "file": "/flow.yaml", "pid": 7, "status": "failure",
            "message": "no luck", "exit_code": 3, "started_at": "2026-02-03T09:08:07.123Z",
            "ended_at": "2026-02-03T09:08:17.123Z", "duration_ms": 10_000.0, "trace_id": null,
            "steps_total": 2, "tokens": 1200, "cost_usd": 0.05, "steps": steps()})
    }

    #[test]
    fn a_line_says_what_became_of_a_run() {
        let shown = list(&json!({"runs": [run()]}), &now());
        let line = "01a1de05-f636  deploy\u{fffd}   failure  09:08:07  10.0 s  2";
        assert_eq!(shown.lines().nth(1), Some(line), "{shown}");
        assert_eq!(list(&json!({"runs": []}), &now()), "no runs that fit");
    }

    #[test]
    fn a_run_is_shown_with_its_steps_and_their_calls() {
        let shown = show(&run(), &now());
        for line in [
            "workflow  deploy\u{fffd} 1.0",
            "status    failure (exit code 3)",
            "cost      $0.0500",
            "1     ask    1        claude    timed_out  9.0 s  1200    150    TIMEOUT: too late",
            "2     test   1        command   success    20 ms  -       0      -",
            "1     09:08:08  files:Read  error TIMEOUT  1.5 ms  filesystem /a  0197",
        ] {
            assert!(shown.lines().any(|found| found == line), "{line}\n---\n{shown}");
        }
        assert!(!shown.contains("of which"), "{shown}");
        let mut long = run();
        long["steps_total"] = 1_500.into();
        assert!(show(&long, &now()).contains("steps     1500, of which the last 2 are shown"));
    }
}
