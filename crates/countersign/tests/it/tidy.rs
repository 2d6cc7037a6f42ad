//! Project rules that neither the compiler nor a lint checks: the dependencies between crates, the
//! limits of the pure crates, the beginnings of files and comments, size limits, and the agreement
//! of documents and code. Each rule is a function from text to complaints, and a test shows that it
//! complains.

mod circles;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

/// The workspace dependencies of each crate, no more and no less. `testkit` has no dependents here:
/// only tests use it.
const LAYERS: [(&str, &[&str]); 23] = [
    ("mcp", &[]),
    ("plugin-sdk", &[]),
    ("text", &[]),
    ("redact", &[]),
    ("embed", &[]),
    ("receipt", &["text"]),
    ("search", &["text", "embed"]),
    ("suspect", &["text"]),
    ("touch", &["text", "redact"]),
    ("domain", &["text", "redact", "embed", "receipt", "search", "suspect", "touch"]),
    ("workflow", &["text", "domain"]),
    ("provider", &["mcp", "text", "domain"]),
    ("clients", &["redact", "domain"]),
    ("telemetry", &["mcp", "redact", "domain", "provider"]),
    ("vault", &["text", "receipt", "domain"]),
    ("store", &["text", "redact", "receipt", "touch", "domain", "vault"]),
    ("access", &["mcp", "text", "redact", "domain", "vault", "store"]),
    ("tools", &["mcp", "plugin-sdk", "text", "domain", "provider"]),
    ("runner", &["mcp", "text", "domain", "workflow", "provider", "store", "tools"]),
    (
        "gateway",
        &[
            "mcp", "text", "redact", "embed", "receipt", "search", "suspect", "touch", "domain",
            "provider", "vault", "store", "access",
        ],
    ),
    (
        "admin",
        &[
            "mcp", "text", "redact", "receipt", "search", "suspect", "touch", "domain", "provider",
            "store", "access", "gateway",
        ],
    ),
    ("testkit", &["mcp", "receipt"]),
    (
        "countersign",
        &[
            "mcp",
            "text",
            "redact",
            "receipt",
            "touch",
            "domain",
            "workflow",
            "provider",
            "clients",
            "telemetry",
            "vault",
            "store",
            "tools",
            "runner",
            "gateway",
            "admin",
        ],
    ),
];

/// Crates that decide and perform no I/O.
const PURE: [&str; 9] =
    ["text", "redact", "embed", "receipt", "search", "suspect", "touch", "domain", "workflow"];

/// Crates usable without the rest of the workspace, in their tests as well.
const ALONE: [&str; 5] = ["mcp", "text", "plugin-sdk", "redact", "embed"];

/// Crates that wait, perform I/O or draw random numbers.
const NOT_FOR_PURE: [&str; 17] = [
    "async-trait",
    "axum",
    "chrono",
    "futures",
    "futures-util",
    "getrandom",
    "http",
    "hyper",
    "rand",
    "reqwest",
    "rusqlite",
    "rustix",
    "tempfile",
    "time",
    "tokio",
    "tokio-util",
    "uuid",
];

const NOT_IN_PURE: [&str; 14] = [
    "std::fs",
    "std::env",
    "std::net::Tcp",
    "std::net::Udp",
    "std::os",
    "std::process",
    "std::thread",
    "Instant::now",
    "SystemTime",
    "Timestamp::now",
    "Zoned::now",
    "async fn",
    "async move",
    ".await",
];

const SHARED_NAMES: &str = "tests/it/golden/shared_type_names.txt";

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;

/// Names that say nothing about the content.
const EMPTY_NAMES: [&str; 13] = [
    "manager", "managers", "handler", "handlers", "helper", "helpers", "util", "utils", "common",
    "misc", "base", "data", "info",
];

/// Openings of a clause that lacks its main clause. Sentences may begin with "if" or "when".
const HEADLESS: [&str; 13] = [
    "What", "Whatever", "Whether", "Where", "Who", "Whoever", "Whom", "Whose", "Which", "Why",
    "How", "Of a", "Of what",
];

const TABLE_START: &str = "<!-- codes: made from crates/domain/src/code.rs -->\n";
const TABLE_END: &str = "<!-- end of codes -->\n";

