//! Values in shell commands. Each value is assigned, quoted, to a variable on a line before the
//! command, and `"${…}"` replaces the template in the command. The shell therefore never reads a
//! value as code, whatever the command around it looks like.
//!
//! This leaves places where a shell evaluates the value of a variable after all (`eval`, `sh -c`,
//! arithmetic), and places where such a reference has another meaning (quotes, comments,
//! here-documents). A workflow with a template in such a place is rejected.

use super::OUTPUT_BYTES_MAX;
use super::template::{Part, Template, TextFault, bounded};
use super::values::Values;

/// Quotes a value for a POSIX shell, where only the quote itself is special between single quotes.
pub fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

impl Template {
    /// Renders the template for a shell, which never reads a value as code.
    pub(super) fn render_for_shell(&self, values: &Values) -> Result<String, String> {
        let mut script = Script::new();
        for part in self.parts() {
            match part {
                Part::Text(text) => script.text(text),
                Part::Value { reference, at } => {
                    let value = self.value(reference, *at, values)?;
                    if value.contains('\0') {
                        let what =
                            "it contains a NUL character, which cannot be passed to a command";
                        return Err(format!("{}: {what}", self.written(*at)));
                    }
                    if !values.is_whole(reference) {
                        let limit = OUTPUT_BYTES_MAX / (1024 * 1024);
                        let what = format!(
                            "it is larger than {limit} MiB: write it to a file and pass its name"
                        );
                        return Err(format!("{}: {what}", self.written(*at)));
                    }
                    script.value(&value);
                }
            }
            bounded(script.len())?;
        }
        Ok(script.finish())
    }
}

/// A command with a variable in place of each value.
struct Script {
    values: String,
    command: String,
    count: usize,
}

impl Script {
    fn new() -> Script {
        Script { values: String::new(), command: String::new(), count: 0 }
    }

    fn text(&mut self, text: &str) {
        self.command.push_str(text);
    }

    fn value(&mut self, value: &str) {
        self.count += 1;
        let name = format!("__value_{}", self.count);
        self.values.push_str(&format!("{name}={}\n", quoted(value)));
        self.command.push_str(&format!("\"${{{name}}}\""));
    }

    fn finish(self) -> String {
        self.values + &self.command
    }

    fn len(&self) -> usize {
        self.values.len() + self.command.len()
    }
}

/// Returns a fault for each template whose value would be unsafe at its place in the command.
pub(super) fn faults(command: &Template) -> Vec<TextFault> {
    let mut scan = Scan::default();
    let mut faults = Vec::new();
    for part in command.parts() {
        match part {
            Part::Text(text) => scan.text(text),
            Part::Value { at, .. } => {
                if let Some(message) = scan.objection() {
                    faults.push(TextFault { at: *at, message: message.to_owned() });
                }
                scan.value();
            }
        }
    }
    faults
}

const IN_QUOTES: &str = "a value is quoted automatically: write it outside of quotes, \
                         as in 'a '{{.inputs.x}}' b'";
const AFTER_BACKSLASH: &str = "a backslash before a value would break its quoting";
const AFTER_DOLLAR: &str = "a '$' before a value would change its quoting";
const IN_COMMENT: &str = "a value in a comment could end the comment";
const READ_TWICE: &str = "the shell would run this value as code; \
                          pass it to a command as an argument instead";

#[derive(Default)]
struct Scan {
    quotes: Quotes,
    /// The preceding unquoted character, if it changes the meaning of what follows.
    before: Before,
    /// The current word without its quotes; `None` between words.
    word: Option<String>,
    /// The effect of the preceding words of the same simple command.
    words: Words,
    /// True inside an unclosed `[` of a word such as `list[`, where some shells do arithmetic.
    in_subscript: bool,
    /// The number of unclosed `${`, where some shells do arithmetic too.
    braces: usize,
    /// The construct after which quotes can no longer be tracked reliably, or text is read twice.
    lost: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Quotes {
    #[default]
    None,
    Single,
    Double,
    Comment,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    #[default]
    Nothing,
    Backslash,
    Dollar,
}

impl Scan {
    fn objection(&self) -> Option<&'static str> {
        match (self.lost, self.quotes, self.before) {
            (Some(message), ..) => Some(message),
            (None, Quotes::Single | Quotes::Double, _) => Some(IN_QUOTES),
            (None, Quotes::Comment, _) => Some(IN_COMMENT),
            (None, Quotes::None, Before::Backslash) => Some(AFTER_BACKSLASH),
            (None, Quotes::None, Before::Dollar) => Some(AFTER_DOLLAR),
            (None, Quotes::None, Before::Nothing) => {
                let in_arithmetic = self.in_subscript || self.braces > 0;
                (in_arithmetic || self.words.read_next_twice()).then_some(READ_TWICE)
            }
        }
    }

