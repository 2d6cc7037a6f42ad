//! The words and signs of a script. Dialects disagree on where quotes and comments end, and what one
//! of them hides another one executes.

/// A way to read what dialects read differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// `--` begins a comment, comments nest, `$$` quotes a text and `[` a name.
    Standard,
    /// `#` begins a comment, and `--` only before a blank; `\` escapes, `/*!` is executed.
    MySql,
}

/// The signs in a script that are read differently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Doubts {
    /// `--x`
    dashes: bool,
    /// `#`
    hash: bool,
    /// Anything else, or a quote or comment without an end.
    is_odd: bool,
}

impl Doubts {
    /// Reports whether one of the two readings is that of any dialect.
    pub(super) fn is_resolvable(self) -> bool {
        !(self.is_odd || self.dashes && self.hash)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    /// A name in quotes, without them.
    Quoted(&'a str),
    Sign(char),
    /// A literal: a string or a number.
    Literal,
}

impl Token<'_> {
    pub(super) fn is(&self, word: &str) -> bool {
        matches!(self, Token::Word(text) if text.eq_ignore_ascii_case(word))
    }

    pub(super) fn opens(&self) -> bool {
        *self == Token::Sign('(')
    }

    /// Returns the name of a thing. Without quotes its case means nothing.
    pub(super) fn identifier(&self) -> Option<String> {
        match self {
            Token::Word(text) => Some(text.to_ascii_lowercase()),
            Token::Quoted(text) => Some((*text).to_owned()),
            Token::Sign(_) | Token::Literal => None,
        }
    }
}

pub(super) struct Tokens<'a> {
    rest: &'a str,
    dialect: Dialect,
    doubts: Doubts,
}

impl<'a> Tokens<'a> {
    /// Splits a script, and tells what another dialect reads differently.
    pub(super) fn all(script: &'a str, dialect: Dialect) -> (Vec<Token<'a>>, Doubts) {
        let mut tokens = Tokens { rest: script, dialect, doubts: Doubts::default() };
        let all = std::iter::from_fn(|| tokens.next()).collect();
        (all, tokens.doubts)
    }

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_space();
        let first = self.rest.chars().next()?;
        let in_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let length = match first {
            '\'' => {
                // What is not closed is not read on.
                self.quoted('\'').or_else(|| Some(std::mem::take(&mut self.rest)));
                return Some(Token::Literal);
            }
            '"' | '`' => return Some(self.name_in(first)),
            '[' if self.dialect == Dialect::Standard => return Some(self.name_in(']')),
            '$' if self.dollar_quoted() => return Some(Token::Literal),
            c if in_word(c) => self.rest.find(|c| !in_word(c)).unwrap_or(self.rest.len()),
            c => c.len_utf8(),
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(match first {
            digit if digit.is_ascii_digit() => Token::Literal,
            c if in_word(c) => Token::Word(token),
            sign => {
                self.doubts.hash |= sign == '#';
                Token::Sign(sign)
            }
        })
    }

    fn name_in(&mut self, close: char) -> Token<'a> {
        let open = if close == ']' { '[' } else { close };
        match self.quoted(close) {
            Some(name) if !name.is_empty() => Token::Quoted(name),
            Some(_) => Token::Literal,
            None => Token::Sign(open),
        }
    }

    /// Takes what is in quotes; without a closing one, only the opening one is taken.
    fn quoted(&mut self, close: char) -> Option<&'a str> {
        let inner = &self.rest[1..];
        let end = self.end_of(inner, close);
        self.rest = end.map_or(inner, |end| &inner[end + 1..]);
        let text = end.map(|end| &inner[..end]);
        let is_odd = |text: &str| match close {
            // A list of values in some dialects, in which a quote may hide the end.
            ']' => {
                text.matches('\'').count() % 2 == 1
                    || ["\"", "`", "--", "/*"].iter().any(|sign| text.contains(sign))
            }
            // What is escaped in one dialect is the end in another.
            '\'' => text.ends_with('\\') || text.contains("\\'"),
            '"' => text.ends_with('\\') || text.contains("\\\""),
            _ => false,
        };
        self.doubts.is_odd |= text.is_none_or(is_odd);
        text
    }

    fn end_of(&self, inner: &str, close: char) -> Option<usize> {
        if self.dialect == Dialect::Standard || close == '`' {
            return inner.find(close);
        }
        let mut is_escaped = false;
        inner.char_indices().find_map(|(at, char)| {
            let ends = char == close && !is_escaped;
            is_escaped = char == '\\' && !is_escaped;
            ends.then_some(at)
        })
    }

    /// Takes a text between two tags, `$$` or `$body$`. Other dialects have words with such signs.
    fn dollar_quoted(&mut self) -> bool {
        let Some(end) = self.rest[1..].find('$') else {
            return false;
        };
        let tag = &self.rest[..end + 2];
        let is_tag = tag[1..=end].chars().all(|c| c.is_alphanumeric() || c == '_');
        if !is_tag || tag[1..].starts_with(|c: char| c.is_ascii_digit()) {
            return false;
        }
        self.doubts.is_odd = true;
        if self.dialect == Dialect::Standard {
            let inner = &self.rest[tag.len()..];
            self.rest = inner.find(tag).map_or("", |end| &inner[end + tag.len()..]);
        }
        self.dialect == Dialect::Standard
    }

    fn skip_space(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            let end = if let Some(comment) = self.rest.strip_prefix("--") {
                let is_plain = comment.is_empty() || comment.starts_with(char::is_whitespace);
                self.doubts.dashes |= !is_plain;
                if !is_plain && self.dialect == Dialect::MySql {
                    return;
                }
                self.line_end()
            } else if self.rest.starts_with('#') && self.dialect == Dialect::MySql {
                self.doubts.hash = true;
                self.line_end()
            } else if self.rest.starts_with("/*") {
                self.comment_end()
            } else {
                return;
            };
            self.rest = &self.rest[end..];
        }
    }

    /// Returns the end of the line. In some dialects a carriage return is one.
    fn line_end(&mut self) -> usize {
        let line = self.rest.find('\n').unwrap_or(self.rest.len());
        match self.rest[..line].trim_end_matches('\r').find('\r') {
            Some(at) => {
                self.doubts.is_odd = true;
                if self.dialect == Dialect::Standard { at } else { line }
            }
            None => line,
        }
    }

    /// Returns the end of a comment, or of the sign that makes it none.
    fn comment_end(&mut self) -> usize {
        let inner = &self.rest[2..];
        if let Some(executed) = inner.strip_prefix('!') {
            self.doubts.is_odd = true;
            if self.dialect == Dialect::MySql {
                let digits = executed.bytes().take_while(u8::is_ascii_digit).count();
                return "/*!".len() + digits;
            }
        }
        let mut depth = 1;
        let mut at = 2;
        while let Some(next) = self.rest[at..].find("*/") {
            let opened = self.rest[at..at + next].matches("/*").count();
            self.doubts.is_odd |= opened > 0;
            at += next + 2;
            depth = if self.dialect == Dialect::Standard { depth + opened - 1 } else { 0 };
            if depth == 0 {
                return at;
            }
        }
        self.doubts.is_odd = true;
        self.rest.len()
    }
}