#[test]
fn smoke_crate_dependencies_follow_the_layers() {
    assert_none(layer_faults(&metadata()));
}

#[test]
fn a_forbidden_edge_is_noticed() {
    for (package, dependency, kind) in [
        ("mcp", "domain", Value::Null),
        ("mcp", "testkit", json!("dev")),
        ("mcp", "provider", json!("build")),
        ("domain", "mcp", Value::Null),
        ("domain", "workflow", Value::Null),
        ("redact", "domain", json!("dev")),
        ("store", "provider", Value::Null),
        ("store", "workflow", Value::Null),
        ("gateway", "tools", Value::Null),
        ("gateway", "workflow", Value::Null),
        ("admin", "tools", Value::Null),
        ("runner", "gateway", Value::Null),
        ("provider", "store", Value::Null),
        ("store", "gateway", json!("build")),
        ("tools", "store", Value::Null),
        ("gateway", "admin", Value::Null),
        ("gateway", "testkit", Value::Null),
        ("testkit", "gateway", Value::Null),
        ("countersign", "testkit", Value::Null),
    ] {
        let mut changed = metadata();
        depend(&mut changed, package, json!({"name": dependency, "path": "x", "kind": kind}));
        let faults = layer_faults(&changed);
        assert_eq!(faults.len(), 1, "{package} -> {dependency}: {faults:?}");
        assert!(faults[0].starts_with(&format!("{package} depends on {dependency}")), "{faults:?}");
    }
    for (name, crate_name) in [("receipt", "tokio"), ("domain", "reqwest"), ("workflow", "rand")] {
        let mut changed = metadata();
        depend(&mut changed, name, json!({"name": crate_name, "path": null, "kind": null}));
        assert_eq!(layer_faults(&changed).len(), 1, "{name} -> {crate_name}");
    }
    let mut changed = metadata();
    let dependencies = package(&mut changed, "admin")["dependencies"].as_array_mut().unwrap();
    dependencies.retain(|dependency| dependency["name"] != "receipt");
    let unused = "admin may depend on receipt and does not: take the edge out of tidy.rs";
    assert_eq!(layer_faults(&changed), [unused]);
    let mut changed = metadata();
    package(&mut changed, "provider")["name"] = json!("stranger");
    assert_eq!(layer_faults(&changed), ["stranger has no layer: give it a row in tidy.rs"]);
}

#[test]
fn tests_may_use_more_than_the_code_they_test() {
    let mut changed = metadata();
    depend(&mut changed, "store", json!({"name": "testkit", "path": "x", "kind": "dev"}));
    assert_none(layer_faults(&changed));
}

#[test]
fn pure_crates_do_no_io() {
    let is_pure =
        |file: &Source| PURE.iter().any(|name| file.path.starts_with(format!("crates/{name}/src")));
    let sources = rust_files().into_iter().filter(is_pure);
    assert_none(sources.flat_map(|file| purity_faults(&file)));
}

/// Tokio compiles its task code again for every future that it is given directly.
#[test]
fn tasks_are_started_by_one_module() {
    let tasks = ["tokio::spawn(", "tokio::task::spawn"];
    let is_program = |file: &Source| {
        let apart = ["crates/testkit", "crates/plugin-sdk", "crates/mcp/src/task.rs"];
        !apart.iter().any(|path| file.path.starts_with(path))
    };
    let sources = rust_files().into_iter().filter(is_program);
    assert_none(sources.flat_map(|file| word_faults(&file, &tasks, "instead of `mcp::task`")));
}

#[test]
fn a_clock_in_domain_is_noticed_and_a_test_is_left_alone() {
    let file = |text: &str| Source { path: "crates/domain/src/x.rs".into(), text: text.to_owned() };
    assert_eq!(purity_faults(&file("fn f() { Instant::now(); }")).len(), 1);
    assert_eq!(purity_faults(&file("async fn f() { g().await }")).len(), 2);
    assert_none(purity_faults(&file("/// std::fs\nfn f() { g(\".await\"); } // std::env")));
    assert_none(purity_faults(&file("#[cfg(test)]\nmod tests {\n fn f() { std::fs::x() }\n}")));
    let after = "#[cfg(test)]\nmod tests;\nfn f() { std::fs::x() }";
    assert_eq!(purity_faults(&file(after)).len(), 1);
}

