//! Copies in the home: only listed files are read, and nothing else is listed.

use store::COPIES;

use super::support::Home;

#[tokio::test]
async fn only_exports_in_their_folder_are_copies() {
    let home = Home::new();
    let store = home.open();
    assert!(store.copies().is_empty(), "the folder need not be there");
    let folder = home.path().join(COPIES);
    std::fs::create_dir(&folder).unwrap();
    std::fs::create_dir(folder.join("folder.jsonl")).unwrap();
    for (name, text) in [("b.jsonl", "one\n\ntwo"), ("a.jsonl", ""), ("notes.txt", "x")] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let copies = store.copies();
    let named: Vec<(&str, u64)> = copies.iter().map(|copy| (&*copy.name, copy.bytes)).collect();
    assert_eq!(named, [("a.jsonl", 0), ("b.jsonl", 8)]);
    assert!(copies.iter().all(|copy| copy.modified_at.is_some()));

    let lines = |name: &str| {
        let lines = store.copy_lines(name).unwrap()?;
        Some(lines.map(Result::unwrap).collect::<Vec<String>>())
    };
    assert_eq!(lines("b.jsonl").unwrap(), ["one", "", "two"]);
    assert!(lines("a.jsonl").unwrap().is_empty());
    for name in ["notes.txt", "folder.jsonl", "../ledger.db", "", "c.jsonl"] {
        assert!(lines(name).is_none(), "{name}");
    }
    store.close().await.unwrap();
}
