//! Runs of workflows: begun, ended, listed, lost and deleted.

use std::collections::BTreeSet;

use domain::tool::Class;
use jiff::{SignedDuration, Timestamp};
use redact::Redactor;
use serde_json::json;
use store::read::{IdKind, LedgerChange, Page, RunFilter};
use store::run::{
    RunEnd, RunRecord, RunSource, RunStatus, StateOutcome, StepRecord, StepStatus, StepText,
};
use store::{Store, StoreError};

use super::support::{Home, call, db};

/// Returns the time as the store reads it back.
fn kept(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap()
}

fn run(workflow: &str) -> RunRecord {
    RunRecord {
        id: uuid::Uuid::now_v7().to_string(),
        workflow: workflow.to_owned(),
        version: Some("1.0".to_owned()),
        file: Some("/srv/flow.yaml".to_owned()),
        pid: std::process::id(),
        started_at: kept(Timestamp::now()),
        ended_at: None,
        status: RunStatus::Running,
        message: None,
        exit_code: None,
        trace_id: Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned()),
        resumed_from: None,
    }
}

fn step(run: &RunRecord, number: u32) -> StepRecord {
    StepRecord {
        provider: Some("claude".to_owned()),
        isolation: Some("full".to_owned()),
        ..StepRecord::begun(&run.id, number, "agent", "refactor", run.started_at)
    }
}

fn ended(step: StepRecord) -> StepRecord {
    StepRecord {
        model: Some("sonnet".to_owned()),
        status: StepStatus::TimedOut,
        ended_at: Some(step.started_at + SignedDuration::from_millis(1_500)),
        exit_code: Some(-9),
        tokens: Some(1 << 40),
        cost_usd: Some(0.125),
        error_code: Some("TIMEOUT".to_owned()),
        error: Some("it took too long".to_owned()),
        output: Some("half of \"it\"\n".to_owned()),
        stderr: Some("no more".to_owned()),
        root: Some("both".to_owned()),
        visit: 3,
        sessions: vec!["s1".to_owned(), "s2".to_owned()],
        ..step
    }
}

fn end(status: RunStatus) -> RunEnd {
    let at = Timestamp::UNIX_EPOCH;
    RunEnd { status, message: Some("no luck".to_owned()), exit_code: Some(3), at }
}

fn ids(store: &Store, filter: &RunFilter) -> Vec<String> {
    let found = store.read().runs(filter, &Page::first(100)).unwrap();
    assert_eq!(found.total, u64::try_from(found.runs.len()).unwrap());
    found.runs.into_iter().map(|run| run.record.id).collect()
}

fn status(store: &Store, id: &str) -> RunStatus {
    store.read().run(id).unwrap().unwrap().0.record.status
}

#[test]
fn a_run_and_its_steps_are_read_back_unchanged() {
    let home = Home::new();
    let store = home.open();
    let (state, mut run) = (store.state(), run("deploy"));
    state.begin_run(&run).unwrap();
    let (found, steps) = store.read().run(&run.id).unwrap().unwrap();
    assert_eq!((&found.record, found.steps_total, found.tokens), (&run, 0, None));
    assert_eq!(steps, []);

    let (first, second) = (step(&run, 1), step(&run, 2));
    state.begin_step(&first).unwrap();
    state.begin_step(&second).unwrap();
    let sessions = vec!["early".to_owned()];
    state.set_step_sessions(&run.id, 2, &sessions).unwrap();
    let second = StepRecord { sessions, ..second };
    let (_, steps) = store.read().run(&run.id).unwrap().unwrap();
    assert_eq!(steps, [first.clone(), second.clone()]);

    let (first, second) = (ended(first), ended(second));
    state.end_step(&second).unwrap();
    state.end_step(&first).unwrap();
    state.end_run(&run.id, &end(RunStatus::Failure)).unwrap();
    run.status = RunStatus::Failure;
    run.message = Some("no luck".to_owned());
    run.exit_code = Some(3);
    run.ended_at = Some(end(RunStatus::Failure).at);
    let (found, steps) = store.read().run(&run.id).unwrap().unwrap();
    assert_eq!((found.record, found.steps_total), (run, 2));
    assert_eq!((found.tokens, found.cost_usd), (Some(1 << 41), Some(0.25)));
    assert_eq!(steps, [first, second]);
    assert_eq!(store.read().run("nobody").unwrap(), None);
    assert_eq!(state.version().unwrap(), 0, "nobody decided that");
}

/// Returns a text of an agent.
fn text(position: u32, words: &str) -> StepText {
    let at = kept(Timestamp::now());
    StepText { position, at, kind: "text".to_owned(), text: words.to_owned() }
}