#[test]
fn every_file_starts_with_a_module_comment() {
    let silent = rust_files().into_iter().filter(|file| !file.text.starts_with("//! "));
    assert_none(silent.map(|file| format!("{}: does not start with `//! `", file.shown())));
}

#[test]
fn comments_open_with_a_sentence_that_stands_alone() {
    assert_none(rust_files().iter().flat_map(comment_faults));
    let text = "//! What is asked.\n//! Which is fine.\n\n/// Whole numbers.\nfn f() {\n    /// Of \
                a tool.\n    /// Whose?\n}\n\n/// Returns it.\n///\n/// How it works.\n";
    let faults = comment_faults(&Source { path: "x.rs".into(), text: text.to_owned() });
    let places: Vec<&str> = faults.iter().map(|fault| &fault[..6]).collect();
    assert_eq!(places, ["x.rs:1", "x.rs:6"], "{faults:?}");
}

#[test]
fn no_file_has_a_catch_all_name() {
    assert_none(rust_files().iter().flat_map(name_faults));
    let named = |path: &str| name_faults(&Source { path: path.into(), text: String::new() }).len();
    assert_eq!(named("crates/x/src/front/mod.rs"), 1);
    assert_eq!(named("crates/x/src/utils.rs"), 1);
    assert_eq!(named("crates/x/src/common/parse.rs"), 1);
    assert_eq!(named("crates/x/src/tool_helper.rs"), 1);
    assert_eq!(named("crates/x/src/database.rs"), 0);
}

/// One name, one thing. The names that several public types still share are listed; the list may
/// only shrink.
#[test]
fn no_more_types_share_a_name() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(SHARED_NAMES);
    let listed = std::fs::read_to_string(file).unwrap();
    let listed: BTreeSet<String> = listed.lines().map(str::to_owned).collect();
    let shared = shared_names(&rust_files());
    let new: Vec<_> = shared.difference(&listed).collect();
    assert!(new.is_empty(), "two public types have the name: {new:?}");
    let gone: Vec<_> = listed.difference(&shared).collect();
    assert!(gone.is_empty(), "no longer shared, take them off {SHARED_NAMES}: {gone:?}");
}

#[test]
fn a_shared_name_is_noticed() {
    let file =
        |text: &str| Source { path: PathBuf::from("crates/x/src/a.rs"), text: text.to_owned() };
    let files = [
        file("pub struct Run;\npub(crate) struct Step;\n// pub struct Note;\npub enum Kind {}"),
        file(
            "pub struct Step;\npub trait Run {}\npub type Note = u8;\n#[cfg(test)]\nmod tests {\n    pub struct Kind;\n}",
        ),
    ];
    assert_eq!(shared_names(&files), BTreeSet::from(["Run".to_owned()]));
}

#[test]
fn files_and_functions_stay_short() {
    assert_none(rust_files().iter().flat_map(size_faults));
}

#[test]
fn a_long_function_is_noticed() {
    let with_body = |lines: usize| {
        let body = "    \"}\"; '}'; '\\''; r#\"}\"}\"#; // }\n".repeat(lines);
        let text = format!("fn f<'a>(x: &'a [u8; 2])\nwhere\n    X: Y,\n{{\n{body}}}\nfn g();\n");
        Source { path: "crates/x/src/y.rs".into(), text }
    };
    assert_none(size_faults(&with_body(FUNCTION_LINES_MAX - 5)));
    let faults = size_faults(&with_body(FUNCTION_LINES_MAX - 4));
    assert_eq!(faults, ["crates/x/src/y.rs:1: `f` has 71 lines, the most is 70"]);
    let long = Source { path: "x.rs".into(), text: "\n".repeat(FILE_LINES_MAX + 1) };
    assert_eq!(size_faults(&long).len(), 1);
}

#[test]
fn no_todos_or_ignored_tests_remain() {
    assert_none(rust_files().iter().flat_map(undone_faults));
    let text = ["#[", "ignore = \"x\"]\nfn f() { to", "do!() } // FIX", "ME"].concat();
    assert_eq!(undone_faults(&Source { path: "x.rs".into(), text }).len(), 3);
}

