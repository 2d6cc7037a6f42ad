//! Every decision of the schedule, in tables.

use super::*;

/// An open chain, and nothing to do.
const CALM: Situation = Situation {
    durability: Durability::Process,
    journal_bytes: Some(0),
    is_journal_due: false,
    queued: 0,
    held_until: None,
    is_failing: false,
    uncovered_since: None,
    unfiled: UnfiledRows { rows: 0, bytes: 0, oldest: None },
    batches: IDLE,
    waiting: NOBODY,
};

const IDLE: Batches = Batches { at_signer: false, is_signed: false, is_refused: false };
const AT_SIGNER: Batches = Batches { at_signer: true, ..IDLE };
const SIGNED: Batches = Batches { is_signed: true, ..IDLE };
const REFUSED: Batches = Batches { is_refused: true, ..IDLE };

const NOBODY: Waiting = Waiting { commit: 0, filing: 0, rotation: 0, checkpoint: 0, close: 0 };
const FOR_COMMIT: Waiting = Waiting { commit: 1, ..NOBODY };
const FOR_FILING: Waiting = Waiting { filing: 1, ..NOBODY };
const FOR_ROTATION: Waiting = Waiting { rotation: 1, ..NOBODY };
const FOR_CHECKPOINT: Waiting = Waiting { checkpoint: 1, ..NOBODY };
const FOR_CLOSE: Waiting = Waiting { close: 1, ..NOBODY };

const MILLISECOND: Duration = Duration::from_millis(1);

fn unfiled(rows: usize, oldest: Instant) -> UnfiledRows {
    UnfiledRows { rows, bytes: rows, oldest: Some(oldest) }
}

fn crowded(oldest: Instant) -> UnfiledRows {
    unfiled(UNFILED_MAX + 1, oldest)
}

/// Returns the actions of a turn in which the situation does not change.
fn turn(schedule: &mut Schedule, at: &Situation, now: Instant) -> Vec<Action> {
    let mut actions = Vec::new();
    loop {
        let action = schedule.next(at, now);
        actions.push(action);
        if matches!(action, Action::Rest | Action::Close) {
            return actions;
        }
    }
}

#[test]
fn a_turn_takes_the_actions_that_are_due_in_order() {
    use Action::{
        AnswerSettled, Close, Commit, FileSigned, Maintain, Probe, Refile, Rest, Rotate, Sign,
    };
    let start = Instant::now();
    let now = start + FILE_AFTER;
    let old = unfiled(1, start);
    let long = Some(JOURNAL_BYTES_MAX + 1);
    let due = start + RETENTION_PAUSE;
    let cases: [(&str, Situation, Instant, &[Action]); 21] = [
        ("nothing to do", CALM, now, &[Commit, Rest]),
        ("not filed", Situation { batches: REFUSED, ..CALM }, now, &[Refile, Commit, Rest]),
        ("failing", Situation { is_failing: true, ..CALM }, now, &[Commit, Probe, Rest]),
        (
            "failing, and drafts are tried again",
            Situation { is_failing: true, queued: 1, ..CALM },
            now,
            &[Commit, Rest],
        ),
        (
            "failing, and rows are tried again",
            Situation { is_failing: true, batches: REFUSED, ..CALM },
            now,
            &[Refile, Commit, Rest],
        ),
        ("old rows", Situation { unfiled: old, ..CALM }, now, &[Commit, Sign, Rest]),
        ("signed rows", Situation { batches: SIGNED, ..CALM }, now, &[Commit, FileSigned, Rest]),
        (
            "signed rows, and old ones behind them",
            Situation { batches: SIGNED, unfiled: old, ..CALM },
            now,
            &[Commit, Sign, FileSigned, Rest],
        ),
        (
            "signed rows, and the next with the signer",
            Situation { batches: Batches { at_signer: true, ..SIGNED }, unfiled: old, ..CALM },
            now,
            &[Commit, FileSigned, Rest],
        ),
        (
            "signed rows in a journal that is to begin anew",
            Situation { batches: SIGNED, unfiled: old, journal_bytes: long, ..CALM },
            now,
            &[Commit, FileSigned, Rest],
        ),
        (
            "signed rows, and too many behind them",
            Situation { batches: SIGNED, unfiled: crowded(start), ..CALM },
            now,
            &[Commit, FileSigned, Rest],
        ),
        (
            "somebody waits for young rows",
            Situation { unfiled: old, waiting: FOR_FILING, ..CALM },
            start,
            &[Commit, Sign, AnswerSettled, Rest],
        ),
        (
            "a rotation comes before the signer",
            Situation { unfiled: old, waiting: FOR_ROTATION, ..CALM },
            now,
            &[Commit, Rotate, Rest],
        ),
        (
            "a rotation waits for the signer",
            Situation { batches: AT_SIGNER, waiting: FOR_ROTATION, ..CALM },
            now,
            &[Commit, Rest],
        ),
        (
            "a rotation waits for signed rows",
            Situation { batches: SIGNED, waiting: FOR_ROTATION, ..CALM },
            now,
            &[Commit, FileSigned, Rest],
        ),
        ("closing", Situation { unfiled: old, waiting: FOR_CLOSE, ..CALM }, now, &[Commit, Close]),
        (
            "closing waits for the signer",
            Situation { batches: AT_SIGNER, waiting: FOR_CLOSE, ..CALM },
            now,
            &[Commit, Rest],
        ),
        (
            "closing comes before upkeep",
            Situation { waiting: FOR_CLOSE, ..CALM },
            due,
            &[Commit, Close],
        ),
        ("upkeep is due", CALM, due, &[Commit, Maintain, Rest]),
        ("upkeep is not due yet", CALM, due - MILLISECOND, &[Commit, Rest]),
        (
            "upkeep waits for the signer",
            Situation { batches: AT_SIGNER, ..CALM },
            due,
            &[Commit, Rest],
        ),
    ];
    for (case, at, now, expected) in cases {
        let mut schedule = Schedule::new(start);
        assert_eq!(turn(&mut schedule, &at, now), expected, "{case}");
    }
}

