//! Every combination of filters, compared with a plain check of each row.

use domain::tool::Class;
use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::select;
use touch::container::contains;
use touch::targets::glob;

use super::rig::{Rig, Row, insert};
use crate::read::activity::Activity;
use crate::read::search::Effort;
use crate::read::{Page, RecordDetail, RecordFilter, TouchAccess};
use crate::record::{RecordKind, RecordStatus};

const SERVERS: [&str; 3] = ["github", "files", "100%_db"];
const TOOLS: [&str; 3] = ["get_issue", "Delete", "edit"];
const AGENTS: [(&str, &str); 5] = [
    ("claude-code#1", "main"),
    ("claude-code#2", "main"),
    ("claude-code", "ci"),
    ("cursor#1", "claude-code"),
    ("claude-codex#1", "ci"),
];
const TARGETS: [(&str, &str); 13] = [
    ("files", "/a"),
    ("files", "/b"),
    ("github", "/a"),
    ("db", "100%_x"),
    ("filesystem", "/a/b.md"),
    ("filesystem", "/a/b"),
    ("filesystem", "/a/b/c?d[e]"),
    ("filesystem", "/a/\u{10ffff}"),
    ("filesystem", "/ab"),
    ("github", "/a#1"),
    ("db", "100%_x.y"),
    ("web", "https://x.org/a"),
    ("web", "https://x.org/a?q=1"),
];
const RESOURCES: [&str; 12] =
    ["/a", "/b", "100%_x", "/c", "*", "/a*", "*b", "*?d[*]", "/a/b/c?d[e]", "**", "/*b*", "/a?b*"];
const FOLDERS: [&str; 8] =
    ["/", "/a", "/a/", "/a/b", "100%_x", "https:", "https://x.org/a", "/none"];
const TEXTS: [&str; 3] = ["Tidy up", "50% done_", "delete"];
const INTENTS: [&str; 3] = ["read", "write", "destructive"];

fn row() -> impl Strategy<Value = Row> {
    let who = (
        select(AGENTS.to_vec()),
        prop::option::of(select(vec!["s1", "s2"])),
        prop::option::of(select(vec!["1", "2"])),
    );
    let what = (
        select(RecordKind::ALL.to_vec()),
        select(SERVERS.to_vec()),
        select(TOOLS.to_vec()),
        prop::option::of(select(INTENTS.to_vec())),
        prop::option::of(class()),
        prop::option::of(select(TARGETS.to_vec())),
    );
    let how = (
        select(RecordStatus::ALL.to_vec()),
        0..20i64,
        prop::option::of(select(TEXTS.to_vec())),
        prop::option::of(select(TEXTS.to_vec())),
    );
    (who, what, how).prop_map(|(who, what, how)| Row {
        agent: who.0,
        session: who.1,
        request: who.2,
        kind: what.0,
        server: what.1,
        tool: what.2,
        intent: what.3,
        class: what.4,
        target: what.5,
        status: how.0,
        at_us: how.1,
        reason: how.2,
        error: how.3,
    })
}

fn class() -> impl Strategy<Value = Class> {
    select(vec![Class::Read, Class::Write, Class::Destructive])
}