#[test]
fn no_file_names_a_path_of_the_authors_machine() {
    assert_none(text_files().iter().flat_map(machine_faults));
    let text = ["see /ho", "me/somebody/notes"].concat();
    assert_eq!(machine_faults(&Source { path: "x.md".into(), text }).len(), 1);
}

/// `UPDATE_DOCS=1` writes the table.
#[test]
fn the_error_codes_are_documented() {
    let path = root().join("docs/errors.md");
    let document = fs::read_to_string(&path).expect("docs/errors.md is there");
    let (before, rest) = document.split_once(TABLE_START).expect("the start of the table");
    let (table, after) = rest.split_once(TABLE_END).expect("the end of the table");
    let reference = format!("\n{}\n", domain::code::reference());
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| value == "1") {
        let document = [before, TABLE_START, &reference, TABLE_END, after].concat();
        fs::write(&path, document).expect("docs/errors.md can be written");
        return;
    }
    assert!(table == reference, "docs/errors.md is not the list of codes: run with UPDATE_DOCS=1");
}

fn assert_none(faults: impl IntoIterator<Item = String>) {
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

fn layer_faults(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().expect("metadata has packages");
    let mut faults = Vec::new();
    for package in packages {
        let name = package["name"].as_str().expect("a package has a name");
        let Some((_, allowed)) = LAYERS.iter().find(|(layer, _)| *layer == name) else {
            faults.push(format!("{name} has no layer: give it a row in tidy.rs"));
            continue;
        };
        let dependencies = || package["dependencies"].as_array().into_iter().flatten();
        let is_used =
            |edge: &str| dependencies().any(|used| used["name"] == edge && used["kind"] != "dev");
        for edge in allowed.iter().filter(|edge| !is_used(edge)) {
            let words = "and does not: take the edge out of tidy.rs";
            faults.push(format!("{name} may depend on {edge} {words}"));
        }
        for dependency in dependencies() {
            let target = dependency["name"].as_str().expect("a dependency has a name");
            let in_tests = dependency["kind"] == "dev";
            let refused = if dependency["path"].is_string() {
                !(allowed.contains(&target) || in_tests && !ALONE.contains(&name))
            } else {
                PURE.contains(&name) && !in_tests && NOT_FOR_PURE.contains(&target)
            };
            if refused {
                faults.push(format!("{name} depends on {target}, which its layer forbids"));
            }
        }
    }
    faults
}

fn purity_faults(file: &Source) -> Vec<String> {
    word_faults(file, &NOT_IN_PURE, "in a pure crate")
}

/// Finds words in code that is no test.
fn word_faults(file: &Source, words: &[&str], fault: &str) -> Vec<String> {
    if file.is_test() {
        return Vec::new();
    }
    let code = without_tests(&code_only(&file.text));
    let found = |(index, line): (usize, &str)| {
        let words = words.iter().filter(|word| line.contains(**word));
        words.map(|word| format!("{}:{}: `{word}` {fault}", file.shown(), index + 1)).collect()
    };
    code.lines().enumerate().flat_map::<Vec<String>, _>(found).collect()
}

fn comment_faults(file: &Source) -> Vec<String> {
    let mark = |line: &str| ["///", "//!"].into_iter().find(|mark| line.starts_with(mark));
    let (mut faults, mut before) = (Vec::new(), None);
    for (index, line) in file.text.lines().map(str::trim_start).enumerate() {
        let opened = mark(line).filter(|_| mark(line) != before);
        before = mark(line);
        let Some(sentence) = opened.and_then(|mark| line.strip_prefix(mark)) else { continue };
        let starts = |words: &&str| sentence.starts_with(&format!(" {words} "));
        if let Some(words) = HEADLESS.into_iter().find(starts) {
            let place = format!("{}:{}", file.shown(), index + 1);
            faults.push(format!("{place}: opens with '{words}': say who does what, or name it"));
        }
    }
    faults
}

fn name_faults(file: &Source) -> Vec<String> {
    let mut faults = Vec::new();
    if file.path.file_name().is_some_and(|name| name == "mod.rs") {
        faults.push(format!("{}: `foo.rs` + `foo/`, no `mod.rs`", file.shown()));
    }
    let stem = file.path.with_extension("");
    for part in stem.iter().filter_map(|part| part.to_str()) {
        if part.split('_').any(|word| EMPTY_NAMES.contains(&word)) {
            faults.push(format!("{}: '{part}' says nothing of what is inside", file.shown()));
        }
    }
    faults
}

/// Returns the names of public types that occur more than once in the code of the crates.
fn shared_names(files: &[Source]) -> BTreeSet<String> {
    let of_code = files.iter().filter(|file| {
        let mut parts = file.path.components().map(|part| part.as_os_str());
        parts.any(|part| part == "src") && !file.path.ends_with("tests.rs")
    });
    let (mut seen, mut shared) = (BTreeSet::new(), BTreeSet::new());
    for file in of_code {
        let code = without_tests(&code_only(&file.text));
        for line in code.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            let ["pub", "struct" | "enum" | "trait" | "type" | "union", name, ..] = words[..]
            else {
                continue;
            };
            let name = name.split(|character: char| !is_word(character)).next().unwrap_or_default();
            // A macro has a variable where a type has its name.
            if !name.is_empty() && !seen.insert(name.to_owned()) {
                shared.insert(name.to_owned());
            }
        }
    }
    shared
}

