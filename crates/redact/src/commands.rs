//! Passwords on command lines, under flags that only some programs give this meaning: `curl -u
//! user:password`, `mysql -ppassword`. Flags that name a secret, as `--password` does, need no rule.

use std::ops::Range;

use serde_json::Value;

use super::shapes::floor;
use super::{REDACTED, Span, marker_length};

/// The longest command line that is searched.
const LINE_BYTES_MAX: usize = 1024;

/// Arguments that are looked at after a program's name.
const ARGUMENTS_MAX: usize = 64;

pub(super) struct Program {
    /// One word, or two for a subcommand.
    name: &'static str,
    flags: &'static [Flag],
    /// The first argument that is no flag is a secret.
    operand: bool,
}

struct Flag {
    flag: &'static str,
    form: FlagForm,
    /// The secret begins after this character; without one it is the whole value.
    after: Option<char>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FlagForm {
    /// `-pvalue`
    Attached,
    /// `-p value`, `--user=value`
    Separate,
    Either,
}

const fn flag(flag: &'static str, form: FlagForm) -> Flag {
    Flag { flag, form, after: None }
}

const fn login(flag: &'static str, form: FlagForm) -> Flag {
    Flag { flag, form, after: Some(':') }
}

const fn program(name: &'static str, flags: &'static [Flag]) -> Program {
    Program { name, flags, operand: false }
}

/// Placeholder flag for the place of an argument without a flag.
const OPERAND: Flag = flag("", FlagForm::Separate);

const P_ATTACHED: &[Flag] = &[flag("-p", FlagForm::Attached)];
const P_SEPARATE: &[Flag] = &[flag("-p", FlagForm::Separate)];
const PW: &[Flag] = &[flag("-pw", FlagForm::Separate)];

/// The programs; each name also covers longer ones (`mysqldump`).
pub(super) const PROGRAMS: &[Program] = &[
    program(
        "curl",
        &[
            login("-u", FlagForm::Either),
            login("--user", FlagForm::Separate),
            login("-U", FlagForm::Either),
            login("--proxy-user", FlagForm::Separate),
            flag("--pass", FlagForm::Separate),
            flag("--oauth2-bearer", FlagForm::Separate),
        ],
    ),
    program("mysql", P_ATTACHED),
    program("mariadb", P_ATTACHED),
    program("mongo", P_SEPARATE),
    program("cqlsh", P_SEPARATE),
    program("docker login", P_SEPARATE),
    program("podman login", P_SEPARATE),
    program("registry login", P_SEPARATE),
    program("az login", P_SEPARATE),
    program("sshpass", &[flag("-p", FlagForm::Either)]),
    program("redis-cli", &[flag("-a", FlagForm::Separate), flag("--pass", FlagForm::Separate)]),
    program("ldap", &[flag("-w", FlagForm::Separate)]),
    program("sqlcmd", &[flag("-P", FlagForm::Either)]),
    program("plink", PW),
    program("pscp", PW),
    program("xfreerdp", &[flag("/p:", FlagForm::Attached)]),
    Program {
        name: "ConvertTo-SecureString",
        flags: &[flag("-String", FlagForm::Separate), flag("-Key", FlagForm::Separate)],
        operand: true,
    },
    program("smbclient", &[Flag { flag: "-U", form: FlagForm::Separate, after: Some('%') }]),
];

impl Program {
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the first secret in the command line that begins with this program.
    pub(super) fn find(&self, text: &str, clue: Range<usize>) -> Option<Span> {
        let bytes = text.as_bytes();
        let inside = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        if clue.start > 0 && inside(bytes[clue.start - 1]) {
            return None;
        }
        // `curl.md` is no command.
        let tail = bytes[clue.end..].iter().take_while(|byte| inside(**byte) && **byte != b'.');
        let name_end = clue.end + tail.count();
        let limit = floor(text, (name_end + LINE_BYTES_MAX).min(text.len()));
        let mut words = Words { text: &text[..limit], at: name_end };
        let mut awaited: Option<&Flag> = None;
        let mut awaits_operand = self.operand;
        for _ in 0..ARGUMENTS_MAX {
            let word = words.next()?;
            let here = &text[word.clone()];
            let value = match awaited.take() {
                Some(flag) => Some((flag, word.clone())),
                // The first counts even if it is redacted already: what follows it is no secret.
                None if !here.starts_with('-') && std::mem::take(&mut awaits_operand) => {
                    Some((&OPERAND, word.clone()))
                }
                None => self.attached(here).map(|(flag, skip)| (flag, word.start + skip..word.end)),
            };
            if let Some(span) = value.and_then(|(flag, value)| flag.secret(text, value)) {
                return Some(span);
            }
            awaited = self.flags.iter().find(|flag| flag.takes_next(here));
        }
        None
    }

