//! Finds the files that a shell command certainly changes. Only a single simple command with
//! literal words is analyzed; expansions, pipes and branches are not.

/// Characters with a special meaning to a shell.
const ACTIVE: &str = "|&;<()$`*?[]{}~!#\n\r";

/// Returns the file that the command certainly changes, as written.
pub(super) fn changed_file(command: &str) -> Option<String> {
    let simple = read(command.trim())?;
    let operand = changed_operand(&simple.words);
    let mut redirected = simple.redirects.into_iter().filter(|file| file != "/dev/null");
    match (operand, redirected.next(), redirected.next()) {
        (Operand::File(file), None, _) => Some(file),
        (Operand::None, Some(file), None) => Some(file),
        _ => None,
    }
}

struct Simple {
    words: Vec<String>,
    redirects: Vec<String>,
}

enum Operand {
    None,
    File(String),
    Unclear,
}

fn changed_operand(words: &[String]) -> Operand {
    let Some((name, rest)) = words.split_first() else {
        return Operand::None;
    };
    let (flags, count) = match name.as_str() {
        "rm" => ("dfirRvI", 1),
        "mv" => ("finuv", 2),
        "cp" => ("afinpruvRP", 2),
        _ => return Operand::None,
    };
    match operands(rest, flags) {
        Some(files) if files.len() == count => Operand::File(files[count - 1].to_owned()),
        _ => Operand::Unclear,
    }
}

/// Returns `None` if an option might change the meaning of the operands.
fn operands<'a>(words: &'a [String], flags: &str) -> Option<Vec<&'a str>> {
    let mut files = Vec::new();
    let mut options = true;
    for word in words {
        match word.strip_prefix('-').filter(|_| options) {
            Some("-") => options = false,
            Some("-force" | "-recursive" | "-verbose") => {}
            Some(letters) if !letters.is_empty() && letters.chars().all(|c| flags.contains(c)) => {}
            Some(_) => return None,
            None => files.push(word.as_str()),
        }
    }
    Some(files)
}

/// Splits a command into literal words and the files of its `>` and `>>`.
fn read(command: &str) -> Option<Simple> {
    let mut simple = Simple { words: Vec::new(), redirects: Vec::new() };
    let mut rest = command;
    let mut redirect = false;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        if rest.is_empty() {
            return (!redirect).then_some(simple);
        }
        if let Some(after) = rest.strip_prefix('>') {
            if redirect {
                return None;
            }
            redirect = true;
            rest = after.strip_prefix('>').unwrap_or(after);
            continue;
        }
        let word = word(rest)?;
        rest = &rest[word.length..];
        // In `2> file` the number is not a word.
        let descriptor = rest.starts_with('>') && word.text.bytes().all(|b| b.is_ascii_digit());
        match (redirect, descriptor) {
            (true, _) => simple.redirects.push(word.text),
            (false, true) => {}
            (false, false) => simple.words.push(word.text),
        }
        redirect = false;
    }
}

struct Word {
    text: String,
    length: usize,
}

fn word(source: &str) -> Option<Word> {
    let mut text = String::new();
    let mut characters = source.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            ' ' | '\t' | '>' => return Some(Word { text, length: at }),
            '\'' => loop {
                match characters.next()?.1 {
                    '\'' => break,
                    inner => text.push(inner),
                }
            },
            '"' => loop {
                match characters.next()?.1 {
                    '"' => break,
                    '$' | '`' | '\\' | '!' => return None,
                    inner => text.push(inner),
                }
            },
            '\\' => match characters.next()?.1 {
                '\n' | '\r' => return None,
                escaped => text.push(escaped),
            },
            active if ACTIVE.contains(active) => return None,
            plain => text.push(plain),
        }
    }
    Some(Word { text, length: source.len() })
}
