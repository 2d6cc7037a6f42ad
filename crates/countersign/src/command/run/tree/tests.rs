//! Screens of a run, as they look at a moment.

use super::super::moment::RunStart;
use super::layout::columns_of;
use super::step::ITEMS_MAX;
use super::*;

const WIDE: Size = Size { columns: 60, rows: 24 };

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn began(step: u32, state: &str, root: &str, provider: Option<&str>) -> Moment {
    Moment::StepBegan(StepStart {
        step,
        state: state.to_owned(),
        root: Some(root.to_owned()),
        kind: if provider.is_some() { "agent" } else { "command" }.to_owned(),
        attempt: 1,
        provider: provider.map(str::to_owned),
        started_at: String::new(),
    })
}

fn call(step: u32, id: &str, tool: &str, target: &str, status: &str) -> Moment {
    Moment::Call(SeenCall {
        step,
        id: id.to_owned(),
        server: "workspace".to_owned(),
        tool: tool.to_owned(),
        target: Some(target.to_owned()).filter(|target| !target.is_empty()),
        status: status.to_owned(),
        error_code: (status == "error").then(|| "TIMEOUT".to_owned()),
        duration_ms: (status != "pending").then_some(12.0),
    })
}

fn text(step: u32, text: &str, begins: bool) -> Moment {
    Moment::Text { step, text: text.to_owned(), begins }
}

fn ended(step: u32, state: &str, status: &str) -> EndedStep {
    EndedStep {
        step,
        state: state.to_owned(),
        kind: "agent".to_owned(),
        attempt: 1,
        status: status.to_owned(),
        duration_ms: Some(3_400),
        ..EndedStep::default()
    }
}

/// Takes in the moments, a tenth of a second apart; returns the tree and the lines that stay.
fn told(moments: &[Moment], size: Size) -> (Tree, Vec<String>) {
    let mut tree = Tree::new(Colour::No);
    let mut lines = Vec::new();
    for (number, moment) in moments.iter().enumerate() {
        lines.extend(tree.on(moment, size, seconds(number as f64 / 10.0)));
    }
    (tree, lines)
}

/// An agent in the middle of its work, next to a command.
fn busy() -> Vec<Moment> {
    vec![
        began(1, "fix", "both", Some("claude")),
        began(2, "lint", "both", None),
        text(1, "I will look at the ", true),
        text(1, "tests first.", false),
        call(1, "a", "Read", "/srv/src/lib.rs", "pending"),
        call(1, "a", "Read", "/srv/src/lib.rs", "success"),
        call(1, "b", "Bash", "", "error"),
        text(1, "That failed. I try the command which the Makefile has, and then its parts.", true),
        Moment::Usage { step: 1, turns: 3, tokens: Some(1204), cost_usd: Some(0.0125) },
        Moment::Error { step: 1, message: "overloaded, retrying".to_owned() },
        call(1, "c", "Bash", "", "pending"),
        call(2, "d", "Bash", "", "pending"),
    ]
}

#[test]
fn a_frame_shows_running_steps_with_their_calls_and_texts() {
    let (tree, lines) = told(&busy(), WIDE);
    assert_eq!(lines, ["parallel   both"]);
    let expected = "  fix (claude)  12.3 s, 3 calls, 3 turns, 1204 tokens, $0.0…
    > I will look at the tests first.
    Read /srv/src/lib.rs  ok, 12 ms
    Bash  failed TIMEOUT, 12 ms
    > That failed. I try the command which the Makefile has,
    > and then its parts.
    error: overloaded, retrying
    Bash  running
  lint  12.2 s, 1 call";
    assert_eq!(tree.frame(WIDE, seconds(12.3)).join("\n"), expected);
}