#[test]
fn a_checkpoint_follows_a_minute_after_the_first_entry_that_none_covers() {
    use Action::{Checkpoint, Close, Commit, FileSigned, Probe, Rest, Rotate, Sign};
    let start = Instant::now();
    let due = start + CHECKPOINT_AFTER;
    let covered = Situation { journal_bytes: Some(1), ..CALM };
    let uncovered = Situation { uncovered_since: Some(start), ..covered };
    let requested = Situation { waiting: FOR_CHECKPOINT, ..covered };
    let rows = unfiled(FILE_MAX, start);
    let both = Waiting { rotation: 1, close: 1, ..FOR_CHECKPOINT };
    let cases: [(&str, Situation, Instant, &[Action]); 13] = [
        ("nothing since the last", covered, due, &[Commit, Rest]),
        ("a moment too early", uncovered, due - MILLISECOND, &[Commit, Rest]),
        ("a minute old", uncovered, due, &[Commit, Checkpoint, Rest]),
        ("requested", requested, start, &[Commit, Checkpoint, Rest]),
        (
            "requested before the first entry",
            Situation { journal_bytes: None, ..requested },
            start,
            &[Commit, Checkpoint, Rest],
        ),
        (
            "after rows that are too many for the signer, it signs none of them",
            Situation { unfiled: rows, ..requested },
            start,
            &[Commit, Checkpoint, Rest],
        ),
        ("at the signer", Situation { batches: AT_SIGNER, ..uncovered }, due, &[Commit, Rest]),
        (
            "signed",
            Situation { batches: SIGNED, unfiled: rows, ..requested },
            due,
            &[Commit, FileSigned, Rest],
        ),
        ("failing", Situation { is_failing: true, ..uncovered }, due, &[Commit, Probe, Rest]),
        (
            "requested while failing: the caller gets the error",
            Situation { is_failing: true, ..requested },
            due,
            &[Commit, Probe, Checkpoint, Rest],
        ),
        ("stuck", Situation { queued: 1, ..uncovered }, due, &[Commit, Rest]),
        (
            "between a rotation and the close",
            Situation { waiting: both, ..covered },
            due,
            &[Commit, Rotate, Checkpoint, Close],
        ),
        (
            "rows go to the signer until it is due",
            Situation { unfiled: rows, ..uncovered },
            due - MILLISECOND,
            &[Commit, Sign, Rest],
        ),
    ];
    for (case, at, now, expected) in cases {
        let mut schedule = Schedule::new(start);
        schedule.maintained(Upkeep::Done, start);
        assert_eq!(turn(&mut schedule, &at, now), expected, "{case}");
    }
}

