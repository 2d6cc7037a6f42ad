//! Finds the table of a simple SQL statement. Statements with several tables, scripts of several
//! statements and long ones have none: nothing is guessed.

use super::Access;

/// Longer statements are data.
const STATEMENT_BYTES_MAX: usize = 32 << 10;

/// The parts of a qualified name: server, database, schema, table.
const NAME_PARTS_MAX: usize = 4;

/// Words before the name of a table that is created, altered or dropped.
const DEFINITION_WORDS: &[&str] = &[
    "or",
    "replace",
    "temp",
    "temporary",
    "unlogged",
    "external",
    "transient",
    "global",
    "local",
    "foreign",
    "materialized",
    "virtual",
    "if",
    "not",
    "exists",
    "only",
];

/// The most sources of a query that are looked at; one with more has several tables.
const SOURCES_MAX: usize = 64;

/// Returns the table that a statement reads or changes. A statement that changes one table and reads
/// others has the table that it changes.
pub(super) fn table(statement: &str) -> Option<(String, Access)> {
    if statement.len() > STATEMENT_BYTES_MAX {
        return None;
    }
    if let Some(index) = piped_source(statement) {
        return Some((index.to_owned(), Access::Read));
    }
    let mut tokens = Tokens { rest: statement };
    let all: Vec<Token<'_>> = std::iter::from_fn(|| tokens.next()).collect();
    let mut statements = all.split(|token| *token == Token::Sign(';')).filter(|s| !s.is_empty());
    let (only, None) = (statements.next()?, statements.next()) else {
        return None;
    };
    of_statement(only)
}

/// Returns the index of a piped query: `FROM logs | WHERE …`.
fn piped_source(statement: &str) -> Option<&str> {
    let statement = statement.trim();
    let rest = statement.get(..5).filter(|from| from.eq_ignore_ascii_case("from "))?;
    let rest = statement[rest.len()..].trim_start();
    let in_name = |c: char| c.is_alphanumeric() || "_.-*".contains(c);
    let name = &rest[..rest.find(|c| !in_name(c)).unwrap_or(rest.len())];
    let after = rest[name.len()..].trim_start();
    (!name.is_empty() && (after.is_empty() || after.starts_with('|'))).then_some(name)
}

fn of_statement(tokens: &[Token<'_>]) -> Option<(String, Access)> {
    let (first, rest) = tokens.split_first()?;
    let Token::Word(verb) = first else {
        return None;
    };
    let written = |name: Option<String>| Some((name?, Access::Write));
    match verb.to_ascii_lowercase().as_str() {
        "select" | "with" => selected(tokens),
        "insert" | "replace" | "merge" | "upsert" => written(inserted(rest)),
        "update" if rest.iter().any(|token| token.is("set")) => {
            written(name(after(rest, &["only", "or", "ignore"])?))
        }
        "delete" if rest.first()?.is("from") => written(name(after(rest, &["from", "only"])?)),
        "truncate" => written(alone(after(rest, &["table", "only"])?)),
        "create" | "alter" | "drop" => written(defined(rest)),
        "describe" | "desc" => Some((name(after(rest, &["table"])?)?, Access::Read)),
        "explain" => explained(rest),
        _ => None,
    }
}

/// Returns the rest after the words, in any number and order.
fn after<'a, 't>(tokens: &'a [Token<'t>], words: &[&str]) -> Option<&'a [Token<'t>]> {
    let start = tokens.iter().position(|token| !words.iter().any(|word| token.is(word)))?;
    Some(&tokens[start..])
}