#[test]
fn what_another_run_needs_is_read_back_without_secrets() {
    let home = Home::new();
    let store = home.open();
    let (state, run) = (store.state(), run("deploy"));
    state.begin_run(&run).unwrap();
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let source = RunSource {
        hash: "sha256:00".to_owned(),
        dir: "/srv".to_owned(),
        began_at: "test".to_owned(),
        inputs: [
            ("env", json!("dev")),
            ("n", json!(3)),
            ("key", json!(secret)),
            ("password", json!("x1y2z3w4")),
        ]
        .map(|(name, value)| (name.to_owned(), Some(value)))
        .into(),
    };
    let kept_source = source.redacted(&Redactor::builtin());
    let inputs: Vec<bool> = kept_source.inputs.iter().map(|(_, it)| it.is_some()).collect();
    assert_eq!(inputs, [true, true, false, false]);
    assert_eq!(store.read().run_source(&run.id).unwrap(), None);
    state.set_run_source(&run.id, &kept_source).unwrap();
    assert_eq!(store.read().run_source(&run.id).unwrap(), Some(kept_source));

    let outcome = |name: &str, output: &str| StateOutcome {
        run: run.id.clone(),
        state: name.to_owned(),
        status: "success".to_owned(),
        output: output.to_owned(),
        stderr: String::new(),
        exit_code: Some(0),
        json: Some(json!({"n": 1})),
        tokens: Some(7),
        is_whole: true,
    };
    let mut expected = Vec::new();
    for (name, output, is_whole) in [
        ("a", "all of it".to_owned(), true),
        ("b", format!("export TOKEN={secret}"), false),
        ("c", "x".repeat(300_000), false),
    ] {
        let outcome = outcome(name, &output).redacted(&Redactor::builtin());
        assert_eq!(outcome.is_whole, is_whole, "{name}");
        assert!(!outcome.output.contains(secret));
        state.set_outcome(&outcome).unwrap();
        expected.push(outcome);
    }
    assert_eq!(store.read().run_outcomes(&run.id).unwrap(), expected);
    let next = RunRecord {
        id: uuid::Uuid::now_v7().to_string(),
        resumed_from: Some(run.id.clone()),
        ..run.clone()
    };
    state.begin_run(&next).unwrap();
    state.copy_outcomes(&run.id, &next.id).unwrap();
    assert_eq!(store.read().run_outcomes(&next.id).unwrap().len(), 3);
    let found = store.read().run(&next.id).unwrap().unwrap().0.record;
    assert_eq!(found.resumed_from, Some(run.id.clone()));
}

#[test]
fn texts_of_a_step_count_as_its_change() {
    let home = Home::new();
    let store = home.open();
    let (state, run) = (store.state(), run("deploy"));
    state.begin_run(&run).unwrap();
    state.begin_step(&step(&run, 1)).unwrap();
    let before = store.read().latest_change().unwrap();
    let (one, two) = (text(1, "I look"), text(2, "I found it"));
    state.add_step_texts(&run.id, 1, &[one.clone(), two.clone()]).unwrap();
    assert_eq!(store.read().step_texts(&run.id).unwrap(), [(1, one), (1, two)]);
    let changes = store.read().changes_after(before, 10).unwrap();
    assert!(matches!(&changes[..], [(_, LedgerChange::Step(_, step))] if step.number == 1));
    assert!(state.add_step_texts(&run.id, 9, &[text(1, "x")]).is_err());
    let secret = text(1, "Authorization: Bearer 0123456789abcdefghijABCDEFGHIJ0123456789");
    assert!(!secret.redacted(&Redactor::builtin()).text.contains("ABCDEFGHIJ"));
}

#[test]
fn runs_and_steps_that_never_began_cannot_end() {
    let home = Home::new();
    let store = home.open();
    let (state, run) = (store.state(), run("deploy"));
    for result in [
        state.end_run(&run.id, &end(RunStatus::Success)),
        state.begin_step(&step(&run, 1)),
        state.end_step(&step(&run, 1)),
        state.set_step_sessions(&run.id, 1, &[]),
        state.add_step_texts(&run.id, 1, &[]),
    ] {
        let Err(StoreError::Write(words)) = result else { panic!("{result:?}") };
        assert!(words.ends_with(" does not exist") && words.contains(&run.id), "{words}");
    }
    state.begin_run(&run).unwrap();
    assert!(state.begin_run(&run).is_err(), "no id twice");
    state.begin_step(&step(&run, 1)).unwrap();
    assert!(state.begin_step(&step(&run, 1)).is_err(), "no number twice");
    let outside = RunRecord { id: "../../x".to_owned(), ..run };
    assert!(state.begin_run(&outside).is_err(), "it would be a path");
}