#[test]
fn a_due_checkpoint_keeps_the_signer_idle_and_the_writer_awake() {
    let start = Instant::now();
    let due = start + CHECKPOINT_AFTER;
    let mut schedule = Schedule::new(start);
    schedule.maintained(Upkeep::Done, start);
    let idle =
        Situation { uncovered_since: Some(start), unfiled: unfiled(FILE_MAX, start), ..CALM };
    let signing = Situation { batches: AT_SIGNER, ..idle };
    let calm = Situation { uncovered_since: Some(start), ..CALM };
    assert_eq!(schedule.rest(&calm, start), CHECKPOINT_AFTER);
    assert!(schedule.lets_callers_commit(&calm));
    assert_eq!(turn(&mut schedule, &signing, due), [Action::Commit, Action::Rest]);
    assert!(!schedule.signs(&idle, due), "no more rows for the signer");
    assert!(!schedule.lets_callers_commit(&calm));
    assert_eq!(schedule.rest(&calm, due), FILE_AFTER, "not a busy loop");
    assert_eq!(turn(&mut schedule, &idle, due), [Action::Commit, Action::Checkpoint, Action::Rest]);
    let covered = Situation { uncovered_since: None, ..idle };
    assert!(schedule.signs(&covered, due));
    assert_eq!(schedule.rest(&CALM, due), RETENTION_EVERY - CHECKPOINT_AFTER);
}

#[test]
fn a_turn_begins_again_after_the_last() {
    let start = Instant::now();
    let mut schedule = Schedule::new(start);
    for _ in 0..2 {
        assert_eq!(turn(&mut schedule, &CALM, start), [Action::Commit, Action::Rest]);
    }
}

#[test]
fn the_writer_files_rows_itself_while_too_many_are_unfiled() {
    let start = Instant::now();
    let by_rows = |rows| unfiled(rows, start);
    let by_bytes = |bytes| UnfiledRows { rows: 1, bytes, oldest: Some(start) };
    for (case, full, room) in [
        ("rows", by_rows(UNFILED_MAX + 1), by_rows(UNFILED_MAX)),
        ("bytes", by_bytes(UNFILED_BYTES_MAX + 1), by_bytes(UNFILED_BYTES_MAX)),
    ] {
        let mut schedule = Schedule::new(start);
        let full = Situation { unfiled: full, ..CALM };
        assert_eq!(schedule.next(&full, start), Action::Commit);
        for _ in 0..3 {
            assert_eq!(schedule.next(&full, start), Action::FileHere, "{case}");
        }
        let room = Situation { unfiled: room, waiting: FOR_FILING, ..CALM };
        assert_eq!(schedule.next(&room, start), Action::Sign, "{case}");
    }
}

#[test]
fn the_writer_files_no_rows_while_a_batch_is_outstanding() {
    let start = Instant::now();
    for (case, batches) in [("with the signer", AT_SIGNER), ("not filed", REFUSED)] {
        let at = Situation { unfiled: crowded(start), batches, ..CALM };
        let actions = turn(&mut Schedule::new(start), &at, start);
        assert!(!actions.contains(&Action::FileHere), "{case}");
    }
}

#[test]
fn rows_go_to_the_signer_once_they_are_many_old_or_waited_for() {
    let start = Instant::now();
    let old = start + FILE_AFTER;
    let young = old - MILLISECOND;
    let few = unfiled(FILE_MAX - 1, start);
    for (case, at, now, expected) in [
        ("no rows", CALM, old, false),
        ("few and young", Situation { unfiled: few, ..CALM }, young, false),
        ("few and old", Situation { unfiled: few, ..CALM }, old, true),
        ("many and young", Situation { unfiled: unfiled(FILE_MAX, start), ..CALM }, young, true),
        (
            "young and waited for",
            Situation { unfiled: few, waiting: FOR_FILING, ..CALM },
            young,
            true,
        ),
        (
            "others with the signer",
            Situation { unfiled: few, batches: AT_SIGNER, ..CALM },
            old,
            false,
        ),
        ("others signed", Situation { unfiled: few, batches: SIGNED, ..CALM }, old, false),
        ("others not filed", Situation { unfiled: few, batches: REFUSED, ..CALM }, old, false),
        ("a rotation", Situation { unfiled: few, waiting: FOR_ROTATION, ..CALM }, old, false),
        ("closing", Situation { unfiled: few, waiting: FOR_CLOSE, ..CALM }, old, false),
    ] {
        assert_eq!(Schedule::new(start).signs(&at, now), expected, "{case}");
    }
}

#[test]
fn a_batch_is_bounded() {
    let start = Instant::now();
    for (rows, batch) in [(0, 0), (1, 1), (FILE_MAX, FILE_MAX), (FILE_MAX + 1, FILE_MAX)] {
        assert_eq!(unfiled(rows, start).batch(), batch);
    }
}