#[test]
fn a_frame_fits_into_the_screen() {
    let (tree, _) = told(&busy(), WIDE);
    let small = tree.frame(Size { columns: 24, rows: 6 }, seconds(75.0)).join("\n");
    let expected = "  fix (claude)  1:15 mi…
    > parts.
    error: overloaded, …
    Bash  running
  lint  1:14 min, 1 call";
    assert_eq!(small, expected, "the last lines of each");
    for columns in [1, 2, 5, 20, 80] {
        for rows in [1, 2, 3, 8, 40] {
            let frame = tree.frame(Size { columns, rows }, seconds(1.0));
            assert!(frame.len() <= rows.saturating_sub(1).max(1), "{columns}x{rows}: {frame:?}");
            if columns >= 8 {
                let width = |line: &String| line.chars().map(columns_of).sum::<usize>();
                assert!(frame.iter().all(|line| width(line) <= columns), "{columns}: {frame:?}");
            }
        }
    }
    let many: Vec<Moment> = (1..=9).map(|number| began(number, "s", "p", None)).collect();
    let (tree, _) = told(&many, WIDE);
    let frame = tree.frame(Size { columns: 40, rows: 4 }, seconds(1.0));
    assert_eq!(frame, ["  s  1.0 s, 0 calls", "  s  0.9 s, 0 calls", "… 7 more running"]);
}

#[test]
fn an_ended_step_stays_with_what_it_did() {
    let mut moments = busy();
    moments.push(text(1, "one\ntwo\nthree\nfour\nfive", true));
    moments.push(call(1, "c", "Bash", "", "success"));
    let end = EndedStep {
        provider: Some("claude".to_owned()),
        calls: 3,
        tokens: Some(2_000),
        cost_usd: Some(0.02),
        ..ended(1, "fix", "success")
    };
    moments.push(Moment::StepEnded(Box::new(end)));
    let failed = EndedStep {
        kind: "command".to_owned(),
        calls: 1,
        error_code: Some("COMMAND_FAILED".to_owned()),
        error_message: Some("the command failed with exit code 2".to_owned()),
        stderr: Some((1..=12).map(|number| format!("line {number}\n\n")).collect()),
        ..ended(2, "lint", "failure")
    };
    moments.push(Moment::StepEnded(Box::new(failed)));
    moments.push(Moment::End(RunFinish {
        id: "01a1".to_owned(),
        workflow: "w".to_owned(),
        status: "failure".to_owned(),
        state: None,
        message: None,
        error_code: None,
        exit_code: Some(3),
    }));
    let (tree, lines) = told(&moments, WIDE);
    let expected = "\
parallel   both
  ok         fix (claude)  3.4 s, 3 calls, 2000 tokens, $0.0200
    > I will look at the tests first.
    Read /srv/src/lib.rs  ok, 12 ms
    Bash  failed TIMEOUT, 12 ms
    > That failed. I try the command which the Makefile has,
    > and then its parts.
    error: overloaded, retrying
    Bash  ok, 12 ms
    > one
    > two
    > three
    > … 2 more lines
  failed     lint  3.4 s, 1 call
             COMMAND_FAILED: the command failed with exit code 2
             stderr | line 3
             stderr | line 4
             stderr | line 5
             stderr | line 6
             stderr | line 7
             stderr | line 8
             stderr | line 9
             stderr | line 10
             stderr | line 11
             stderr | line 12
failed     run 01a1";
    assert_eq!(lines.join("\n"), expected);
    assert_eq!(tree.frame(WIDE, seconds(9.0)), Vec::<String>::new());
}

#[test]
fn without_a_screen_each_moment_is_a_line() {
    let mut tree = Tree::new(Colour::No);
    let run = RunStart {
        id: "2".to_owned(),
        workflow: "w".to_owned(),
        version: None,
        file: None,
        resumed_from: Some("1".to_owned()),
        started_at: String::new(),
    };
    let mut moments = vec![Moment::Run(run)];
    moments.extend(busy());
    moments.push(call(2, "d", "Bash", "", "success"));
    moments.push(Moment::StepEnded(Box::new(ended(1, "fix", "timed_out"))));
    let lines: Vec<String> =
        moments.iter().flat_map(|moment| tree.lines(moment, Duration::ZERO)).collect();
    let expected = "\
goes on from run 1
parallel   both
fix | I will look at the tests first.
fix | Read /srv/src/lib.rs  ok, 12 ms
fix | Bash  failed TIMEOUT, 12 ms
fix | That failed. I try the command which the Makefile has, and then its parts.
fix | error: overloaded, retrying
  timed out  fix  3.4 s";
    assert_eq!(lines.join("\n"), expected);
}