#[test]
fn runs_are_listed_newest_first_paged_and_filtered() {
    let home = Home::new();
    let store = home.open();
    let mut newest_first = Vec::new();
    for number in 0..25 {
        let run = run(if number % 2 == 0 { "even" } else { "odd" });
        store.state().begin_run(&run).unwrap();
        if number % 5 == 0 {
            store.state().end_run(&run.id, &end(RunStatus::Success)).unwrap();
        }
        newest_first.insert(0, run.id);
    }
    let (mut seen, mut page) = (Vec::new(), Page::first(10));
    let pages = std::iter::from_fn(|| {
        let found = store.read().runs(&RunFilter::default(), &page).unwrap();
        assert_eq!(found.total, 25);
        page.cursor = Some(found.next_cursor.clone().unwrap_or_default());
        seen.extend(found.runs.into_iter().map(|run| run.record.id));
        found.next_cursor
    });
    assert_eq!(pages.count(), 2, "and a last one without a cursor");
    assert_eq!(seen, newest_first);
    let full = store.read().runs(&RunFilter::default(), &Page::first(25)).unwrap();
    assert_eq!(full.next_cursor, None, "nothing comes after the last");

    let of = |numbers: &dyn Fn(usize) -> bool| -> Vec<String> {
        let kept = (0..25).rev().filter(|number| numbers(*number));
        kept.map(|number| newest_first[24 - number].clone()).collect()
    };
    let odd = RunFilter { workflow: Some("odd".to_owned()), status: None };
    assert_eq!(ids(&store, &odd), of(&|number| number % 2 == 1));
    let done = RunFilter { status: Some(RunStatus::Success), workflow: None };
    assert_eq!(ids(&store, &done), of(&|number| number % 5 == 0));
    let both = RunFilter { status: Some(RunStatus::Success), workflow: Some("odd".to_owned()) };
    assert_eq!(ids(&store, &both), of(&|number| number % 10 == 5));
    for bad in ["", "w", "a1", "w0", "w-1", "w01", "wx"] {
        let page = Page { limit: 10, cursor: Some(bad.to_owned()) };
        let found = store.read().runs(&RunFilter::default(), &page);
        assert!(matches!(found, Err(StoreError::Cursor(_))), "{bad:?}");
    }
    let reader = store.read();
    let oldest = &newest_first[24];
    let (beginning, end) = (&oldest[..4], &oldest[oldest.len() - 8..]);
    for part in [oldest, end] {
        assert_eq!(reader.ids(IdKind::Run, part).unwrap(), std::slice::from_ref(oldest));
    }
    assert_eq!(reader.ids(IdKind::Run, beginning).unwrap().len(), 5, "not all of them");
    for none in ["0", "", "xxxx", "%%%%", "0%%%", "~~~~"] {
        assert_eq!(reader.ids(IdKind::Run, none).unwrap().len(), 0, "{none}");
    }
}

#[test]
fn a_run_is_interrupted_once_its_process_is_gone() {
    let home = Home::new();
    let (reader, runner) = (home.open(), home.open());
    let (lost, whole, on) = (run("lost"), run("whole"), run("on"));
    for run in [&lost, &whole] {
        runner.state().begin_run(run).unwrap();
    }
    reader.state().begin_run(&on).unwrap();
    runner.state().begin_step(&step(&lost, 1)).unwrap();
    runner.state().begin_step(&step(&lost, 2)).unwrap();
    runner.state().end_step(&ended(step(&lost, 1))).unwrap();
    runner.state().end_run(&whole.id, &end(RunStatus::Success)).unwrap();
    assert_eq!(reader.state().end_lost_runs().unwrap(), 0, "it lives");
    assert_eq!(status(&reader, &lost.id), RunStatus::Running);
    let before = reader.read().latest_change().unwrap();

    drop(runner);
    assert_eq!(reader.state().end_lost_runs().unwrap(), 1);
    assert_eq!(reader.state().end_lost_runs().unwrap(), 0);
    let (found, steps) = reader.read().run(&lost.id).unwrap().unwrap();
    assert_eq!((found.record.status, found.record.ended_at), (RunStatus::Interrupted, None));
    let statuses: Vec<StepStatus> = steps.iter().map(|step| step.status).collect();
    assert_eq!(statuses, [StepStatus::TimedOut, StepStatus::Interrupted]);
    assert_eq!(status(&reader, &whole.id), RunStatus::Success);
    assert_eq!(status(&reader, &on.id), RunStatus::Running);
    let changes = reader.read().changes_after(before, 10).unwrap();
    assert!(
        matches!(&*changes, [(_, LedgerChange::Step(..)), (_, LedgerChange::Run(run))] if run.record.id == lost.id),
        "{changes:?}"
    );
    let locks = std::fs::read_dir(home.path().join("writers")).unwrap();
    let locks: Vec<_> = locks.map(|file| file.unwrap().file_name()).collect();
    let runs = locks.iter().filter(|name| name.to_string_lossy().starts_with("run-"));
    assert_eq!(runs.count(), 1, "of the run that goes on: {locks:?}");
}