#[test]
fn upkeep_keeps_the_signer_idle_until_it_is_done() {
    let start = Instant::now();
    let due = start + RETENTION_PAUSE;
    let mut schedule = Schedule::new(start);
    let signing = Situation { batches: AT_SIGNER, unfiled: unfiled(FILE_MAX, start), ..CALM };
    assert_eq!(turn(&mut schedule, &signing, due), [Action::Commit, Action::Rest]);
    let idle = Situation { batches: IDLE, ..signing };
    assert!(!schedule.signs(&idle, due), "no more rows for the signer");
    assert!(!schedule.lets_callers_commit(&CALM));
    assert_eq!(schedule.rest(&CALM, due), FILE_AFTER);
    assert_eq!(turn(&mut schedule, &idle, due), [Action::Commit, Action::Maintain, Action::Rest]);
    schedule.maintained(Upkeep::Done, due);
    assert!(schedule.signs(&idle, due));
    assert!(schedule.lets_callers_commit(&CALM));
}

#[test]
fn upkeep_is_due_soon_where_there_is_more_to_do() {
    let start = Instant::now();
    for (upkeep, pause) in
        [(Upkeep::Done, RETENTION_EVERY), (Upkeep::More(RETENTION_PAUSE), RETENTION_PAUSE)]
    {
        let mut schedule = Schedule::new(start);
        schedule.maintained(upkeep, start);
        assert_eq!(schedule.rest(&CALM, start), pause);
        let due = start + pause;
        assert_eq!(turn(&mut schedule, &CALM, due - MILLISECOND), [Action::Commit, Action::Rest]);
        assert!(turn(&mut schedule, &CALM, due).contains(&Action::Maintain));
    }
}

#[test]
fn the_writer_rests_until_something_is_due() {
    let start = Instant::now();
    let rows = unfiled(1, start);
    let held = Some(start + MILLISECOND);
    for (case, at, expected) in [
        ("upkeep alone", CALM, RETENTION_PAUSE),
        ("signed rows", Situation { batches: SIGNED, ..CALM }, Duration::ZERO),
        (
            "signed rows of a ledger that fails",
            Situation { batches: SIGNED, is_failing: true, ..CALM },
            Duration::ZERO,
        ),
        ("failing", Situation { is_failing: true, ..CALM }, RETRY_EVERY),
        ("drafts to be tried again", Situation { queued: 1, ..CALM }, RETRY_EVERY),
        ("rows to be tried again", Situation { batches: REFUSED, ..CALM }, RETRY_EVERY),
        ("rows to be filed", Situation { unfiled: rows, ..CALM }, FILE_AFTER),
        (
            "rows behind others at the signer",
            Situation { unfiled: rows, batches: AT_SIGNER, ..CALM },
            RETENTION_PAUSE,
        ),
        ("a start held back", Situation { held_until: held, ..CALM }, MILLISECOND),
        (
            "a start held back, and rows",
            Situation { held_until: held, unfiled: rows, ..CALM },
            MILLISECOND,
        ),
    ] {
        assert_eq!(Schedule::new(start).rest(&at, start), expected, "{case}");
    }
    let late = start + RETENTION_PAUSE + MILLISECOND;
    assert_eq!(Schedule::new(start).rest(&CALM, late), Duration::ZERO, "overdue");
}

#[test]
fn a_caller_commits_its_own_entry_unless_the_writer_must_act() {
    let start = Instant::now();
    for (case, at, expected) in [
        ("nothing to do", CALM, true),
        ("rows to be filed", Situation { unfiled: unfiled(1, start), ..CALM }, true),
        ("the signer at work", Situation { batches: AT_SIGNER, ..CALM }, true),
        ("somebody waits for filing", Situation { waiting: FOR_FILING, ..CALM }, true),
        ("commits wait for the disk", Situation { durability: Durability::Disk, ..CALM }, false),
        ("no chain yet", Situation { journal_bytes: None, ..CALM }, false),
        ("crowded", Situation { unfiled: crowded(start), ..CALM }, false),
        ("somebody waits for a commit", Situation { waiting: FOR_COMMIT, ..CALM }, false),
        ("a rotation", Situation { waiting: FOR_ROTATION, ..CALM }, false),
        ("a checkpoint", Situation { waiting: FOR_CHECKPOINT, ..CALM }, false),
        ("closing", Situation { waiting: FOR_CLOSE, ..CALM }, false),
        ("drafts to be tried again", Situation { queued: 1, ..CALM }, false),
        ("rows to be tried again", Situation { batches: REFUSED, ..CALM }, false),
        ("failing", Situation { is_failing: true, ..CALM }, false),
    ] {
        assert_eq!(Schedule::new(start).lets_callers_commit(&at), expected, "{case}");
    }
}