#[test]
fn a_text_in_pieces_is_shown_line_by_line() {
    let mut tree = Tree::new(Colour::No);
    tree.lines(&began(1, "fix", "fix", Some("claude")), Duration::ZERO);
    let mut lines = |piece: &str, begins: bool| tree.lines(&text(1, piece, begins), Duration::ZERO);
    assert_eq!(lines("On", true), Vec::<String>::new());
    assert_eq!(lines("e\ntwo\nth", false), ["fix | One", "fix | two"]);
    assert_eq!(lines("ree", true), ["fix | th"]);
    assert_eq!(lines(&"x".repeat(TEXT_BYTES_MAX), false).len(), 1, "a line is bounded");
    assert_eq!(lines("end", false), Vec::<String>::new());
    assert_eq!(tree.begun_lines(), ["fix | end"]);
    assert_eq!(tree.begun_lines(), Vec::<String>::new());
}

#[test]
fn a_probe_is_shown_in_every_form() {
    let (agent, version) = (Some("claude".to_owned()), "2.1.3".to_owned());
    let probe = Moment::Probe { step: Some(1), agent, version };
    let expected = ["checking that claude 2.1.3 is isolated"];
    assert_eq!(Tree::new(Colour::No).on(&probe, WIDE, Duration::ZERO), expected);
    assert_eq!(Tree::new(Colour::No).lines(&probe, Duration::ZERO), expected);
}

/// A terminal obeys control characters, wherever they come from.
#[test]
fn no_control_character_reaches_a_line() {
    let evil = "a\x1b]0;x\x07\x1b[2J\u{9b}31m\r\u{202e}b\tc";
    let moments = [
        began(1, evil, evil, Some(evil)),
        text(1, evil, true),
        call(1, "a", evil, evil, evil),
        Moment::Error { step: 1, message: evil.to_owned() },
    ];
    let (mut tree, mut lines) = told(&moments, WIDE);
    lines.extend(tree.frame(WIDE, seconds(1.0)));
    let end = EndedStep {
        provider: Some(evil.to_owned()),
        error_code: Some("X".to_owned()),
        error_message: Some(evil.to_owned()),
        stderr: Some(evil.to_owned()),
        ..ended(1, evil, "failure")
    };
    lines.extend(tree.on(&Moment::StepEnded(Box::new(end)), WIDE, seconds(1.0)));
    let mut other = Tree::new(Colour::No);
    lines.extend(moments.iter().flat_map(|moment| other.lines(moment, Duration::ZERO)));
    assert!(lines.len() > 10, "{lines:?}");
    for line in lines {
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
    }
}

#[test]
fn colours_are_outside_of_the_text() {
    let mut tree = Tree::new(Colour::Yes);
    tree.on(&began(1, "fix", "fix", Some("claude")), WIDE, Duration::ZERO);
    tree.on(&call(1, "a", "Read", "/a", "success"), WIDE, Duration::ZERO);
    let frame = tree.frame(WIDE, seconds(1.0));
    assert_eq!(frame, ["fix (claude)  1.0 s, 1 call", "  \x1b[2mRead /a  ok, 12 ms\x1b[0m"]);
    let lines =
        tree.on(&Moment::StepEnded(Box::new(ended(1, "fix", "failure"))), WIDE, seconds(2.0));
    assert_eq!(lines[0], "\x1b[31mfailed   \x1b[0m  fix  3.4 s");
}

#[test]
fn long_work_takes_bounded_memory() {
    let mut tree = Tree::new(Colour::No);
    tree.on(&began(1, "fix", "fix", Some("claude")), WIDE, Duration::ZERO);
    for number in 0..500 {
        tree.on(&call(1, &number.to_string(), "Read", "/a", "success"), WIDE, Duration::ZERO);
    }
    for _ in 0..1_000 {
        tree.on(&text(1, &"x".repeat(1_000), false), WIDE, Duration::ZERO);
    }
    let step = &tree.steps[&1];
    assert_eq!((step.items.len(), step.calls, step.dropped), (ITEMS_MAX, 500, 401));
    let Some(Item::Text(text)) = step.items.back() else { panic!() };
    assert!(text.len() <= TEXT_BYTES_MAX + 1_000);
    let lines =
        tree.on(&Moment::StepEnded(Box::new(ended(1, "fix", "success"))), WIDE, seconds(1.0));
    assert_eq!(lines[1], "  … 401 more before");
}