/// Generates filters, most with one or two conditions and some with all.
fn filter() -> impl Strategy<Value = RecordFilter> {
    let text = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        prop::option::weighted(0.2, select(words))
    };
    let time = || prop::option::weighted(0.2, (0..20i64).prop_map(moment));
    let first = (
        prop::option::weighted(0.2, select(RecordKind::ALL.to_vec())),
        text(&SERVERS),
        text(&TOOLS),
        prop::option::weighted(0.2, select(RecordStatus::ALL.to_vec())),
        text(&INTENTS),
        prop::option::weighted(0.2, class()),
    );
    let second = (
        text(&["claude-code", "claude-code#1", "main", "ci", "cursor", "nobody", "claude-code#"]),
        text(&["s1", "s2", "s3"]),
        text(&["1", "2"]),
        text(&["files", "github", "nowhere"]),
        text(&RESOURCES),
        text(&FOLDERS),
        any::<bool>(),
        prop::option::weighted(0.2, select(TouchAccess::ALL.to_vec())),
    );
    let third = (time(), time(), text(&["%", "_", "DELETE", "up", "/a", "\\", "git", ""]));
    (first, second, third).prop_map(|(first, second, third)| RecordFilter {
        kind: first.0,
        server: first.1,
        tool: first.2,
        status: first.3,
        intent_type: first.4,
        effective_class: first.5,
        agent: second.0,
        session_id: second.1,
        request_id: second.2,
        target_system: second.3,
        target_resource: second.4,
        under: second.5,
        containers: second.6,
        access: second.7,
        start: third.0,
        end: third.1,
        text: third.2,
    })
}

/// Returns every filter alone, a list of values for each.
fn singles() -> Vec<Vec<RecordFilter>> {
    let none = RecordFilter::default;
    let texts = |words: &[&str], set: fn(&mut RecordFilter, String)| -> Vec<RecordFilter> {
        let of = |word: &&str| {
            let mut filter = none();
            set(&mut filter, (*word).to_owned());
            filter
        };
        words.iter().map(of).collect()
    };
    let times = [0, 1, 10, 19, 20].map(moment);
    let classes = Class::ALL.into_iter();
    vec![
        RecordKind::ALL
            .into_iter()
            .map(|kind| RecordFilter { kind: Some(kind), ..none() })
            .collect(),
        RecordStatus::ALL
            .into_iter()
            .map(|status| RecordFilter { status: Some(status), ..none() })
            .collect(),
        classes.map(|class| RecordFilter { effective_class: Some(class), ..none() }).collect(),
        times.iter().map(|time| RecordFilter { start: Some(*time), ..none() }).collect(),
        times.iter().map(|time| RecordFilter { end: Some(*time), ..none() }).collect(),
        texts(&["github", "files", "100%_db", "Files", ""], |f, word| f.server = Some(word)),
        texts(&["get_issue", "Delete", "delete", ""], |f, word| f.tool = Some(word)),
        texts(&["read", "write", "destructive", ""], |f, word| f.intent_type = Some(word)),
        texts(&["claude-code", "claude-code#1", "ci", "cursor#", ""], |f, word| {
            f.agent = Some(word)
        }),
        texts(&["s1", "s2", ""], |f, word| f.session_id = Some(word)),
        texts(&["1", "2", "01"], |f, word| f.request_id = Some(word)),
        texts(&["files", "db", "nowhere"], |f, word| f.target_system = Some(word)),
        texts(&RESOURCES, |f, word| f.target_resource = Some(word)),
        texts(&["/a/b", "/a/b.md", "/a#1", "100%_x.y", "https://x.org/a?q=1"], |f, word| {
            (f.target_resource, f.containers) = (Some(word), true);
        }),
        texts(&FOLDERS, |f, word| f.under = Some(word)),
        texts(&FOLDERS, |f, word| (f.under, f.containers) = (Some(word), true)),
        TouchAccess::ALL
            .into_iter()
            .map(|access| RecordFilter { access: Some(access), ..none() })
            .collect(),
        texts(&["tidy", "%", "_", "\\", "Ä", "'"], |f, word| f.text = Some(word)),
    ]
}

/// Combines two filters with different conditions.
fn both(one: &RecordFilter, other: &RecordFilter) -> RecordFilter {
    let (one, other) = (one.clone(), other.clone());
    RecordFilter {
        kind: one.kind.or(other.kind),
        server: one.server.or(other.server),
        tool: one.tool.or(other.tool),
        status: one.status.or(other.status),
        intent_type: one.intent_type.or(other.intent_type),
        effective_class: one.effective_class.or(other.effective_class),
        agent: one.agent.or(other.agent),
        session_id: one.session_id.or(other.session_id),
        request_id: one.request_id.or(other.request_id),
        target_system: one.target_system.or(other.target_system),
        target_resource: one.target_resource.or(other.target_resource),
        under: one.under.or(other.under),
        containers: one.containers || other.containers,
        access: one.access.or(other.access),
        start: one.start.or(other.start),
        end: one.end.or(other.end),
        text: one.text.or(other.text),
    }
}