    fn value(&mut self) {
        self.before = Before::Nothing;
        self.push('v');
    }

    fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let length = match self.quotes {
                _ if self.before == Before::Backslash => {
                    self.before = Before::Nothing;
                    // A line continuation: both characters are skipped.
                    if character != '\n' {
                        self.push(character);
                    }
                    character.len_utf8()
                }
                Quotes::None => self.outside(rest, character),
                Quotes::Single if character == '\'' => self.close(),
                Quotes::Double if character == '"' => self.close(),
                Quotes::Single => {
                    self.push(character);
                    character.len_utf8()
                }
                Quotes::Double => self.in_double(rest, character),
                Quotes::Comment => {
                    if character == '\n' {
                        self.quotes = Quotes::None;
                        self.end_command();
                    }
                    character.len_utf8()
                }
            };
            rest = &rest[length..];
        }
    }

    /// Handles a character outside quotes and returns the number of bytes consumed.
    fn outside(&mut self, rest: &str, character: char) -> usize {
        let after_dollar = std::mem::take(&mut self.before) == Before::Dollar;
        if let Some(length) = self.beginning(rest, after_dollar) {
            return length;
        }
        match character {
            '\\' => self.before = Before::Backslash,
            '\'' => self.open(Quotes::Single),
            '"' => self.open(Quotes::Double),
            '#' if self.word.is_none() => self.quotes = Quotes::Comment,
            ' ' | '\t' => self.end_word(),
            '\n' | ';' | '&' | '|' | '(' | ')' => self.end_command(),
            _ => {
                match character {
                    '$' => self.before = Before::Dollar,
                    '`' => self.lose("a value after a backtick is not supported: use $(…) instead"),
                    '[' if self.word.is_some() => self.in_subscript = true,
                    ']' => self.in_subscript = false,
                    '{' if after_dollar => self.braces += 1,
                    '}' => self.braces = self.braces.saturating_sub(1),
                    _ => {}
                }
                self.push(character);
            }
        }
        character.len_utf8()
    }

    /// Handles a multi-character construct that begins here and returns the number of bytes to
    /// skip.
    fn beginning(&mut self, rest: &str, after_dollar: bool) -> Option<usize> {
        let begins = |text: &str| rest.starts_with(text);
        if after_dollar && begins("'") {
            self.lose("a value after $'…' is not supported: its quoting is uncertain");
        } else if after_dollar && (begins("[") || begins("(") && self.is_command_word()) {
            self.lose(READ_TWICE);
        } else if begins("<<<") {
            self.end_word();
            self.words.add("<<<");
            return Some(3);
        } else if begins("<<") {
            self.lose("a value after '<<' is not supported: here-documents are not quoted");
        } else if begins("((") || begins("[[") && self.word.is_none() {
            self.lose(READ_TWICE);
        }
        None
    }

    /// Reports whether the `$` just read begins a command name, in which case the output of `$(…)`
    /// is run.
    fn is_command_word(&self) -> bool {
        !self.words.has_name && self.word.as_deref() == Some("$")
    }

    fn in_double(&mut self, rest: &str, character: char) -> usize {
        match character {
            '\\' => self.before = Before::Backslash,
            '`' => self.lose("a value after a backtick is not supported: use $(…) instead"),
            '$' if ["$(", "${", "$["].iter().any(|opening| rest.starts_with(opening)) => {
                self.lose(
                    "a value after $(…) or ${…} in double quotes is not supported: its quoting \
                     is uncertain",
                );
            }
            _ => self.push(character),
        }
        character.len_utf8()
    }

    fn open(&mut self, quotes: Quotes) {
        self.quotes = quotes;
        // A word has begun, even if it is empty: no comment can follow.
        self.word.get_or_insert_default();
    }

    fn close(&mut self) -> usize {
        self.quotes = Quotes::None;
        1
    }

    fn push(&mut self, character: char) {
        self.word.get_or_insert_default().push(character);
    }

    fn lose(&mut self, why: &'static str) {
        self.lost.get_or_insert(why);
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            self.words.add(&word);
        }
    }

    fn end_command(&mut self) {
        self.word = None;
        self.words = Words::default();
        self.in_subscript = false;
    }
}

/// The words of a simple command that affect the next one.
#[derive(Default)]
struct Words {
    /// True after a word other than those that a command name can still follow.
    has_name: bool,
    /// True for a command that reads its arguments as code, or as names with code in their
    /// brackets.
    rereads: bool,
    has_shell: bool,
    /// True after `-c` or `<<<`, which pass code to a shell.
    has_code_option: bool,
    /// True for `test` and the like, whose `-v` evaluates the brackets of the names it looks up.
    looks_up: bool,
    ends_with_v: bool,
}

