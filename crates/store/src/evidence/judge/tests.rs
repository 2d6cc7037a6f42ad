//! Tables of small evidence, with the findings that are expected.

use std::path::Path;

use receipt::checkpoint::Checkpoint;
use receipt::{Hash, SigningKey};

use super::super::UntrustedCheckpoint;
use super::super::finding::refuse;
use super::FindingKind::{Alarm, DatabaseLost, DatabaseOlder, Fault, HomeOlder, Note, Notice};
use super::*;
use crate::error::StoreError;
use crate::state::signed_log::DecisionLog;
use crate::write::journal::{Header, HeaderFacts};
use crate::write::link::PrecedingChain;

/// Evidence of a home, and what it shows: the kind of each finding and a part of its words.
type Case = (Evidence, Vec<(FindingKind, &'static str)>);

/// Returns evidence with a sound database.
fn sound() -> Evidence {
    let database = DatabaseState::Present;
    Evidence { database, decided: decided(0), has_secret: true, ..Evidence::default() }
}

fn decided(number: i64) -> Option<Decided> {
    Some(Decided { number, ..Decided::default() })
}

fn check(cases: Vec<Case>) {
    for (at, (evidence, expected)) in cases.into_iter().enumerate() {
        let found = judge(&evidence);
        let is_same = found.len() == expected.len()
            && found.iter().zip(&expected).all(|(finding, (kind, words))| {
                finding.kind == *kind && finding.words.contains(words)
            });
        assert!(is_same, "case {at}: {found:#?} is not {expected:#?}");
    }
}

fn journal(filed: Option<i64>) -> JournalState {
    JournalState { chain_id: "c".to_owned(), entries: 3, filed, ..JournalState::default() }
}

/// Returns the header of a journal: how far it had been filed, and the length of the chain before.
fn header(filed: i64, before: Option<u64>) -> Option<Header> {
    let (key, opened_at) = (String::new(), String::new());
    let (chain_id, hash) = ("b".to_owned(), Hash::of(b"before"));
    let preceding = before.map(|sequence| PrecedingChain { chain_id, sequence, hash });
    let preceding = preceding.as_ref();
    let mut header = Header::new(HeaderFacts { chain: "c", key, opened_at, pid: 1, preceding });
    header.filed = filed;
    Some(header)
}

fn head(length: u64) -> HeadState {
    let head = Head { chain_id: "c".to_owned(), length, hash: Hash::of(b"head") };
    HeadState { head, found: None, reached: Some(3), damaged: 0 }
}

fn no_heads() -> Checkpoint {
    let (heads, digest) = (Vec::new(), Hash::of(b""));
    Checkpoint { heads, omitted: 0, count: 0, digest, decisions: 0, previous: None }
}

fn words(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_missing_database_is_a_loss_only_in_a_used_home() {
    let missing = || Evidence { home: "/h".into(), ..Evidence::default() };
    let invalid = || Some(Err(UntrustedCheckpoint::Foreign));
    check(vec![
        (missing(), vec![]),
        (Evidence { database: DatabaseState::Empty, ..missing() }, vec![]),
        (
            Evidence { key_files: 1, chains: words(&["a", "b"]), ..missing() },
            vec![(
                DatabaseLost,
                "the ledger '/h/ledger.db' is missing, but the home has been used before: it \
                 has 1 signing key, 2 journals",
            )],
        ),
        (
            Evidence { database: DatabaseState::Empty, checkpoint: invalid(), ..missing() },
            vec![
                (DatabaseLost, "is empty, but the home has been used before: it has a checkpoint"),
                (Fault, "the checkpoint is not trusted: no key of this home signed it"),
            ],
        ),
        (
            Evidence {
                decisions: DecisionsFile::Valid(Box::default(), String::new()),
                ..missing()
            },
            vec![(DatabaseLost, "it has operator decisions")],
        ),
        (
            Evidence { database: DatabaseState::Outdated, key_files: 1, ..missing() },
            vec![(Note, "was not examined: it has the layout of an older version")],
        ),
        (
            Evidence {
                database: DatabaseState::Unreadable(StoreError::Write("no".to_owned())),
                ..missing()
            },
            vec![(Fault, "cannot read the ledger: no")],
        ),
    ]);
}

#[test]
fn tables_that_name_less_than_other_files_are_older() {
    let used = |key: Option<&str>| {
        let key = key.map(str::to_owned);
        Evidence { key, used_keys: words(&["k1", "k2"]), ..sound() }
    };
    let heads = |state| Evidence { heads: vec![state], ..sound() };
    let deciding = |named, known| {
        let checkpoint = Some(Ok(Checkpoint { decisions: named, ..no_heads() }));
        let decisions = DecisionsFile::Valid(Box::default(), String::new());
        Evidence { checkpoint, decided: decided(known), decisions, ..sound() }
    };
    let short = |reached, damaged| HeadState { reached, damaged, ..head(7) };
    check(vec![
        (sound(), vec![]),
        (used(Some("k2")), vec![]),
        // Another process has just replaced it.
        (used(Some("k3")), vec![]),
        (used(Some("k1")), vec![(DatabaseOlder, "it names the key k1, which was replaced by k2")]),
        (used(None), vec![(DatabaseOlder, "it names no signing key, but k2 has signed")]),
        (heads(head(3)), vec![]),
        (heads(head(7)), vec![(DatabaseOlder, "c has 3 receipts, but 7 at the last checkpoint")]),
        // Recovery signs for entries that are damaged.
        (heads(short(Some(3), 4)), vec![]),
        (heads(short(Some(3), 3)), vec![(DatabaseOlder, "chain c has 3 receipts, but 7")]),
        // The chain has expired.
        (heads(short(None, 0)), vec![]),
        (deciding(2, 2), vec![]),
        (
            deciding(3, 2),
            vec![(
                DatabaseOlder,
                "had made 3 decisions at the last checkpoint, and the home has 2",
            )],
        ),
    ]);
}

#[test]
fn journals_show_damage_and_what_the_tables_lack() {
    let of = |journal| Evidence { journals: vec![journal], ..sound() };
    let unknown = || JournalState { header: header(0, None), ..journal(None) };
    let after = |reached_before| JournalState {
        header: header(0, Some(5)),
        reached_before,
        ..journal(None)
    };
    check(vec![
        (of(journal(Some(3))), vec![]),
        (of(JournalState { header: header(3, None), ..journal(Some(3)) }), vec![]),
        (
            of(JournalState { header: header(4, None), ..journal(Some(3)) }),
            vec![(DatabaseOlder, "chain c is filed up to entry 3, but 4 were filed before")],
        ),
        (
            of(JournalState { damaged: 2, ..journal(Some(3)) }),
            vec![(Fault, "chain c has 2 damaged lines: all of them are in the database already")],
        ),
        (
            of(JournalState { damaged: 2, lost: 1, unfiled: Some(1), ..journal(Some(3)) }),
            vec![
                (Fault, "has 2 damaged lines: 1 entries are lost, the rest will be recovered"),
                (Note, "chain c has 1 entries of a process that ended abruptly"),
            ],
        ),
        (of(JournalState { unfiled: Some(1), is_alive: true, ..journal(Some(3)) }), vec![]),
        // Nothing is lost by an adoption.
        (of(unknown()), vec![]),
        (of(JournalState { entries: 0, header: None, ..unknown() }), vec![]),
        (
            of(JournalState { header: None, ..unknown() }),
            vec![(DatabaseOlder, "the journal of chain c is not in it: its journal has no header")],
        ),
        (
            of(JournalState { header: header(2, None), ..unknown() }),
            vec![(DatabaseOlder, "2 of its entries were filed and are in no table")],
        ),
        (
            of(JournalState { lost: 2, ..unknown() }),
            vec![(DatabaseOlder, "2 entries of its journal are damaged")],
        ),
        (
            of(JournalState { has_gap: true, ..unknown() }),
            vec![(DatabaseOlder, "some of its receipts are in no table")],
        ),
        (of(after(Some(5))), vec![]),
        (of(after(None)), vec![]),
        (
            of(after(Some(4))),
            vec![(DatabaseOlder, "the chain before it, b, only 4 of 5 receipts can be found")],
        ),
    ]);
}

#[test]
fn keys_and_decisions_that_are_missing_are_no_reason_not_to_start() {
    let copy = |number: i64| {
        let kept = Box::new(DecisionLog { number, ..DecisionLog::default() });
        let decisions = DecisionsFile::Valid(kept, String::new());
        Evidence { decisions, decided: decided(1), ..sound() }
    };
    let public = SigningKey::from_seed(&[1; 32]).public();
    let name = public.fingerprint().to_string();
    let key = Some("k1".to_owned());
    let secretless = Evidence { key, has_secret: false, ..sound() };
    let lost_at = Some("a day".to_owned());
    let doubtful = |decided| Evidence { decided: Some(decided), ..sound() };
    check(vec![
        (Evidence { keys: vec![public], signers: vec![name], ..sound() }, vec![]),
        (
            Evidence { signers: words(&["k9"]), ..sound() },
            vec![(Alarm, "the public key k9, which signed chains, is missing")],
        ),
        (
            Evidence { damaged: words(&["c"]), other_ends: words(&["chain d"]), ..sound() },
            vec![
                (Alarm, "the end of chain c is missing, and nothing is signed"),
                (Alarm, "chain d"),
            ],
        ),
        (
            Evidence { is_unfinished: true, ..sound() },
            vec![(DatabaseLost, "a repair of the ledger did not finish, and left 'ledger.db.new'")],
        ),
        (secretless, vec![(Fault, "the secret half of the signing key k1 is missing")]),
        (
            Evidence { decided: decided(1), ..sound() },
            vec![(Note, "the copy of the operators' decisions is missing")],
        ),
        (copy(1), vec![]),
        (copy(2), vec![(Fault, "has older decisions than their copy")]),
        (
            Evidence { decisions: DecisionsFile::Invalid("bad".to_owned()), ..sound() },
            vec![(Fault, "the copy of the operators' decisions is not trusted: bad")],
        ),
        (
            Evidence { decided: Some(Decided { lost_at, ..Decided::default() }), ..sound() },
            vec![(Note, "the operators' decisions were lost on a day")],
        ),
        (
            doubtful(Decided { damage: Some("why".to_owned()), ..Decided::default() }),
            vec![(Fault, "the signed log of decisions is damaged (why): no approval")],
        ),
        (
            doubtful(Decided { differing: words(&["token 'a'", "b"]), ..Decided::default() }),
            vec![(Fault, "differs from the signed decisions on token 'a', b: the stricter counts")],
        ),
        (
            doubtful(Decided { differing: vec!["x".to_owned(); 12], ..Decided::default() }),
            vec![(Fault, "x, x and 2 more: the stricter counts")],
        ),
        (
            Evidence { set_aside: words(&["c.damaged"]), ..sound() },
            vec![(Note, "damaged lines of a journal are kept in 'writers/c.damaged'")],
        ),
        (
            Evidence { unread: Some(StoreError::Read("no".to_owned())), ..sound() },
            vec![(Fault, "cannot read the ledger: no")],
        ),
    ]);
}

#[test]
fn a_checkpoint_file_is_the_newest_and_signed() {
    let of = |checkpoint| Evidence { checkpoint, has_checkpoints: true, ..sound() };
    let newer_checkpoint = Some(head(7).head);
    check(vec![
        (of(Some(Ok(no_heads()))), vec![]),
        (of(None), vec![(Notice, "checkpoint.json is missing")]),
        (
            Evidence { newer_checkpoint, ..of(Some(Ok(no_heads()))) },
            vec![(Notice, "older than the newest checkpoint, which is receipt 7 of chain c")],
        ),
        (
            of(Some(Err(UntrustedCheckpoint::Foreign))),
            vec![(Fault, "the checkpoint is not trusted: no key of this home signed it")],
        ),
    ]);
}

#[test]
fn an_anchor_shows_an_older_home_and_what_it_cannot_show() {
    let shown = || "the anchor 'a'".to_owned();
    let state = || AnchoredState { shown: shown(), ..AnchoredState::default() };
    let of = |state| Evidence {
        anchored: Some(state),
        has_checkpoints: true,
        checkpoint: Some(Ok(no_heads())),
        ..sound()
    };
    let compared = || AnchoredState { checkpoints: 1, ..state() };
    let found = |hash: &[u8]| {
        let found = Some(Hash::of(hash).to_string());
        of(AnchoredState { heads: vec![HeadState { found, ..head(7) }], ..compared() })
    };
    let command = Some(AnchorConfig::Command(Vec::new()));
    check(vec![
        (of(compared()), vec![]),
        (Evidence { anchor: command, ..sound() }, vec![(Note, "the anchor is a command")]),
        (
            of(AnchoredState { is_within: true, unreadable: 2, ..compared() }),
            vec![
                (Notice, "the anchor 'a' lies in the home"),
                (Notice, "has 2 lines near its end that are no checkpoints"),
            ],
        ),
        (of(state()), vec![(Notice, "the anchor 'a' has no checkpoint of this home")]),
        (of(AnchoredState { was_accepted: true, ..state() }), vec![]),
        (Evidence { anchored: Some(state()), ..sound() }, vec![]),
        (
            of(AnchoredState { error: Some("gone".to_owned()), ..state() }),
            vec![(Notice, "cannot be read (gone)")],
        ),
        (
            of(AnchoredState { foreign: 1, ..compared() }),
            vec![(HomeOlder, "has checkpoints that no key of this home signed")],
        ),
        (
            of(AnchoredState { heads: vec![head(7)], ..compared() }),
            vec![(HomeOlder, "chain c has 3 receipts, but 7 at a checkpoint in the anchor 'a'")],
        ),
        (found(b"head"), vec![]),
        (
            found(b"other"),
            vec![(HomeOlder, "receipt 7 of chain c was another one at a checkpoint")],
        ),
        (
            of(AnchoredState { decisions: 2, ..compared() }),
            vec![(
                HomeOlder,
                "had made 2 decisions at a checkpoint in the anchor 'a', and the home has 0",
            )],
        ),
    ]);
}

#[test]
fn a_start_is_refused_for_the_worst_reason_alone() {
    let refusal = |kinds: &[FindingKind]| {
        let findings: Vec<Finding> =
            kinds.iter().map(|kind| kind.says(format!("{kind:?}"))).collect();
        refuse(&findings, Path::new("/h")).err().map(|error| match error {
            StoreError::Incomplete(words) => words,
            other => panic!("{other}"),
        })
    };
    let older = "the ledger '/h/ledger.db' is older than";
    assert_eq!(refusal(&[]), None);
    assert_eq!(refusal(&[Note, Fault, Notice]), None);
    assert_eq!(refusal(&[HomeOlder, DatabaseLost]), Some("DatabaseLost".to_owned()));
    let words = format!("{older} the home's other files: DatabaseOlder; DatabaseOlder");
    assert_eq!(refusal(&[DatabaseOlder, HomeOlder, DatabaseOlder, Fault]), Some(words));
    assert_eq!(refusal(&[HomeOlder]), Some(format!("{older} its anchor: HomeOlder")));
}
