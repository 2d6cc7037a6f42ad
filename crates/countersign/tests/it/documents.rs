//! The documents and examples, used as a reader would: shell blocks run with a real gate, commands
//! exist with their flags, links lead somewhere, example configs and workflows are valid.

mod claims;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::json;
use testkit::client::PATIENCE;
use testkit::gate::Gate;
use testkit::program::{command, countersign, program, stderr, stdout};
use testkit::run::skipped;
use testkit::upstream::scripted;

/// A fenced block: its page and line, the words after the fence, and its text.
struct Block {
    place: String,
    mark: String,
    text: String,
}

#[tokio::test]
async fn shell_blocks_can_be_run() {
    for page in manuals() {
        let blocks = blocks(&page).into_iter().filter(|block| block.mark == "sh");
        let script: String = blocks.map(|b| format!(": {}\n{}", b.place, b.text)).collect();
        if script.contains("curl") && !is_installed("curl") {
            skipped("curl is not installed");
        } else if !script.is_empty() {
            run_script(&page, &script).await;
        }
    }
}

#[tokio::test]
async fn commands_that_are_not_run_exist() {
    let (mut count, mut faults) = (0, Vec::new());
    for block in manuals().iter().flat_map(|page| blocks(page)) {
        for words in commands(&block) {
            count += 1;
            faults.extend(fault(&words).await.map(|why| format!("{}: {why}", block.place)));
        }
    }
    assert!(count > 10, "only {count} commands were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn a_command_that_does_not_exist_is_noticed() {
    let text = "~/x$ countersign call tool-read --tool-name=a:b --json_args '{\"a\": 1} # b' # c\n\
                countersign is ready\n$ A=1 B=2 \\\n  countersign upstream add w -- npx --no-flag\n\
                $ countersign activty list | head\n$ countersign tools list --servr a; ls";
    let block = Block { place: String::new(), mark: "console".to_owned(), text: text.to_owned() };
    let found = commands(&block);
    assert_eq!(found[0][2..], ["--tool-name=a:b", "--json_args", "{\"a\": 1} # b"]);
    assert_eq!(found[2], ["activty", "list"]);
    let mut wrong = Vec::new();
    for words in &found {
        wrong.push(fault(words).await.is_some());
    }
    assert_eq!(wrong, [false, false, true, true], "{found:?}");
}

#[test]
fn links_lead_to_files_and_headings() {
    let mut faults = Vec::new();
    for page in pages("").into_iter().chain(pages("docs")) {
        faults.extend(link_faults(&page, &fs::read_to_string(root().join(&page)).unwrap()));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let text = "[a](README.md#install) [b](docs/nowhere.md) [c](README.md#nowhere) [d](https://x)\n\
                ```\n[e](nowhere)\n```\n[f](#here) [g](docs)\n## Here";
    let faults = link_faults(Path::new("x.md"), text);
    assert_eq!(faults, ["x.md: docs/nowhere.md", "x.md: README.md#nowhere"]);
}

#[test]
fn every_image_is_shown_by_a_document() {
    let texts = pages("").into_iter().chain(pages("docs"));
    let texts: String = texts.map(|page| fs::read_to_string(root().join(page)).unwrap()).collect();
    let images = ["docs/images", "docs/images/page"].into_iter().flat_map(files);
    let images = images
        .filter(|file| file.extension().is_some())
        .map(|file| file.strip_prefix("docs").unwrap().to_owned());
    let unused: Vec<PathBuf> =
        images.filter(|file| !texts.contains(file.to_str().unwrap())).collect();
    assert!(unused.is_empty(), "{unused:?}");
}

#[tokio::test]
async fn examples_are_valid() {
    let configs = files("examples/config").into_iter().map(|file| (file, "// "));
    let workflows = files("examples/workflows").into_iter().map(|file| (file, "# "));
    let examples: Vec<_> = configs.chain(workflows).collect();
    assert!(examples.len() >= 6, "{examples:?}");
    for (file, comment) in examples {
        let path = root().join(&file);
        let is_commented = fs::read_to_string(&path).unwrap().starts_with(comment);
        assert!(is_commented, "{}: no comment on top", file.display());
        let path = path.to_str().unwrap();
        let args = match comment {
            "// " => vec!["--config", path, "config", "check"],
            _ => vec!["validate", path],
        };
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("project");
        fs::create_dir(&project).unwrap();
        // With an empty PATH, no installed agent is probed: all of them are missing.
        let mut program = program(dir.path());
        program.args(args).env("PATH", dir.path()).current_dir(project);
        program.env("OPENAI_BASE_URL", "http://127.0.0.1:1").env("OPENAI_MODEL", "m");
        let output = program.output().await.unwrap();
        let told = format!("{}{}", stdout(&output), stderr(&output));
        let is_fault = |line: &&str| {
            line.contains(": error: ") && !line.contains("USER.WORKFLOW.AGENT_UNAVAILABLE")
        };
        let is_known = matches!(output.status.code(), Some(0 | 2)) && !told.is_empty();
        let is_valid = is_known && !told.lines().any(|line| is_fault(&line));
        let is_valid = is_valid && (comment == "# " || output.status.code() == Some(0));
        assert!(is_valid, "{}: {told}", file.display());
    }
}

/// Runs the blocks of a page one after the other in a project's folder, with a gate that has a
/// server and the built-in tools.
async fn run_script(page: &Path, script: &str) {
    let tools = json!([{"name": "read_file", "inputSchema": {"type": "object"}}]);
    let servers = |dir: &Path| json!({"files": scripted(dir, "files", &tools)});
    let project = tempfile::tempdir().unwrap();
    let workspace = json!({"enabled": true, "root": project.path()});
    let gate = Gate::start(servers, json!({"workspace": workspace})).await;
    gate.ready("files").await;
    let dir = gate.dir.path();
    // Without it, curl succeeds whatever the gate answers.
    fs::write(dir.join(".curlrc"), "fail\n").unwrap();
    let own = countersign();
    let path = std::env::var("PATH").unwrap_or_default();
    let running = command(Path::new("sh"), dir)
        .args(["-exc", &script.replace("127.0.0.1:7420", &gate.address)])
        .env("PATH", format!("{}:{path}", own.parent().unwrap().display()))
        .env("COUNTERSIGN_CONFIG", gate.config_file())
        .env("no_proxy", "*")
        .current_dir(project.path())
        .stdin(Stdio::null())
        .output();
    let output = tokio::time::timeout(PATIENCE, running).await.expect("the blocks end").unwrap();
    let told = format!("{}\n{}", stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{}: {told}", page.display());
}

fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

/// Has the program parse the words up to `--`. With `--help` at the end it runs nothing, but still
/// rejects unknown commands, flags and values.
async fn fault(words: &[String]) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let words = words.iter().take_while(|word| *word != "--");
    let output = program(dir.path()).args(words).arg("--help").output().await.unwrap();
    (!output.status.success()).then(|| stderr(&output))
}

/// Returns the arguments of each line that would start the program, in a block that is not run.
fn commands(block: &Block) -> Vec<Vec<String>> {
    let text = block.text.replace("\\\n", " ");
    let typed = text.lines().filter_map(|line| match &*block.mark {
        "console" => line.split_once("$ ").map(|(_, typed)| typed),
        "sh no_run" => Some(line),
        _ => None,
    });
    let words = typed.map(words).map(|words| words.into_iter().skip_while(|w| w.contains('=')));
    let ours = words.filter_map(|mut words| (words.next()? == "countersign").then_some(words));
    ours.map(Iterator::collect).collect()
}

/// Splits a line as a shell does, up to a comment, a pipe, a redirection or a second command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for character in line.chars() {
        match character {
            _ if quote == Some(character) => quote = None,
            _ if quote.is_some() => word.get_or_insert_default().push(character),
            '\'' | '"' => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            '#' if word.is_none() => break,
            '|' | '>' | ';' | '&' => break,
            _ if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.into_iter().chain(word).collect()
}

/// Returns the relative links of a page that lead to no file or folder, or to no heading of it.
fn link_faults(page: &Path, text: &str) -> Vec<String> {
    let text = without_blocks(text);
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let is_broken = |link: &&str| {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = root().join(page).with_file_name(file);
        let headings = match file {
            "" => anchors(&text),
            _ => anchors(&without_blocks(&fs::read_to_string(&target).unwrap_or_default())),
        };
        !(file.is_empty() || target.exists()) || !(anchor.is_empty() || headings.contains(anchor))
    };
    let broken = links.filter(|link| !link.contains("://")).filter(is_broken);
    broken.map(|link| format!("{}: {link}", page.display())).collect()
}

/// Returns the anchors of a page's headings, as the hosting site makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let is_dropped = |c: char| !(c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    let titles = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    titles.map(|title| title.replace(is_dropped, "").replace(' ', "-")).collect()
}

fn without_blocks(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Returns the fenced blocks of a page, without the indentation of a list.
fn blocks(page: &Path) -> Vec<Block> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let (mut blocks, mut lines) = (Vec::new(), text.lines().enumerate());
    while let Some((index, line)) = lines.next() {
        let opened = line.split_once("```").filter(|(indent, _)| indent.trim().is_empty());
        let Some((indent, mark)) = opened else { continue };
        let inside = lines.by_ref().take_while(|(_, line)| line.trim() != "```");
        let inside = inside.map(|(_, line)| line.strip_prefix(indent).unwrap_or(line));
        let text = inside.map(|line| format!("{line}\n")).collect();
        let place = format!("{}:{}", page.display(), index + 1);
        blocks.push(Block { place, mark: mark.trim().to_owned(), text });
    }
    blocks
}

/// Returns the pages whose commands are checked.
fn manuals() -> Vec<PathBuf> {
    [PathBuf::from("README.md")].into_iter().chain(pages("docs")).collect()
}

fn pages(folder: &str) -> Vec<PathBuf> {
    files(folder).into_iter().filter(|file| file.extension() == Some("md".as_ref())).collect()
}

/// Returns the files of a folder, relative to the root.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let paths = entries.map(|entry| Path::new(folder).join(entry.unwrap().file_name()));
    paths.filter(|path| root().join(path).is_file()).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