fn size_faults(file: &Source) -> Vec<String> {
    let mut faults = Vec::new();
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        faults.push(format!("{}: {lines} lines, the most is {FILE_LINES_MAX}", file.shown()));
    }
    if file.is_test() {
        return faults;
    }
    for function in functions(&without_tests(&code_only(&file.text))) {
        let Function { name, line, lines } = function;
        if lines > FUNCTION_LINES_MAX {
            let place = file.shown();
            faults.push(format!(
                "{place}:{line}: `{name}` has {lines} lines, the most is {FUNCTION_LINES_MAX}"
            ));
        }
    }
    faults
}

fn undone_faults(file: &Source) -> Vec<String> {
    let code = code_only(&file.text);
    let in_code = ["#[ignore", "todo!", "unimplemented!"].into_iter().filter(|w| code.contains(w));
    // Concatenated here, so that this file does not contain them itself.
    let in_text = [concat!("FIX", "ME"), concat!("XX", "X")];
    let in_text = in_text.into_iter().filter(|word| file.text.contains(word));
    in_code.chain(in_text).map(|word| format!("{}: `{word}`", file.shown())).collect()
}

fn machine_faults(file: &Source) -> Vec<String> {
    let places = ["home", "root", "work"].map(|name| format!("/{name}/"));
    // The way an example writes a reader's own folder.
    let anybody = ["/ho", "me/me"].concat();
    let names = |line: &str| {
        let line = line.replace(&anybody, "");
        places.iter().any(|place| line.contains(place))
    };
    let lines = file.text.lines().enumerate();
    let faulty = lines.filter(|(_, line)| names(line));
    faulty.map(|(index, _)| format!("{}:{}: a machine's path", file.shown(), index + 1)).collect()
}

pub(crate) struct Source {
    /// The path relative to the root.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Reports whether the whole file is tests, benchmarks or examples.
    fn is_test(&self) -> bool {
        let beside = ["tests", "benches", "examples"];
        self.path.iter().any(|part| beside.iter().any(|name| part == *name))
            || self.path.file_name().is_some_and(|name| name == "tests.rs")
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn rust_files() -> Vec<Source> {
    let is_ours = |path: &Path| {
        path.starts_with("crates")
            && path.extension().is_some_and(|extension| extension == "rs")
            && path.iter().all(|part| part != "generated")
    };
    let files: Vec<Source> =
        files().into_iter().filter(|path| is_ours(path)).filter_map(read).collect();
    assert!(files.len() > 50, "only {} Rust files were found", files.len());
    files
}

/// Returns all text files that are ours; foreign data sets are exempt.
fn text_files() -> Vec<Source> {
    let ours = |path: &PathBuf| path.iter().all(|part| part != "testdata" && part != "vectors");
    files().into_iter().filter(ours).filter_map(read).collect()
}

fn read(path: PathBuf) -> Option<Source> {
    let text = fs::read_to_string(root().join(&path)).ok()?;
    Some(Source { path, text })
}

/// Returns the files that git tracks or would track; without git, all but build outputs.
pub(crate) fn files() -> BTreeSet<PathBuf> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    match listed {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            let names = String::from_utf8(output.stdout).expect("file names are UTF-8");
            names.split_terminator('\0').map(PathBuf::from).collect()
        }
        _ => {
            let mut found = BTreeSet::new();
            walk(Path::new(""), &mut found);
            found
        }
    }
}