/// Returns the table of `insert into` and `insert overwrite`.
fn inserted(rest: &[Token<'_>]) -> Option<String> {
    let into = rest.iter().take(4).position(|token| token.is("into") || token.is("overwrite"))?;
    name(after(&rest[into + 1..], &["table"])?)
}

/// Returns the table of `create table`, `create index … on` and the like.
fn defined(rest: &[Token<'_>]) -> Option<String> {
    let rest = after(rest, DEFINITION_WORDS)?;
    let (what, rest) = rest.split_first()?;
    if what.is("table") || what.is("view") {
        return alone(after(rest, DEFINITION_WORDS)?);
    }
    if what.is("index") || what.is("unique") || what.is("trigger") {
        let on = rest.iter().position(|token| token.is("on"))?;
        return name(after(&rest[on + 1..], &["only"])?);
    }
    None
}

/// Returns the table of an explained statement; it is not changed unless the statement is executed.
fn explained(rest: &[Token<'_>]) -> Option<(String, Access)> {
    let options = ["analyze", "analyse", "verbose", "query", "plan", "for", "format", "json"];
    let verbs = ["select", "with", "insert", "update", "delete", "replace", "merge"];
    let verb = rest.iter().position(|token| verbs.iter().any(|verb| token.is(verb)))?;
    let executed = rest[..verb].iter().any(|token| token.is(options[0]) || token.is(options[1]));
    let is_option = |token: &Token<'_>| match token {
        Token::Sign(sign) => "(),=".contains(*sign),
        token => options.iter().any(|option| token.is(option)),
    };
    if !rest[..verb].iter().all(is_option) {
        return None;
    }
    let (table, access) = of_statement(&rest[verb..])?;
    Some((table, if executed { access } else { Access::Read }))
}

/// Returns the table of a query, if it has exactly one beside those that it defines itself.
fn selected(tokens: &[Token<'_>]) -> Option<(String, Access)> {
    let changes = ["insert", "update", "delete", "merge", "into"];
    let is_change = |at: usize| {
        let is_lock = at > 0 && tokens[at - 1].is("for");
        !is_lock && changes.iter().any(|change| tokens[at].is(change))
    };
    let sources = sources(tokens);
    let is_query = tokens.iter().any(|token| token.is("select"));
    if !is_query || sources.len() > SOURCES_MAX || (0..tokens.len()).any(is_change) {
        return None;
    }
    let mut found: Option<String> = None;
    for source in sources {
        let name = name(&tokens[source..])?;
        let defines = |three: &[Token<'_>]| {
            let is_name = || three[0].identifier().is_some_and(|defined| defined == name);
            three[1].is("as") && three[2].opens() && is_name()
        };
        match &found {
            Some(had) if *had == name => {}
            _ if tokens.windows(3).any(defines) => {}
            Some(_) => return None,
            None => found = Some(name),
        }
    }
    Some((found?, Access::Read))
}

/// Returns where the sources of a query are named: after `from`, `join` and the commas between.
fn sources(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut sources = Vec::new();
    // For each open parenthesis: is it a query, and is its list of sources being read?
    let mut levels = vec![(true, false)];
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        let (is_query, in_sources) = levels[levels.len() - 1];
        let set = |levels: &mut Vec<(bool, bool)>, reading: bool| {
            if let Some(level) = levels.last_mut() {
                level.1 = reading;
            }
        };
        let distinct = at > 0 && tokens[at - 1].is("distinct");
        let begins = (token.is("from") && is_query && !distinct) || token.is("join");
        if token.opens() {
            let inner = next.is_some_and(|next| next.is("select") || next.is("with"));
            levels.push((inner, in_sources && !inner));
        } else if *token == Token::Sign(')') {
            if levels.len() > 1 {
                levels.pop();
            }
        } else if begins || (*token == Token::Sign(',') && in_sources && is_query) {
            set(&mut levels, true);
            let lateral = next.is_some_and(|next| next.is("lateral") || next.is("only"));
            let start = at + 1 + usize::from(lateral);
            if is_source(&tokens[start.min(tokens.len())..]) {
                sources.push(start);
            }
        } else if ["where", "group", "order", "limit", "having", "union", "on", "window"]
            .iter()
            .any(|word| token.is(word))
        {
            set(&mut levels, false);
        }
    }
    sources
}

/// Reports whether a name stands here, rather than a function or a query.
fn is_source(tokens: &[Token<'_>]) -> bool {
    match parts(tokens) {
        Some((_, rest)) => !rest.first().is_some_and(Token::opens),
        None => false,
    }
}

fn name(tokens: &[Token<'_>]) -> Option<String> {
    parts(tokens).map(|(name, _)| name)
}

/// Returns a name that is not the first of a list.
fn alone(tokens: &[Token<'_>]) -> Option<String> {
    let (name, rest) = parts(tokens)?;
    (rest.first() != Some(&Token::Sign(','))).then_some(name)
}

/// Splits off a qualified name.
fn parts<'a, 't>(tokens: &'a [Token<'t>]) -> Option<(String, &'a [Token<'t>])> {
    let (first, mut rest) = tokens.split_first()?;
    let mut name = first.identifier()?;
    for _ in 1..NAME_PARTS_MAX {
        let [Token::Sign('.'), next, tail @ ..] = rest else {
            break;
        };
        name.push('.');
        name.push_str(&next.identifier()?);
        rest = tail;
    }
    (!name.is_empty()).then_some((name, rest))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// A name in quotes, without them.
    Quoted(&'a str),
    Sign(char),
    /// A literal: a string or a number.
    Literal,
}

impl Token<'_> {
    fn is(&self, word: &str) -> bool {
        matches!(self, Token::Word(text) if text.eq_ignore_ascii_case(word))
    }

    fn opens(&self) -> bool {
        *self == Token::Sign('(')
    }

    /// Returns the name of a thing. Without quotes its case means nothing.
    fn identifier(&self) -> Option<String> {
        match self {
            Token::Word(text) => Some(text.to_ascii_lowercase()),
            Token::Quoted(text) => Some((*text).to_owned()),
            _ => None,
        }
    }
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
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
            '[' => return Some(self.name_in(']')),
            c if in_word(c) => self.rest.find(|c| !in_word(c)).unwrap_or(self.rest.len()),
            c => c.len_utf8(),
        };
        let (token, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(match first {
            digit if digit.is_ascii_digit() => Token::Literal,
            c if in_word(c) => Token::Word(token),
            sign => Token::Sign(sign),
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
        let end = inner.find(close);
        self.rest = end.map_or(inner, |end| &inner[end + close.len_utf8()..]);
        end.map(|end| &inner[..end])
    }

    fn skip_space(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            let end = if self.rest.starts_with("--") {
                self.rest.find('\n')
            } else if self.rest.starts_with("/*") {
                self.rest.find("*/").map(|end| end + 2)
            } else {
                return;
            };
            self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
        }
    }
}
