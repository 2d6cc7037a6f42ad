//! Claims of the documents about the product: places in the code that they name, lists of statuses, and
//! features that do not exist.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use domain::policy::{Lock, LockStatus};
use mcp::Version;
use serde_json::json;
use store::RecordStatus;
use testkit::gate::Gate;

use super::{blocks, fault, root, without_blocks, words};
use crate::tidy::{Source, files, rust_files};

/// Pages that name functions, types and tests.
const ABOUT_CODE: [&str; 12] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "SECURITY.md",
    "docs/code-map.md",
    "docs/decisions.md",
    "docs/performance.md",
    "docs/search.md",
    "docs/security.md",
    "docs/trust.md",
    "crates/store/README.md",
    "crates/gateway/src/upstream/README.md",
];

/// Names that these pages mention and that are not in the code: that of another project, and the
/// file that a command writes.
const ELSEWHERE: [&str; 2] = ["axum::serve", "crates/countersign/benches/results/compare.json"];

/// The words in front of a definition's name.
const KINDS: [&str; 9] =
    ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "macro_rules!"];

const OUT_OF_SCOPE: &str = "docs/out-of-scope.md";

#[test]
fn smoke_places_in_the_code_exist() {
    let code = Code::of_workspace();
    for page in ABOUT_CODE {
        let faults = code.faults(&without_blocks(&text(page)));
        assert!(faults.is_empty(), "{page}:\n{}", faults.join("\n"));
    }
    let text = "`crates/nowhere` and `cli/nowhere.rs`, `dispatch` of `main.rs`, `Gateway::no_such_method` \
        *`hostile::no_test_of_this_name`*; but `crates/domain`, `cli/activity.rs`, `dispatch` in \
        `crates/countersign/src/lib.rs`, `Gateway::make`, `config::tests`, `cli/<command>.rs`, \
        `axum::serve`, `disp…` in `lib.rs`, `patch…` in `lib.rs`";
    let expected = [
        "crates/nowhere",
        "cli/nowhere.rs",
        "Gateway::no_such_method",
        "hostile::no_test_of_this_name",
        "dispatch in main.rs",
        "patch… in lib.rs",
    ];
    assert_eq!(code.faults(text), expected);
}