fn walk(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(root().join(folder)).expect("a folder can be read") {
        let entry = entry.expect("an entry can be read");
        let path = folder.join(entry.file_name());
        match entry.file_type().expect("an entry has a type").is_dir() {
            true if path == Path::new("target") || path == Path::new(".git") => {}
            true => walk(&path, found),
            false => drop(found.insert(path)),
        }
    }
}

fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("metadata is JSON")
}

fn package<'a>(metadata: &'a mut Value, name: &str) -> &'a mut Value {
    let packages = metadata["packages"].as_array_mut().expect("metadata has packages");
    packages.iter_mut().find(|package| package["name"] == name).expect("the package is there")
}

fn depend(metadata: &mut Value, name: &str, dependency: Value) {
    let dependencies = &mut package(metadata, name)["dependencies"];
    dependencies.as_array_mut().expect("a list").push(dependency);
}

/// Returns the text with comments and the insides of literals blanked; lines keep their place.
fn code_only(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let follows_word = code.ends_with(is_word);
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => comment_length(rest),
            '"' => string_length(rest),
            'r' if !follows_word => raw_string_length(rest),
            '\'' => character_length(rest),
            _ => 0,
        };
        if length == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            let blank = |c: char| if c == '\n' { '\n' } else { ' ' };
            code.extend(rest[..length].chars().map(blank));
            rest = &rest[length..];
        }
    }
    code
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let bytes = &text.as_bytes()[at..];
        let step = match bytes {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns 0 if no raw string begins here, as in `r#type` or `return`.
fn raw_string_length(text: &str) -> usize {
    let hashes = text[1..].bytes().take_while(|byte| *byte == b'#').count();
    let open = 1 + hashes;
    if !text[open..].starts_with('"') {
        return 0;
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let inside = &text[open + 1..];
    inside.find(&close).map_or(text.len(), |at| open + 1 + at + close.len())
}

/// Returns 0 if a lifetime begins here.
fn character_length(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match characters.next() {
        Some((_, '\\')) => {
            let end = text[3..].find('\'');
            end.map_or(text.len(), |at| at + 4)
        }
        Some(_) => match characters.next() {
            Some((at, '\'')) => at + 1,
            _ => 0,
        },
        None => 0,
    }
}

/// Blanks items under `#[cfg(test)]`. Takes code without comments and literals.
fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(start) = rest.find(MARK) {
        let (before, item) = rest.split_at(start);
        let (tests, after) = item.split_at(MARK.len() + item_length(&item[MARK.len()..]));
        kept.push_str(before);
        kept.extend(tests.chars().filter(|character| *character == '\n'));
        rest = after;
    }
    kept.push_str(rest);
    kept
}

/// Returns the length up to the `;` or the closing brace that ends an item.
fn item_length(code: &str) -> usize {
    let (mut braces, mut others) = (0_usize, 0_usize);
    for (at, character) in code.char_indices() {
        match character {
            '(' | '[' => others += 1,
            ')' | ']' => others = others.saturating_sub(1),
            '{' => braces += 1,
            '}' if braces == 1 && others == 0 => return at + 1,
            '}' => braces = braces.saturating_sub(1),
            ';' if braces == 0 && others == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

struct Function<'a> {
    name: &'a str,
    line: usize,
    lines: usize,
}

/// Returns every named function, including nested ones and those in traits.
fn functions(code: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        if code[..at].ends_with(is_word) {
            continue;
        }
        let item = &code[at..];
        let name = item[3..].split(|character| !is_word(character)).next().unwrap_or_default();
        if name.is_empty() {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let lines = item[..item_length(item)].matches('\n').count() + 1;
        found.push(Function { name, line, lines });
    }
    found
}