#[test]
fn entries_are_committed_beside_filing_while_there_is_room_and_no_fault() {
    let start = Instant::now();
    for (case, at, expected) in [
        ("room", CALM, true),
        ("somebody waits", Situation { waiting: FOR_CLOSE, ..CALM }, true),
        ("crowded", Situation { unfiled: crowded(start), ..CALM }, false),
        ("drafts to be tried again", Situation { queued: 1, ..CALM }, false),
        ("rows to be tried again", Situation { batches: REFUSED, ..CALM }, false),
        ("failing", Situation { is_failing: true, ..CALM }, false),
    ] {
        assert_eq!(at.lets_commit_beside_filing(), expected, "{case}");
    }
}

#[test]
fn held_starts_are_written_at_once_for_a_commit_rotation_or_close() {
    for (case, waiting, expected) in [
        ("nobody", NOBODY, false),
        ("commit", FOR_COMMIT, true),
        ("filing: they are committed already", FOR_FILING, false),
        ("rotation", FOR_ROTATION, true),
        ("checkpoint", FOR_CHECKPOINT, true),
        ("close", FOR_CLOSE, true),
    ] {
        assert_eq!(waiting.is_urgent(), expected, "{case}");
    }
}

#[test]
fn the_tables_are_tried_before_a_call_is_permitted_and_after_a_fault() {
    let failing = Situation { is_failing: true, ..CALM };
    let refused = Situation { batches: REFUSED, ..CALM };
    for (case, at, permits_a_call, expected) in [
        ("sound", CALM, false, Precondition::Nothing),
        ("sound, and a call waits", CALM, true, Precondition::WritableTables),
        ("failing", failing, false, Precondition::WritableTables),
        ("failing, and a call waits", failing, true, Precondition::WritableTables),
        ("rows were not filed", refused, false, Precondition::Unmet),
        ("rows were not filed, and a call waits", refused, true, Precondition::Unmet),
    ] {
        assert_eq!(at.precondition(permits_a_call), expected, "{case}");
    }
}

fn with_journal(length: u64, needed: u64) -> Situation {
    let bytes = usize::try_from(needed).unwrap();
    let unfiled = UnfiledRows { bytes, ..CALM.unfiled };
    Situation { journal_bytes: Some(length), unfiled, ..CALM }
}

#[test]
fn the_longer_a_journal_is_the_more_may_be_carried_over() {
    for (length, needed, is_long) in [
        (JOURNAL_BYTES_MAX, 0, false),
        (JOURNAL_BYTES_MAX + 1, 0, true),
        (JOURNAL_BYTES_MAX * 2, JOURNAL_BYTES_MAX / 8, false),
        (JOURNAL_BYTES_MAX * 2 + 16, JOURNAL_BYTES_MAX / 8, true),
        (JOURNAL_BYTES_LARGE, JOURNAL_BYTES_LARGE / 5, false),
        (JOURNAL_BYTES_LARGE + 1, JOURNAL_BYTES_LARGE / 5, true),
        (JOURNAL_BYTES_LARGE + 1, JOURNAL_BYTES_LARGE / 3, false),
    ] {
        let found = with_journal(length, needed).is_journal_long();
        assert_eq!(found, is_long, "{length}, of which {needed} are needed");
    }
    assert!(!Situation { journal_bytes: None, ..CALM }.is_journal_long(), "there is none");
    assert!(Situation { is_journal_due: true, ..CALM }.is_journal_long(), "it was deleted");
}

#[test]
fn a_journal_is_restarted_only_with_no_rows_outstanding() {
    let long = with_journal(JOURNAL_BYTES_MAX + 1, 0);
    for (case, at, expected) in [
        ("short", CALM, false),
        ("long", long, true),
        ("rows with the signer", Situation { batches: AT_SIGNER, ..long }, false),
        ("rows that came back meanwhile", Situation { batches: SIGNED, ..long }, false),
        ("drafts to be tried again", Situation { queued: 1, ..long }, false),
    ] {
        assert_eq!(at.begins_journal_anew(), expected, "{case}");
    }
}

#[test]
fn waiting_for_filing_ends_when_rows_are_filed_or_cannot_be() {
    for (case, at, upto, filed, expected) in [
        ("filed", CALM, 3, 3, true),
        ("filed and more", CALM, 3, 4, true),
        ("not yet", CALM, 4, 3, false),
        ("rows that cannot be filed", Situation { batches: REFUSED, ..CALM }, 4, 3, true),
        ("drafts that cannot be committed", Situation { queued: 1, ..CALM }, 4, 3, true),
    ] {
        assert_eq!(at.is_settled(upto, filed), expected, "{case}");
    }
}
