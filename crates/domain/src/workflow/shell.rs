//! Values in commands. A value is put in as one quoted word, which is safe in one place only:
//! outside of everything that a shell treats specially. Where else a template stands, the
//! workflow is refused: inside of quotes the quotes of the value would end those around it, and
//! what a shell reads twice (`eval`, `sh -c`, arithmetic) makes code of text again.

use super::template::{Malformed, Part, Template};

/// POSIX: nothing is special between single quotes but the quote itself.
pub fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// The templates of a command that stand where their values would not be safe.
pub(super) fn faults(command: &Template) -> Vec<Malformed> {
    let mut scan = Scan::default();
    let mut faults = Vec::new();
    for part in command.parts() {
        match part {
            Part::Text(text) => scan.text(text),
            Part::Value { at, .. } => {
                if let Some(message) = scan.objection() {
                    faults.push(Malformed { at: *at, message: message.to_owned() });
                }
                scan.value();
            }
        }
    }
    faults
}

const IN_QUOTES: &str = "a value brings its own quotes: write it outside of them, \
                         as in 'a '{{.inputs.x}}' b'";
const AFTER_BACKSLASH: &str = "a backslash before a value would undo its quotes";
const AFTER_DOLLAR: &str = "a '$' before a value would change the meaning of its quotes";
const IN_COMMENT: &str = "a value in a comment could end it";
const READ_TWICE: &str = "the shell would read this value as code; \
                          give it to a command as an argument instead";

#[derive(Default)]
struct Scan {
    quotes: Quotes,
    /// The character before, outside of quotes, where it changes what follows.
    before: Before,
    /// The word so far, for the few that matter.
    word: String,
    /// The words before it in the same simple command.
    words: Vec<String>,
    /// An unclosed `[` of a word such as `list[`, in which some shells do arithmetic.
    in_subscript: bool,
    /// Something was seen after which quotes can no longer be followed with certainty, or text is
    /// read twice.
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
                (self.in_subscript || self.is_read_twice()).then_some(READ_TWICE)
            }
        }
    }

    fn value(&mut self) {
        self.before = Before::Nothing;
        self.word.push('v');
    }

    fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(character) = rest.chars().next() {
            let length = match self.quotes {
                _ if self.before == Before::Backslash => {
                    self.before = Before::Nothing;
                    self.word.push(character);
                    character.len_utf8()
                }
                Quotes::None => self.outside(rest, character),
                Quotes::Single => {
                    if character == '\'' {
                        self.quotes = Quotes::None;
                    }
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

    /// How many bytes were taken.
    fn outside(&mut self, rest: &str, character: char) -> usize {
        let after_dollar = std::mem::take(&mut self.before) == Before::Dollar;
        let begins = |text: &str| rest.starts_with(text);
        if after_dollar && character == '\'' {
            self.lose("a value after $'…': which quotes it stands in is not certain");
        } else if begins("<<<") {
            return 3;
        } else if begins("<<") {
            self.lose("a value after '<<': what stands in a here-document is not quoted");
        } else if begins("((") || begins("[[") && self.word.is_empty() {
            self.lose(READ_TWICE);
        }
        match character {
            '\\' => self.before = Before::Backslash,
            '\'' => self.quotes = Quotes::Single,
            '"' => self.quotes = Quotes::Double,
            '$' => self.before = Before::Dollar,
            '`' => self.lose("a value after a backtick: use $(…) instead"),
            '#' if self.word.is_empty() => self.quotes = Quotes::Comment,
            '[' if !self.word.is_empty() => self.in_subscript = true,
            ']' => self.in_subscript = false,
            ' ' | '\t' => self.end_word(),
            '\n' | ';' | '&' | '|' | '(' | ')' => self.end_command(),
            _ => {}
        }
        if !matches!(character, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '\'' | '"') {
            self.word.push(character);
        } else if matches!(character, '\'' | '"') {
            // A word has begun, though nothing may be in it: no comment can follow.
            self.word.push('\u{0}');
        }
        character.len_utf8()
    }

    fn in_double(&mut self, rest: &str, character: char) -> usize {
        match character {
            '"' => self.quotes = Quotes::None,
            '\\' => self.before = Before::Backslash,
            '`' => self.lose("a value after a backtick: use $(…) instead"),
            '$' if rest.starts_with("$(") || rest.starts_with("${") => {
                self.lose(
                    "a value after $(…) or ${…} in double quotes: which quotes it stands \
                           in is not certain",
                );
            }
            _ => {}
        }
        character.len_utf8()
    }

    fn lose(&mut self, why: &'static str) {
        self.lost.get_or_insert(why);
    }

    fn end_word(&mut self) {
        if !self.word.is_empty() {
            self.words.push(std::mem::take(&mut self.word).replace('\u{0}', ""));
        }
    }

    fn end_command(&mut self) {
        self.word.clear();
        self.words.clear();
        self.in_subscript = false;
    }

    /// Whether the words before hand the value to something that reads it as code.
    fn is_read_twice(&self) -> bool {
        let is_shell = |word: &String| {
            let name = word.rsplit('/').next().unwrap_or_default();
            matches!(name, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "fish")
        };
        let takes_code = |word: &String| {
            let letters = word.strip_prefix('-').unwrap_or_default();
            letters.ends_with('c') && letters.chars().all(|c| c.is_ascii_alphabetic())
        };
        let rereads = |word: &String| {
            matches!(word.as_str(), "eval" | "let" | "declare" | "typeset" | "trap" | "unset")
        };
        let code_for_shell = self.words.iter().any(is_shell) && self.words.iter().any(takes_code);
        self.words.iter().any(rereads) || code_for_shell
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a shell makes of a word of single-quoted parts and escaped characters.
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
                // Anything else outside of quotes could be special.
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
