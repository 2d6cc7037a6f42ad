//! Finds the file that a shell command certainly changes or reads. Only a single command or pipeline is
//! analyzed, and only literal words name files; lists of commands and branches are not read.

mod words;

use words::{ShellWord, SimpleCommand};

/// Places that a redirect changes nothing in.
const STREAMS: [&str; 4] = ["/dev/null", "/dev/stderr", "/dev/stdout", "/dev/tty"];

/// Long options of `sed` that change neither its operands nor their meaning.
const SED_OPTIONS: [&str; 5] = ["null-data", "quiet", "regexp-extended", "separate", "silent"];

/// Returns the file that the command certainly changes, as written; `home` is the folder of `~`.
pub(super) fn changed_file(command: &str, home: Option<&str>) -> Option<String> {
    let pipeline = words::read(command.trim(), home)?;
    let is_alone = pipeline.len() == 1;
    let mut redirected: Vec<String> = Vec::new();
    let mut operand = Operand::None;
    for SimpleCommand { words, redirects } in pipeline {
        match changed_operand(&words) {
            Operand::None => {}
            found if is_alone => operand = found,
            Operand::File(_) | Operand::Unclear => return None,
        }
        for file in redirects {
            redirected.extend(Some(file?).filter(|file| !STREAMS.contains(&file.as_str())));
        }
    }
    match (operand, redirected.len()) {
        (Operand::File(file), 0) => Some(file),
        (Operand::None, 1) => redirected.pop(),
        _ => None,
    }
}

/// Programs that print one file, with the letters of their options that take no value.
const READERS: [(&str, &str); 5] =
    [("cat", "AbEenstTuv"), ("head", "qvz"), ("tac", ""), ("tail", "qvz"), ("wc", "cLlmw")];

/// Returns the file that the command certainly reads and does nothing else with, as written.
pub(super) fn read_file(command: &str, home: Option<&str>) -> Option<String> {
    // The text of an input may run commands: `cat f <<< "$(rm g)"`.
    if command.contains('<') {
        return None;
    }
    let pipeline = words::read(command.trim(), home)?;
    let [SimpleCommand { words, redirects }] = &pipeline[..] else { return None };
    let is_stream =
        |file: &Option<String>| file.as_deref().is_some_and(|file| STREAMS.contains(&file));
    let (name, rest) = words.split_first()?;
    let name = name.literal.as_deref()?;
    let (_, flags) = READERS.iter().find(|(reader, _)| *reader == name)?;
    let rest = if matches!(name, "head" | "tail") { without_count(rest) } else { rest };
    match Operand::last_of(operands(rest, flags), 1) {
        Operand::File(file) if file != "-" && redirects.iter().all(is_stream) => Some(file),
        _ => None,
    }
}

/// Returns the words after a number of lines or bytes: `-n 5`, `-n5` or `-5`.
fn without_count(words: &[ShellWord]) -> &[ShellWord] {
    let text =
        |at: usize| words.get(at).and_then(|word| word.literal.as_deref()).unwrap_or_default();
    let is_count = |text: &str| {
        let digits = text.trim_start_matches(['+', '-']);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    let Some(option) = text(0).strip_prefix('-') else { return words };
    match option.strip_prefix(['n', 'c']) {
        Some("") if is_count(text(1)) => &words[2..],
        Some(count) if is_count(count) => &words[1..],
        None if is_count(option) => &words[1..],
        _ => words,
    }
}

enum Operand {
    None,
    File(String),
    Unclear,
}

impl Operand {
    /// Returns the last of a number of operands.
    fn last_of(files: Option<Vec<&ShellWord>>, count: usize) -> Operand {
        let last = files.filter(|files| files.len() == count).and_then(|mut files| files.pop());
        last.and_then(|word| word.literal.clone()).map_or(Operand::Unclear, Operand::File)
    }
}

fn changed_operand(words: &[ShellWord]) -> Operand {
    let Some((name, rest)) = words.split_first() else {
        return Operand::None;
    };
    let (flags, count) = match name.literal.as_deref() {
        Some("rm") => ("dfirRvI", 1),
        Some("mv") => ("finuv", 2),
        Some("cp") => ("afinpruvRP", 2),
        Some("sed") => return edited(rest),
        _ => return Operand::None,
    };
    Operand::last_of(operands(rest, flags), count)
}

/// Returns `None` if an option might change the meaning of the operands, or an operand is not known.
fn operands<'a>(words: &'a [ShellWord], flags: &str) -> Option<Vec<&'a ShellWord>> {
    let mut files = Vec::new();
    let mut options = true;
    for word in words {
        match word.literal.as_deref()?.strip_prefix('-').filter(|_| options) {
            Some("-") => options = false,
            Some("-force" | "-recursive" | "-verbose") => {}
            Some(letters) if !letters.is_empty() && letters.chars().all(|c| flags.contains(c)) => {}
            Some(_) => return None,
            None => files.push(word),
        }
    }
    Some(files)
}

/// Returns the file that `sed` edits in place.
fn edited(words: &[ShellWord]) -> Operand {
    let (mut in_place, mut has_script, mut options) = (false, false, true);
    let mut operands: Vec<&ShellWord> = Vec::new();
    let mut left = words.iter().peekable();
    while let Some(word) = left.next() {
        let text = word.literal.as_deref().unwrap_or_default();
        let Some(option) = text.strip_prefix('-').filter(|it| options && !it.is_empty()) else {
            operands.push(word);
            continue;
        };
        if let Some(long) = option.strip_prefix('-') {
            let name = long.split('=').next().unwrap_or_default();
            match name {
                "" => options = false,
                "in-place" => in_place = true,
                "expression" | "file" if long.contains('=') => has_script = true,
                name if SED_OPTIONS.contains(&name) => {}
                _ => return Operand::Unclear,
            }
            continue;
        }
        // The last letter may have a value: the rest of the word, or the next word.
        let mut letters = option.trim_start_matches(|letter| "nErsuz".contains(letter)).chars();
        match (letters.next(), letters.as_str()) {
            (None, _) => {}
            (Some('i'), suffix) => {
                in_place = true;
                // Some systems demand the suffix of a backup as a word.
                if suffix.is_empty() {
                    left.next_if(|next| next.literal.as_deref() == Some(""));
                }
            }
            (Some('e' | 'f'), script) => {
                has_script = true;
                if script.is_empty() && left.next().is_none() {
                    return Operand::Unclear;
                }
            }
            (Some(_), _) => return Operand::Unclear,
        }
    }
    if !in_place {
        return Operand::None;
    }
    Operand::last_of(Some(operands), if has_script { 1 } else { 2 })
}