/// Returns every record that pages of this size show, in order; `meanwhile` runs between two pages.
fn visited(
    rig: &Rig,
    filter: &RecordFilter,
    limit: usize,
    mut meanwhile: impl FnMut(),
) -> Vec<i64> {
    let (mut page, mut visited) = (Page::first(limit), Vec::new());
    loop {
        let found = rig.reader.activity(filter, &page).unwrap();
        assert!(found.records.len() <= limit, "{} of {limit}", found.records.len());
        visited.extend(numbers(&found));
        let Some(cursor) = found.next_cursor else { return visited };
        page.cursor = Some(cursor);
        meanwhile();
    }
}

fn moment(at_us: i64) -> Timestamp {
    Timestamp::from_microsecond(at_us).unwrap()
}

fn fits(row: &Row, filter: &RecordFilter) -> bool {
    let same = |wanted: &Option<String>, found: Option<&str>| {
        wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
    };
    let (system, resource) = row.target.unzip();
    filter.kind.is_none_or(|kind| kind == row.kind)
        && same(&filter.server, Some(row.server))
        && same(&filter.tool, Some(row.tool))
        && filter.status.is_none_or(|status| status == row.status)
        && same(&filter.intent_type, row.intent)
        && filter.effective_class.is_none_or(|class| row.class == Some(class))
        && filter.agent.as_deref().is_none_or(|agent| {
            let session = row.agent.0.strip_prefix(agent);
            session.is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
                || row.agent.1 == agent
        })
        && same(&filter.session_id, row.session)
        && same(&filter.request_id, row.request)
        && same(&filter.target_system, system)
        && fits_resource(row, filter)
        && filter.access.is_none_or(|access| fits_access(row, access))
        && filter.start.is_none_or(|start| row.at_us >= start.as_microsecond())
        && filter.end.is_none_or(|end| row.at_us < end.as_microsecond())
        && filter.text.as_deref().is_none_or(|text| {
            [Some(row.server), Some(row.tool), row.reason, row.error, system, resource]
                .into_iter()
                .flatten()
                .any(|found| found.to_lowercase().contains(&text.to_lowercase()))
        })
}

fn fits_resource(row: &Row, filter: &RecordFilter) -> bool {
    let (named, folder) = (filter.target_resource.as_deref(), filter.under.as_deref());
    let Some((system, resource)) = row.target else { return named.is_none() && folder.is_none() };
    let around = |name: &str| filter.containers && contains(system, resource, name);
    let is_within = folder.is_none_or(|folder| {
        resource == folder
            || contains(system, folder, resource)
            || (named.is_none() && around(folder))
    });
    is_within && named.is_none_or(|name| glob(name.as_bytes(), resource.as_bytes()) || around(name))
}

fn fits_access(row: &Row, access: TouchAccess) -> bool {
    row.target.is_some()
        && match (access, row.class) {
            (TouchAccess::Read, class) => class == Some(Class::Read),
            (TouchAccess::Write, class) => class.is_some_and(|class| class != Class::Read),
            (TouchAccess::Delete, class) => class == Some(Class::Destructive),
            (TouchAccess::Unknown, class) => class.is_none(),
        }
}

fn expected(rows: &[Row], filter: &RecordFilter) -> Vec<i64> {
    let numbers = 1..=i64::try_from(rows.len()).unwrap();
    let fitting = numbers.zip(rows).filter(|(_, row)| fits(row, filter));
    let mut numbers: Vec<i64> = fitting.map(|(number, _)| number).collect();
    numbers.reverse();
    numbers
}