#[test]
fn every_status_is_documented() {
    let trust = text("docs/trust.md");
    let (_, section) = trust.split_once("## Why a tool is locked").expect("the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let statuses: Vec<&str> = LockStatus::ALL.into_iter().map(LockStatus::as_str).collect();
    assert_eq!(rows.collect::<Vec<_>>(), statuses, "docs/trust.md, in their precedence");
    let rest = text("docs/rest.md");
    let (_, listed) = rest.split_once("Tool statuses: ").expect("the list in docs/rest.md");
    let listed = listed.split('.').next().unwrap_or_default();
    assert_eq!(spans(listed).collect::<Vec<_>>(), Lock::words(), "docs/rest.md");
    let ledger = text("docs/ledger.md");
    let listed = ledger.lines().find(|line| line.starts_with("The status is ")).expect("a list");
    let listed: BTreeSet<&str> = spans(listed).collect();
    let records = RecordStatus::ALL.map(RecordStatus::as_str);
    for status in records {
        assert!(listed.contains(status), "docs/ledger.md lacks the status '{status}'");
    }
    let (_, listed) = rest.split_once("`tool`, `status` (").expect("the filter in docs/rest.md");
    let listed = listed.split(')').next().unwrap_or_default();
    assert_eq!(spans(listed).collect::<Vec<_>>(), records, "docs/rest.md");
    let page = text("crates/admin/page/view/activity.mjs");
    let listed = page.lines().find_map(|line| line.strip_prefix("const STATUSES = "));
    let listed = listed.expect("the list of the page").split('\'').skip(1).step_by(2);
    assert_eq!(listed.collect::<Vec<_>>(), records, "the page");
}

#[tokio::test]
async fn what_is_out_of_scope_does_not_exist() {
    let facts = Facts::of_documents();
    let rows = missing_features(&text(OUT_OF_SCOPE));
    assert!(rows.len() > 10, "only {} rows were found", rows.len());
    let mut faults = Vec::new();
    for row in &rows {
        faults.extend(facts.faults(row).await);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn a_feature_that_exists_is_noticed() {
    let facts = Facts::of_documents();
    let page = "| missing | instead | would be |\n|---|---|---|\n\
        | TLS on its own port | a proxy | – |\n| Rate limits | none | – |\n\
        | Sign-in of each agent | one | `login` |\n| Writing the file | never | `countersign connect --import` |\n\
        | Calls over REST | none | `POST /api/v1/tools/call` |\n| Nothing named | none | x |\n\
        | Certificates in place of `tls` | none | `client_ca`, `countersign tls`, `GET /api/v1/tls` |\n\
        | Records elsewhere | none | `store` |\n| Protocol 2025-11-25 | 2024-11-05 to 2025-06-18. | – |\n\
        | Protocol 1999-01-01 | 2024-11-05 to 2025-11-25. | – |";
    let mut faults = Vec::new();
    for row in missing_features(page) {
        faults.extend(facts.faults(&row).await);
    }
    let expected = [
        "TLS on its own port: the config has the key 'tls'",
        "Rate limits: the config has the key 'rate_limit'",
        "Sign-in of each agent: 'login' exists",
        "Writing the file: 'countersign connect --import' exists",
        "Calls over REST: 'POST /api/v1/tools/call' exists",
        "Nothing named: no name and no –",
        "Protocol 2025-11-25: the gate speaks it",
        "Protocol 2025-11-25: the gate speaks 2024-11-05 to 2025-11-25",
    ];
    assert_eq!(faults, expected);
}

/// The output that the front page shows is that of the program: its sentences are in the source or
/// in a golden screen, and its tables have the columns of one.
#[test]
fn what_the_readme_shows_is_what_the_program_prints() {
    let printed = Printed::of_workspace();
    let shown = blocks(Path::new("README.md"));
    let shown: Vec<String> =
        shown.into_iter().filter(|it| it.mark == "console").map(|it| it.text).collect();
    assert!(shown.len() >= 4, "{} blocks were found", shown.len());
    let claims: Vec<String> = shown.iter().flat_map(|text| claims_of(text)).collect();
    for expected in ["is ready on", "TIME AGENT TOOL INTENT STATUS DURATION TARGET WHY ID"] {
        assert!(claims.iter().any(|claim| claim == expected), "{claims:?}");
    }
    let faults: Vec<&String> = claims.iter().filter(|claim| !printed.has(claim)).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    let invented = "$ countersign activity list no such words here\nTIME  AGENT  PLACE\n\
        Countersign 0.1.0 is ready on http://x\n'x' is quite outside the workspace root, isn't it";
    let claims = claims_of(invented);
    let faults: Vec<&String> = claims.iter().filter(|claim| !printed.has(claim)).collect();
    assert_eq!(faults, ["TIME AGENT PLACE", "is quite outside the workspace root,"]);
}

#[tokio::test]
async fn agents_see_as_many_tools_as_the_readme_says() {
    const NUMBERS: [&str; 10] =
        ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let readme = text("README.md");
    let (_, told) = readme.split_once("the agent sees ").expect("the number of tools");
    let told = told.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    let gate = Gate::scripted(json!([{"name": "t"}])).await;
    let list = gate.http().await.request("tools/list", json!({})).await.unwrap();
    let count = list["tools"].as_array().unwrap().len();
    assert_eq!(NUMBERS[count], told, "{list}");
}

/// Returns what an output claims that the program prints: the heads of tables, and the longest parts
/// of its sentences that no call changes.
fn claims_of(output: &str) -> Vec<String> {
    let mut claims = Vec::new();
    for line in output.lines().filter(|line| !line.contains("$ ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_upper = |word: &&str| word.chars().all(|c| c.is_ascii_uppercase());
        if words.len() > 1 && words.iter().all(is_upper) {
            claims.push(words.join(" "));
            continue;
        }
        let cells = line.split("  ").filter(|cell| !cell.trim().is_empty());
        claims.extend(cells.flat_map(sentences));
    }
    claims
}

/// Returns each run of three words or more that have letters alone, up to a colon.
fn sentences(cell: &str) -> Vec<String> {
    let (mut found, mut run) = (Vec::new(), Vec::new());
    let is_fixed = |word: &str| {
        let letters = word.trim_end_matches([',', ';', ':', '.']);
        !letters.is_empty() && letters.chars().all(|c| c.is_ascii_alphabetic())
    };
    for word in cell.split_whitespace().chain([""]) {
        if is_fixed(word) {
            run.push(word);
        }
        if !is_fixed(word) || word.ends_with(':') {
            found.extend((run.len() >= 3).then(|| run.join(" ")));
            run.clear();
        }
    }
    found
}

/// The texts that the program prints.
struct Printed {
    /// The sources, with texts of several lines in one.
    sources: Vec<String>,
    /// The lines of the golden screens, with single blanks.
    screens: Vec<String>,
}

impl Printed {
    fn of_workspace() -> Printed {
        let of_program = rust_files().into_iter().filter(|rust| rust.shown().contains("/src/"));
        let joined = |source: Source| {
            let mut lines = source.text.split("\\\n");
            let first = lines.next().unwrap_or_default().to_owned();
            lines.fold(first, |text, line| text + line.trim_start())
        };
        let folder = root().join("crates/countersign/tests/it/golden/screens");
        let screens = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let lines = screens.flat_map(|file| {
            let text = fs::read_to_string(file).unwrap();
            let lines = text.lines().map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
            lines.collect::<Vec<_>>()
        });
        Printed { sources: of_program.map(joined).collect(), screens: lines.collect() }
    }

    /// Reports whether a claim is true: a head of a table is that of a screen, and a sentence is in
    /// a source or on a screen.
    fn has(&self, claim: &str) -> bool {
        if claim.chars().all(|c| c.is_ascii_uppercase() || c == ' ') {
            return self.screens.iter().any(|line| line == claim);
        }
        self.sources.iter().chain(&self.screens).any(|text| text.contains(claim))
    }
}

/// The code as documents may name it.
struct Code {
    files: BTreeSet<String>,
    rust: Vec<RustFile>,
}

struct RustFile {
    source: Source,
    /// The names after `fn`, `struct` and the like.
    defined: BTreeSet<String>,
    /// The words of lines that begin an `impl`.
    implemented: BTreeSet<String>,
}

impl Code {
    fn of_workspace() -> Code {
        let files = files().iter().map(|file| file.display().to_string()).collect();
        Code { files, rust: rust_files().into_iter().map(RustFile::new).collect() }
    }

    /// Returns what a text names that does not exist.
    fn faults(&self, text: &str) -> Vec<String> {
        let missing = spans(text).filter(|span| !self.has(span)).map(str::to_owned);
        let parts: Vec<&str> = text.split('`').collect();
        let misplaced = parts.windows(4).skip(1).step_by(2).filter_map(|parts| {
            let (name, file) = (parts[0].trim_end_matches('!'), parts[2]);
            let is_place = [" in ", " of "].contains(&parts[1]) && file.ends_with(".rs");
            let is_named = |defined: &String| match name.strip_suffix('…') {
                Some(start) => defined.starts_with(start),
                None => defined == name,
            };
            let is_there = |rust: &RustFile| {
                is_file(&rust.source.shown(), file) && rust.defined.iter().any(is_named)
            };
            (is_place && !self.rust.iter().any(is_there)).then(|| format!("{name} in {file}"))
        });
        missing.chain(misplaced).collect()
    }

    /// Reports whether a name exists, if it looks like that of a file, a folder, a function, a type
    /// or a test.
    fn has(&self, name: &str) -> bool {
        if ELSEWHERE.contains(&name) {
            return true;
        }
        let is_path =
            |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
        let is_in_folder =
            ["crates/", "docs/", "examples/"].iter().any(|top| name.starts_with(top));
        if is_path(name) && (is_in_folder || name.ends_with(".rs")) {
            let name = name.trim_start_matches("../");
            let folder = format!("{}/", name.trim_end_matches('/'));
            return self.files.iter().any(|file| is_file(file, name) || file.starts_with(&folder));
        }
        let is_name = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let parts: Vec<&str> = name.split("::").filter(|part| *part != "tests").collect();
        let [.., place, last] = parts[..] else { return true };
        if parts.iter().any(|part| part.is_empty() || !is_name(part)) {
            return true;
        }
        let is_upper = |name: &str| name.starts_with(|first: char| first.is_ascii_uppercase());
        self.rust.iter().any(|rust| match (is_upper(place), is_upper(last)) {
            (true, true) => rust.defined.contains(place) && rust.source.text.contains(last),
            (true, false) => rust.is_of(place) && rust.defined.contains(last),
            (false, _) => {
                rust.is_module(place) && (rust.defined.contains(last) || rust.is_module(last))
            }
        })
    }
}

impl RustFile {
    fn new(source: Source) -> RustFile {
        let (mut defined, mut implemented) = (BTreeSet::new(), BTreeSet::new());
        for line in source.text.lines() {
            let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || "_!".contains(c)));
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            let names = words.windows(2).filter(|pair| KINDS.contains(&pair[0]));
            defined.extend(names.map(|pair| pair[1].to_owned()));
            if words.first() == Some(&"impl") {
                implemented.extend(words.into_iter().map(str::to_owned));
            }
        }
        RustFile { source, defined, implemented }
    }

    /// Reports whether the file defines a type or has methods of it.
    fn is_of(&self, name: &str) -> bool {
        self.defined.contains(name) || self.implemented.contains(name)
    }

    /// Reports whether the file is a module of this name, or lies in its folder or crate.
    fn is_module(&self, name: &str) -> bool {
        let (file, folder) = (format!("{name}.rs"), name.replace('_', "-"));
        let is_it = |part: &OsStr| part == &*file || part == &*folder || part == name;
        self.source.path.iter().any(is_it)
    }
}

/// Reports whether a file has this path, or one that ends with it.
fn is_file(file: &str, path: &str) -> bool {
    file.strip_suffix(path).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// The product as other documents describe it, which are kept true.
struct Facts {
    /// Keys of the config that have an effect.
    keys: BTreeSet<String>,
    /// Those of the whole file.
    top_keys: Vec<String>,
    routes: String,
}

impl Facts {
    fn of_documents() -> Facts {
        let config = text("docs/config.md");
        let key = |line: &str| {
            let name = line.strip_prefix("| `")?.split('`').next()?;
            (!line.contains("| ignored")).then(|| name.to_owned())
        };
        let (_, tables) = config.split_once("| `$schema`").expect("the keys of the file");
        let top = tables.split("\n\n").next().unwrap_or_default();
        let top_keys: Vec<String> = top.lines().filter_map(key).collect();
        assert!(top_keys.len() > 15, "{top_keys:?}");
        Facts {
            keys: config.lines().filter_map(key).collect(),
            top_keys,
            routes: text("docs/rest.md"),
        }
    }

    /// Returns what is wrong with a row: it denies something that exists.
    async fn faults(&self, row: &MissingFeature) -> Vec<String> {
        let mut faults = Vec::new();
        let plain: String = row.feature.split('`').step_by(2).collect();
        let plain = plain.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        let named = |key: &&String| {
            let is = |word: String| format!("_{plain}_").contains(&word);
            is(format!("_{key}_")) || is(format!("_{key}s_"))
        };
        let named = self.top_keys.iter().filter(named);
        faults.extend(named.map(|key| format!("the config has the key '{key}'")));
        if let Some(date) = row.feature.strip_prefix("Protocol ") {
            let [oldest, .., newest] = Version::ALL.map(Version::as_str);
            let range = format!("{oldest} to {newest}");
            let is_spoken = Version::parse(date).is_some();
            faults.extend(is_spoken.then(|| "the gate speaks it".to_owned()));
            let is_told = row.instead.contains(&range);
            faults.extend((!is_told).then(|| format!("the gate speaks {range}")));
        }
        for name in spans(&row.names) {
            if self.exists(name).await {
                faults.push(format!("'{name}' exists"));
            }
        }
        if spans(&row.names).next().is_none() && row.names != "–" {
            faults.push("no name and no –".to_owned());
        }
        faults.into_iter().map(|fault| format!("{}: {fault}", row.feature)).collect()
    }

    async fn exists(&self, name: &str) -> bool {
        match words(name).split_first() {
            Some((program, rest)) if program == "countersign" => fault(rest).await.is_none(),
            Some((_, path)) if !path.is_empty() => self.routes.contains(&format!("`{name}")),
            _ => self.keys.contains(name),
        }
    }
}

/// A row of the page: something that the product does not do.
struct MissingFeature {
    feature: String,
    /// The part of the product that serves in its place.
    instead: String,
    /// The names that it would have.
    names: String,
}

fn missing_features(page: &str) -> Vec<MissingFeature> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows = rows.filter(|row| !row.ends_with("| would be"));
    let cells = rows.filter_map(|row| {
        let (feature, rest) = row.split_once(" | ")?;
        let (instead, names) = rest.rsplit_once(" | ")?;
        Some([feature, instead, names].map(str::to_owned))
    });
    cells.map(|[feature, instead, names]| MissingFeature { feature, instead, names }).collect()
}

/// Returns the code in a text of one page.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn text(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}
