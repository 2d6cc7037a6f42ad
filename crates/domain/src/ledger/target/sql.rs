//! Finds the tables of simple SQL statements. What is not understood, and long scripts, have none:
//! nothing is guessed.

use super::Access;

/// Longer statements are data.
pub(super) const STATEMENT_BYTES_MAX: usize = 32 << 10;

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

/// The tables of a script, each with what is done to it.
pub(super) type Tables = Vec<(String, Access)>;

/// The most sources of a query that are looked at: several times what a record can name.
const SOURCES_MAX: usize = 64;

/// Returns the tables that a script of statements reads or changes, those that it changes first and
/// each once.
pub(super) fn tables(script: &str) -> Tables {
    if script.len() > STATEMENT_BYTES_MAX {
        return Tables::new();
    }
    if let Some(index) = piped_source(script) {
        return vec![(index.to_owned(), Access::Read)];
    }
    let mut tokens = Tokens { rest: script };
    let all: Vec<Token<'_>> = std::iter::from_fn(|| tokens.next()).collect();
    let statements = all.split(|token| *token == Token::Sign(';'));
    let found: Tables = statements.flat_map(of_statement).collect();
    let mut tables = Tables::new();
    for wanted in [Access::Write, Access::Read] {
        for (name, access) in &found {
            if *access == wanted && tables.iter().all(|(had, _)| had != name) {
                tables.push((name.clone(), wanted));
            }
        }
    }
    tables
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

fn of_statement(tokens: &[Token<'_>]) -> Tables {
    let Some((Token::Word(verb), rest)) = tokens.split_first() else {
        return Tables::new();
    };
    let written = match verb.to_ascii_lowercase().as_str() {
        "select" | "with" => changed(tokens),
        "insert" | "replace" | "merge" | "upsert" => inserted(rest).into_iter().collect(),
        "update" if rest.iter().any(|token| token.is("set")) => updated(rest).into_iter().collect(),
        "delete" => deleted(rest).into_iter().collect(),
        "truncate" => after(rest, &["table", "only"]).map(list).unwrap_or_default(),
        "create" | "alter" | "drop" => defined(rest),
        "describe" | "desc" => {
            let read = after(rest, &["table"]).and_then(name);
            return read.into_iter().map(|table| (table, Access::Read)).collect();
        }
        "explain" => return explained(rest),
        _ => return Tables::new(),
    };
    let is_query = tokens.iter().any(|token| token.is("select"));
    let is_read = is_query || (verb.eq_ignore_ascii_case("update") && !written.is_empty());
    let read = if is_read { read(tokens) } else { Vec::new() };
    let write = written.into_iter().map(|table| (table, Access::Write));
    write.chain(read.into_iter().map(|table| (table, Access::Read))).collect()
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

fn updated(rest: &[Token<'_>]) -> Option<String> {
    name(after(rest, &["only", "or", "ignore"])?)
}

fn deleted(rest: &[Token<'_>]) -> Option<String> {
    rest.first().filter(|token| token.is("from"))?;
    name(after(rest, &["from", "only"])?)
}

/// Returns the tables of `create table`, `drop table`, `create index … on` and the like.
fn defined(rest: &[Token<'_>]) -> Vec<String> {
    let found = || {
        let (what, rest) = after(rest, DEFINITION_WORDS)?.split_first()?;
        if what.is("table") || what.is("view") {
            return Some(list(after(rest, DEFINITION_WORDS)?));
        }
        if what.is("index") || what.is("unique") || what.is("trigger") {
            let on = rest.iter().position(|token| token.is("on"))?;
            return name(after(&rest[on + 1..], &["only"])?).map(|table| vec![table]);
        }
        None
    };
    found().unwrap_or_default()
}

/// Returns the tables of an explained statement; they are not changed unless it is executed.
fn explained(rest: &[Token<'_>]) -> Tables {
    let options = ["analyze", "analyse", "verbose", "query", "plan", "for", "format", "json"];
    let verbs = ["select", "with", "insert", "update", "delete", "replace", "merge"];
    let is_verb = |token: &Token<'_>| verbs.iter().any(|verb| token.is(verb));
    let Some(verb) = rest.iter().position(is_verb) else {
        return Tables::new();
    };
    let executed = rest[..verb].iter().any(|token| token.is(options[0]) || token.is(options[1]));
    let is_option = |token: &Token<'_>| match token {
        Token::Sign(sign) => "(),=".contains(*sign),
        token => options.iter().any(|option| token.is(option)),
    };
    if !rest[..verb].iter().all(is_option) {
        return Tables::new();
    }
    let mut tables = of_statement(&rest[verb..]);
    if !executed {
        tables.iter_mut().for_each(|(_, access)| *access = Access::Read);
    }
    tables
}

/// Returns the tables that are changed within a query.
fn changed(tokens: &[Token<'_>]) -> Vec<String> {
    let change = |at: usize| {
        let (token, rest) = (&tokens[at], &tokens[at + 1..]);
        let is_lock = at > 0 && tokens[at - 1].is("for");
        if token.is("into") {
            let is_file = |name: &String| name == "outfile" || name == "dumpfile";
            name(after(rest, &["table", "only"])?).filter(|name| !is_file(name))
        } else if token.is("delete") {
            deleted(rest)
        } else if token.is("update") && !is_lock {
            updated(rest).filter(|_| rest.iter().any(|token| token.is("set")))
        } else {
            None
        }
    };
    (0..tokens.len()).filter_map(change).collect()
}

/// Returns the tables that are read, beside those that a statement defines itself and the one that
/// it changes.
fn read(tokens: &[Token<'_>]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for source in sources(tokens).into_iter().take(SOURCES_MAX) {
        let Some(name) = name(&tokens[source..]) else {
            continue;
        };
        let defines = |three: &[Token<'_>]| {
            let is_name = || three[0].identifier().is_some_and(|defined| defined == name);
            three[1].is("as") && three[2].opens() && is_name()
        };
        let is_deleted = source > 1 && tokens[source - 2].is("delete");
        if !is_deleted && !found.contains(&name) && !tokens.windows(3).any(defines) {
            found.push(name);
        }
    }
    found
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

/// Returns the names of a list: `a, b`.
fn list(tokens: &[Token<'_>]) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = Some(tokens);
    while let Some((name, after)) = rest.and_then(parts) {
        names.push(name);
        rest = match after {
            [Token::Sign(','), next @ ..] => Some(next),
            _ => None,
        };
    }
    names
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