fn numbers(activity: &Activity) -> Vec<i64> {
    activity.records.iter().map(|record| record.number).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn filters_find_what_fits(
        rows in prop::collection::vec(row(), 0..90),
        filters in prop::collection::vec(filter(), 40),
    ) {
        let rig = Rig::new(&rows);
        for filter in &filters {
            let expected = expected(&rows, filter);
            let found = rig.reader.activity(filter, &Page::first(100)).unwrap();
            prop_assert_eq!(numbers(&found), expected.clone(), "{:?}", filter);
            prop_assert_eq!(found.total.count(), expected.len() as u64, "{:?}", filter);
            prop_assert!(found.total.is_exact() && found.next_cursor.is_none());
            let exported = rig.reader.records(filter.clone(), RecordDetail::Brief);
            let exported: Vec<i64> = exported.map(|record| record.unwrap().number).collect();
            prop_assert_eq!(exported, expected, "{:?}", filter);
        }
    }

    /// Each filter with all of its values, and with one value of every other filter.
    #[test]
    fn each_filter_alone_and_with_every_other_finds_what_fits(
        rows in prop::collection::vec(row(), 30..90),
        pick in 0..1_000usize,
    ) {
        let rig = Rig::new(&rows);
        let singles = singles();
        let mut asked: Vec<RecordFilter> = singles.concat();
        for (place, one) in singles.iter().enumerate() {
            for (step, other) in singles[place + 1..].iter().enumerate() {
                asked.push(both(&one[pick % one.len()], &other[(pick + step) % other.len()]));
            }
        }
        for filter in &asked {
            let found = rig.reader.activity(filter, &Page::first(100)).unwrap();
            prop_assert_eq!(numbers(&found), expected(&rows, filter), "{:?}", filter);
        }
    }

    /// For any size of a page, even if new records arrive in between.
    #[test]
    fn pages_of_every_size_show_each_record_once(
        rows in prop::collection::vec(row(), 0..60),
        filters in prop::collection::vec(filter(), 3),
        sizes in prop::collection::vec(1..=100usize, 3),
    ) {
        let rig = Rig::new(&rows);
        for filter in filters.iter().chain([&RecordFilter::default()]) {
            let expected = expected(&rows, filter);
            for limit in sizes.iter().copied().chain([1, 2, expected.len().max(1)]) {
                let found = visited(&rig, filter, limit, || {});
                prop_assert_eq!(&found, &expected, "{} of {:?}", limit, filter);
            }
        }
        let mut next = rows.len();
        let found = visited(&rig, &RecordFilter::default(), sizes[0].min(7), || {
            next += 1;
            insert(&rig.db, next, &Row::plain());
        });
        prop_assert_eq!(found, expected(&rows, &RecordFilter::default()));
    }

    /// However small the steps and the time limit, each record appears once.
    #[test]
    fn pages_visit_each_record_once(
        rows in prop::collection::vec(row(), 0..60),
        filters in prop::collection::vec(filter(), 10),
        limit in 1..8usize,
        step in 1..20i64,
        sort in 0..30u64,
        hurried in any::<bool>(),
    ) {
        let rig = Rig::new(&rows);
        let time = std::time::Duration::from_secs(if hurried { 0 } else { 60 });
        let effort = Effort { step, search: time, count: time, sort };
        for filter in &filters {
            let (mut visited, mut below) = (Vec::new(), None);
            while let Some(search) = filter.search(&rig.db, effort).unwrap() {
                let found = search.below(&rig.db, below, limit).unwrap();
                prop_assert!(found.positions.len() <= limit);
                visited.extend(found.positions);
                below = found.more_below;
                let total = search.count(&rig.db).unwrap();
                prop_assert!(hurried || total.is_exact());
                if below.is_none() {
                    prop_assert!(total.count() <= visited.len() as u64);
                    prop_assert!(!total.is_exact() || total.count() == visited.len() as u64);
                    break;
                }
            }
            prop_assert_eq!(visited, expected(&rows, filter), "{:?}", filter);
        }
    }
}
