//! Text without secrets passes redaction almost unchanged: source code, documents, logs, images.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use redact::Redactor;

/// The share of words that may be lost: 0.1 %.
const LOST_PER_MILLION_MAX: usize = 1000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads every text file under a folder of the project. Files about secrets are full of examples.
fn sources(folder: &Path, texts: &mut Vec<String>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() && !["target", "node_modules", ".git"].contains(&&*name) {
            sources(&path, texts);
        }
        let is_text = [".rs", ".md", ".toml", ".js", ".css", ".html", ".json", ".txt", ".proto"]
            .iter()
            .any(|ending| name.ends_with(ending));
        let about = ["redaction", "planted", "secret"];
        let is_about_secrets = about.iter().any(|word| path.to_string_lossy().contains(word));
        if path.is_file() && is_text && !is_about_secrets {
            texts.extend(std::fs::read_to_string(&path));
        }
    }
}

/// A generator of numbers that is the same in every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.0 >> 24
    }

    fn of(&mut self, alphabet: &[u8], length: usize) -> String {
        let count = u64::try_from(alphabet.len()).unwrap();
        let mut letter = || char::from(alphabet[usize::try_from(self.next() % count).unwrap()]);
        (0..length).map(|_| letter()).collect()
    }
}

const HEX: &[u8] = b"0123456789abcdef";
const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Lines of servers, builds and version control.
fn log(dice: &mut Dice, bytes: usize) -> String {
    let mut log = String::new();
    while log.len() < bytes {
        let (n, m) = (dice.next() % 60, dice.next() % 100_000);
        let (hash, short) = (dice.of(HEX, 40), dice.of(HEX, 12));
        let uuid = format!(
            "{}-{}-7{}-9{}-{}",
            dice.of(HEX, 8),
            dice.of(HEX, 4),
            dice.of(HEX, 3),
            dice.of(HEX, 3),
            short
        );
        let line = match dice.next() % 8 {
            0 => format!(
                "10.0.0.{n} - - [17/Nov/2026:04:{n:02}:11 +0000] \"GET /api/v1/items?page={m}&key=title&code=200 HTTP/1.1\" 200 {m} \"https://h.example/\" \"Mozilla/5.0 (X11; Linux x86_64)\""
            ),
            1 => format!(
                "2026-11-17T04:{n:02}:11.{m:06}Z  INFO request{{id={uuid} method=POST}}: finished in {m} us"
            ),
            2 => format!(
                "{{\"level\":\"info\",\"ts\":{m},\"msg\":\"authorized\",\"author\":\"ada\",\"session_id\":\"{uuid}\",\"tokens_used\":{m},\"max_tokens\":4096}}"
            ),
            3 => format!(
                "commit {hash}\nAuthor: Ada <ada@h.example>\n\n    tests: {n} passed, 0 failed; key {short} is cached"
            ),
            4 => format!(
                "   Compiling serde v1.0.{n} (registry+https://h.example/index) sha256:{hash}{}",
                dice.of(HEX, 24)
            ),
            5 => format!(
                "WARN pool: connection {n} of user 'app' to postgres://db.example:5432/app was closed after {m} ms; {n} remain"
            ),
            6 => format!(
                "[{m}] docker: pulled h.example/team/app@sha256:{hash}{} in {n} s, layer {short}",
                dice.of(HEX, 24)
            ),
            _ => format!(
                "test a::b::case_{m} ... ok (pass {n} of 60), etag W/\"{short}\", x-request-id: {uuid}"
            ),
        };
        log.push_str(&line);
        log.push('\n');
    }
    log
}

/// Images in base64, in lines and as data URLs.
fn images(dice: &mut Dice, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(&format!(
            "<img src=\"data:image/png;base64,iVBORw0KGgo{}\">\n",
            dice.of(BASE64, 4000)
        ));
        for _ in 0..60 {
            text.push_str(&dice.of(BASE64, 76));
            text.push('\n');
        }
    }
    text
}

fn words(text: &str) -> HashMap<&str, usize> {
    let mut words = HashMap::new();
    for word in text.split_whitespace() {
        *words.entry(word).or_default() += 1;
    }
    words
}

/// Returns the number of words, and how many of them did not pass unchanged.
fn lost(redactor: &Redactor, text: &str) -> (usize, usize) {
    let (mut all, mut lost) = (0, 0);
    for line in text.lines() {
        let redacted = redactor.text(line);
        all += line.split_whitespace().count();
        if redacted != line {
            let kept = words(&redacted);
            let missing = words(line).into_iter();
            lost += missing
                .map(|(word, count)| count.saturating_sub(kept.get(word).copied().unwrap_or(0)))
                .sum::<usize>();
        }
    }
    (all, lost)
}

/// Fails if too many words are lost; returns the figures.
fn check(texts: &[(&str, String)]) -> String {
    let redactor = Redactor::builtin();
    let (mut all, mut gone, mut report) = (0, 0, String::new());
    for (name, text) in texts {
        let (words, lost) = lost(&redactor, text);
        report += &format!("{name}: {} bytes, {words} words, {lost} lost\n", text.len());
        (all, gone) = (all + words, gone + lost);
    }
    assert!(gone * 1_000_000 <= all * LOST_PER_MILLION_MAX, "{report}");
    report
}

fn project() -> String {
    let mut texts = Vec::new();
    for folder in ["crates", "docs", "examples"] {
        sources(&root().join(folder), &mut texts);
    }
    texts.concat()
}

#[test]
fn smoke_ordinary_text_passes_redaction() {
    let mut dice = Dice(1);
    let mut docs = Vec::new();
    sources(&root().join("docs"), &mut docs);
    sources(&root().join("crates/gateway/src"), &mut docs);
    let report = check(&[
        ("documents and sources", docs.concat()),
        ("logs", log(&mut dice, 200_000)),
        ("images", images(&mut dice, 200_000)),
    ]);
    println!("{report}");
}

#[test]
fn long_ten_megabytes_of_ordinary_text_pass_redaction() {
    if !testkit::run::is_long_or_skipped() {
        return;
    }
    let mut dice = Dice(2);
    let project = project();
    let rest = 10_000_000_usize.saturating_sub(project.len());
    let report = check(&[
        ("the project", project),
        ("logs", log(&mut dice, rest / 2)),
        ("images", images(&mut dice, rest / 2)),
    ]);
    println!("{report}");
}