#[tokio::test]
async fn run_changes_are_interleaved_with_record_changes() {
    let home = Home::new();
    let (store, other) = (home.open(), home.open());
    let run = run("deploy");
    other.state().begin_run(&run).unwrap();
    let (record, _) = call(&store, Class::Write).await.unwrap();
    store.settled().await;
    other.state().begin_step(&step(&run, 1)).unwrap();
    let kinds = |after, limit| -> Vec<(i64, String)> {
        let name = |(number, change): (i64, LedgerChange)| match change {
            LedgerChange::Record(record) => (number, record.id),
            LedgerChange::Run(run) => (number, run.record.id),
            LedgerChange::Step(run, step) => {
                assert_eq!((&run.record.id, step.output), (&step.run, None));
                (number, format!("step {} {}", step.number, step.status.as_str()))
            }
            LedgerChange::Meeting(_) => panic!("one agent meets nobody"),
        };
        store.read().changes_after(after, limit).unwrap().into_iter().map(name).collect()
    };
    let running = "step 1 running".to_owned();
    assert_eq!(kinds(0, 10), [(1, run.id.clone()), (2, record.clone()), (3, running)]);
    assert_eq!(kinds(0, 2), [(1, run.id.clone()), (2, record.clone())]);
    other.state().end_step(&ended(step(&run, 1))).unwrap();
    other.state().end_run(&run.id, &end(RunStatus::Success)).unwrap();
    let timed_out = "step 1 timed_out".to_owned();
    assert_eq!(kinds(3, 10), [(4, timed_out), (5, run.id.clone())]);
    assert_eq!(kinds(5, 10), []);
    call(&store, Class::Write).await.unwrap();
    store.settled().await;
    assert_eq!(store.read().latest_change().unwrap(), 6);
}

#[test]
fn several_processes_write_runs_at_once() {
    const WRITERS: u32 = 4;
    const RUNS: u32 = 5;
    const STEPS: u32 = 5;
    let home = Home::new();
    let stores: Vec<Store> = (0..WRITERS).map(|_| home.open()).collect();
    std::thread::scope(|scope| {
        for store in &stores {
            scope.spawn(|| {
                for _ in 0..RUNS {
                    let run = run("busy");
                    store.state().begin_run(&run).unwrap();
                    for number in 1..=STEPS {
                        store.state().begin_step(&step(&run, number)).unwrap();
                        store.state().end_step(&ended(step(&run, number))).unwrap();
                    }
                    store.state().end_run(&run.id, &end(RunStatus::Success)).unwrap();
                }
            });
        }
    });
    let found = stores[0].read().runs(&RunFilter::default(), &Page::first(100)).unwrap();
    assert_eq!(found.total, u64::from(WRITERS * RUNS));
    assert!(found.runs.iter().all(|run| {
        run.steps_total == u64::from(STEPS) && run.record.status == RunStatus::Success
    }));
    let changes = stores[0].read().changes_after(0, 1_000).unwrap();
    let numbers: BTreeSet<i64> = changes.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers.len(), changes.len(), "no number is given twice");
    assert_eq!(changes.len(), usize::try_from(WRITERS * RUNS * (STEPS + 1)).unwrap());
}

fn count(home: &Home, table: &str) -> u64 {
    let words = format!("SELECT COUNT(*) FROM {table}");
    db(home.path()).query_row(&words, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn old_runs_are_deleted_unless_still_running() {
    let home = Home::new();
    let (runner, store) = (home.open(), home.open());
    let old = Timestamp::now() - SignedDuration::from_hours(24 * 100);
    let (done, lost, on, young) = (run("done"), run("lost"), run("on"), run("young"));
    for run in [&done, &lost] {
        let run = RunRecord { started_at: old, ..run.clone() };
        runner.state().begin_run(&run).unwrap();
        for number in 1..=400 {
            runner.state().begin_step(&step(&run, number)).unwrap();
        }
    }
    runner.state().end_run(&done.id, &end(RunStatus::Success)).unwrap();
    store.state().begin_run(&RunRecord { started_at: old, ..on.clone() }).unwrap();
    store.state().begin_step(&step(&on, 1)).unwrap();
    store.state().begin_run(&young).unwrap();
    store.state().end_run(&young.id, &end(RunStatus::Success)).unwrap();
    drop(runner);
    let tidy = home.open();
    tidy.set_retention(&super::support::rules()).unwrap();
    while count(&home, "runs") > 2 {
        tidy.settled().await;
    }
    assert_eq!(ids(&tidy, &RunFilter::default()), [young.id, on.id]);
    assert_eq!(count(&home, "run_steps"), 1);
}
