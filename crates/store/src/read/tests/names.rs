//! Ids by a part of them, and the names that are near to one that is not stored.

use super::rig::{Rig, Row};
use crate::read::{IdKind, NearNames, RecordFilter};

#[test]
fn an_id_is_found_by_itself_its_beginning_or_its_end() {
    let rows = [("mcp-aaaa-1111", 0), ("mcp-aaaa-2222", 1), ("2222", 2), ("mcp-aaaa-1111", 3)];
    let rows = rows.map(|(session, at_us)| Row { session: Some(session), at_us, ..Row::plain() });
    let rig = Rig::new(&[&rows[..], &vec![Row::plain(); 8]].concat());
    for (text, expected) in [
        ("mcp-aaaa-1111", &["mcp-aaaa-1111"][..]),
        ("1111", &["mcp-aaaa-1111"]),
        ("mcp-aaaa-2", &["mcp-aaaa-2222"]),
        ("mcp-aaaa", &["mcp-aaaa-1111", "mcp-aaaa-2222"]),
        // A whole id is meant, whatever else ends with it.
        ("2222", &["2222"]),
        ("s1", &["s1"]),
        ("111", &[]),
        ("%", &[]),
        ("", &[]),
    ] {
        assert_eq!(rig.reader.ids(IdKind::Session, text).unwrap(), expected, "{text}");
    }
    assert_eq!(rig.reader.ids(IdKind::Record, "id-1").unwrap(), ["id-1"]);
    assert_eq!(rig.reader.ids(IdKind::Record, "d-12").unwrap(), ["id-12"]);
}

#[test]
fn names_near_to_an_unknown_one_are_found() {
    let targets = [
        ("filesystem", "/srv/app/main.rs"),
        ("filesystem", "/srv/app/notes.md"),
        ("filesystem", "/srv/web/index.html"),
        ("github.com", "owner/repo#1"),
    ];
    let row = |target| Row { target: Some(target), ..Row::plain() };
    let rig = Rig::new(&targets.map(row));
    let text = |text: &str| Some(text.to_owned());
    let none = RecordFilter::default;
    let resource = |name: &str| RecordFilter { target_resource: text(name), ..none() };
    let folder = |name: &str| RecordFilter { under: text(name), ..none() };
    let system = |name: &str, of: RecordFilter| RecordFilter { target_system: text(name), ..of };
    for (filter, field, names) in [
        (resource("/srv/app/mian.rs"), "target_resource", "/srv/app/main.rs"),
        (resource("notes.md"), "target_resource", "/srv/app/notes.md"),
        (folder("/srv/apps"), "under", "/srv/app"),
        (folder("web"), "under", "/srv/web"),
        (folder("owner/rep"), "under", "owner/repo"),
        (system("filesytem", folder("/srv")), "target_system", "filesystem"),
        (
            system("filesystem", resource("/srv/web/index.htm")),
            "target_resource",
            "/srv/web/index.html",
        ),
    ] {
        let near =
            rig.reader.near_targets(&filter).unwrap().unwrap_or_else(|| panic!("{filter:?}"));
        assert_eq!((near.field, &near.names[..1]), (field, &[names.to_owned()][..]), "{filter:?}");
    }
    for known in [
        none(),
        resource("/srv/app/main.rs"),
        RecordFilter { server: text("nobody"), ..folder("/srv/app") },
        resource("/srv/*.md"),
        resource("/srv/*.none"),
        folder("/var"),
        system("github.com", none()),
        system("mars", none()),
    ] {
        assert_eq!(rig.reader.near_targets(&known).unwrap(), None::<NearNames>, "{known:?}");
    }
}