impl Words {
    fn add(&mut self, word: &str) {
        const KEYWORDS: [&str; 10] =
            ["!", "{", "do", "elif", "else", "if", "then", "time", "until", "while"];
        const REREADS: &[&str] = text::words!("shell/rereads.txt");
        const SHELLS: [&str; 8] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish"];
        let letters = word.strip_prefix('-').unwrap_or_default();
        let is_option = letters.chars().all(|c| c.is_ascii_alphabetic());
        self.has_name |= !KEYWORDS.contains(&word);
        self.rereads |= REREADS.contains(&word);
        self.has_shell |= SHELLS.contains(&word.rsplit('/').next().unwrap_or_default());
        self.has_code_option |= word == "<<<" || is_option && letters.ends_with('c');
        self.looks_up |= ["test", "[", "printf"].contains(&word);
        self.ends_with_v = word == "-v";
    }

    /// Reports whether the shell would read a value in the next word as code.
    fn read_next_twice(&self) -> bool {
        self.rereads || self.has_shell && self.has_code_option || self.looks_up && self.ends_with_v
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the text that a shell reads from a word of single-quoted parts and escaped
    /// characters.
    fn unquoted(word: &str) -> Option<String> {
        let (mut text, mut rest) = (String::new(), word);
        while let Some(character) = rest.chars().next() {
            rest = &rest[character.len_utf8()..];
            match character {
                '\'' => {
                    let (inside, after) = rest.split_once('\'')?;
                    text.push_str(inside);
                    rest = after;
                }
                '\\' => {
                    let next = rest.chars().next()?;
                    text.push(next);
                    rest = &rest[next.len_utf8()..];
                }
                // Anything else outside quotes could be special.
                _ => return None,
            }
        }
        Some(text)
    }

    fn objections(command: &str) -> usize {
        faults(&Template::parse(command).unwrap()).len()
    }

    #[test]
    fn a_value_is_refused_where_it_could_become_code() {
        let safe = [
            "echo V",
            "V",
            "A=V make -C dir/V/sub",
            "echo 'a b'V\"c\"V",
            "x=$(cat V) && ls \"$x\" V # a comment's end\necho V",
            "echo it\\'s V",
            "echo a#b V",
            "grep -c V file",
            "[ V = x ] && echo \"done\" V",
            "cat <<< V",
            "echo ''#V",
            "sh script.sh V",
            "echo ${x:-y} V",
            "export A=V",
            "echo a\\\n b V",
        ];
        for command in safe {
            assert_eq!(objections(&command.replace('V', "{{.inputs.x}}")), 0, "{command}");
        }
        let refused = [
            "echo \"V\"",
            "echo 'V'",
            "echo \\V",
            "echo $V",
            "echo ${x} $V",
            "echo `cat V`",
            "echo \"`\" V",
            "# V",
            "echo # it's V",
            "true;# it's\necho 'a V'",
            "echo \"$(echo \"a V\")\"",
            "echo \"${x:-\"a V\"}\"",
            "cat <<EOF\nV\nEOF",
            "echo $(( V + 1 ))",
            "((V))",
            "[[ V -eq 1 ]]",
            "list[V]=1",
            "list[ V ]=1",
            "echo $'it\\'s' V",
            "eval V",
            "eval echo V",
            "sh -c V",
            "/bin/bash -ec V",
            "sudo bash -c 'echo $1' x V",
            "let V",
            "\\eval V",
            "e'va'l V",
            "\\\n# V",
            "echo $[V]",
            "echo ${x:V}",
            "echo ${x:-${y}V}",
            "[ -v V ]",
            "bash <<< V",
            "read V",
            "alias a=V",
            "$(echo V)",
            "if true; then $(echo V); fi",
        ];
        for command in refused {
            assert_eq!(objections(&command.replace('V', "{{.inputs.x}}")), 1, "{command}");
        }
    }

    proptest! {
        #[test]
        fn quoting_keeps_every_text(value in any::<String>()) {
            prop_assert_eq!(unquoted(&quoted(&value)), Some(value));
        }

        #[test]
        fn quoting_keeps_what_shells_like(value in "[$`'\"\\\\(){};&|<> \n\t*?!#~=a-]{0,40}") {
            prop_assert_eq!(unquoted(&quoted(&value)), Some(value));
        }

        #[test]
        fn scanning_never_panics(command in any::<String>()) {
            if let Ok(template) = Template::parse(&command) {
                faults(&template);
            }
        }
    }
}