    /// Finds the flag at the start of a word that also holds its value.
    fn attached(&self, word: &str) -> Option<(&Flag, usize)> {
        self.flags.iter().find_map(|flag| {
            let rest = word.strip_prefix(flag.flag)?;
            let (value, skip) = match rest.strip_prefix('=') {
                Some(value) if flag.form != FlagForm::Attached => (value, 1),
                _ if flag.form == FlagForm::Separate => return None,
                _ => (rest, 0),
            };
            (!value.is_empty()).then_some((flag, flag.flag.len() + skip))
        })
    }

    /// Redacts the arguments of this program in a list; returns whether anything changed.
    fn redact(&self, arguments: &mut [Value]) -> bool {
        let mut awaited: Option<&Flag> = None;
        let mut changed = false;
        for argument in arguments {
            let Value::String(word) = argument else { return changed };
            let value = match awaited.take() {
                Some(flag) => Some((flag, 0..word.len())),
                None => self.attached(word).map(|(flag, skip)| (flag, skip..word.len())),
            };
            let span = value.and_then(|(flag, value)| flag.secret(word, value));
            awaited = self.flags.iter().find(|flag| flag.takes_next(word));
            if let Some(Span { start, end, .. }) = span {
                word.replace_range(start..end, REDACTED);
                changed = true;
            }
        }
        changed
    }
}

impl Flag {
    fn takes_next(&self, word: &str) -> bool {
        self.form != FlagForm::Attached && word == self.flag
    }

    /// Returns the secret part of a value, unless it is a variable or already redacted.
    fn secret(&self, text: &str, value: Range<usize>) -> Option<Span> {
        let quotes = |c: char| matches!(c, '"' | '\'' | '\\');
        let start = value.end - text[value.clone()].trim_start_matches(quotes).len();
        let end = start + text[start..value.end].trim_end_matches(quotes).len();
        let written = &text[start..end];
        let start = match self.after {
            Some(sign) => start + written.find(sign)? + sign.len_utf8(),
            None => start,
        };
        let secret = &text[start..end];
        let kept = secret.is_empty()
            || secret.starts_with(['$', '<', '{', '('])
            || marker_length(secret) == Some(secret.len());
        (!kept).then_some(Span { start, end, replacement: REDACTED })
    }
}

/// Redacts a list of arguments that begins with a program's name.
pub(super) fn redact_list(items: &mut [Value]) -> bool {
    let word = |at: usize| items.get(at).and_then(Value::as_str);
    let Some(first) = word(0) else { return false };
    let found = match (named(first), word(1)) {
        (Some(program), _) => Some((program, 1)),
        (None, Some(second)) => named(&format!("{first} {second}")).map(|program| (program, 2)),
        (None, None) => None,
    };
    found.is_some_and(|(program, skip)| program.redact(&mut items[skip..]))
}

/// Redacts the arguments of a command that is named next to them.
pub(super) fn redact_arguments(command: &str, items: &mut [Value]) -> bool {
    named(command).is_some_and(|program| program.redact(items))
}

fn named(command: &str) -> Option<&'static Program> {
    let command = command.rsplit('/').next().unwrap_or(command);
    PROGRAMS.iter().find(|program| command.starts_with(program.name))
}

/// The words of a command line, up to its end or the next command.
struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl Words<'_> {
    fn next(&mut self) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        let byte = |at: usize| bytes.get(at).copied();
        let mut start = self.at;
        loop {
            match byte(start)? {
                b' ' | b'\t' => start += 1,
                b'\\' if matches!(byte(start + 1), Some(b'\n')) => start += 2,
                b'\\' if matches!(byte(start + 1), Some(b'\\' | b'n')) => start += 2,
                b'\n' | b'\r' | b'|' | b';' | b'&' | b')' | b'`' => return None,
                _ => break,
            }
        }
        // A word must follow a blank.
        if start == self.at {
            return None;
        }
        let escapes = bytes[start..].iter().take(8).take_while(|byte| **byte == b'\\').count();
        let quote = byte(start + escapes).filter(|byte| matches!(byte, b'"' | b'\''));
        let end = match quote {
            Some(quote) => {
                let body = start + escapes + 1;
                let close = bytes[body..].iter().position(|byte| *byte == quote || *byte == b'\n');
                close.map_or(bytes.len(), |close| {
                    body + close + usize::from(bytes[body + close] == quote)
                })
            }
            None => {
                let ends = |byte: &u8| byte.is_ascii_whitespace() || b"\"|;&)`".contains(byte);
                bytes[start..].iter().position(ends).map_or(bytes.len(), |end| start + end)
            }
        };
        self.at = end;
        (end > start).then_some(start..end)
    }
}
