//! Finds the tables of simple SQL statements. What is not understood, and long scripts, have none:
//! nothing is guessed. Dialects read some signs differently; such a script is read in two ways, and
//! what either way changes counts as changed.

mod sources;
mod tokens;

use super::Access;
use sources::{TableSource, sources, table_of};
use tokens::{Dialect, Doubts, Token, Tokens};

/// Longer statements are data.
pub(super) const STATEMENT_BYTES_MAX: usize = 32 << 10;

/// The parts of a qualified name: server, database, schema, table.
const NAME_PARTS_MAX: usize = 4;

const DEFINITION_WORDS: &[&str] = text::words!("sql/definition-words.txt");
const HARMLESS: &[&str] = text::words!("sql/harmless.txt");
const OPAQUE: &[&str] = text::words!("sql/opaque.txt");

/// Words before a verb that is none there: `for update`, `on delete cascade`.
const LEADS: &[&str] = &["after", "before", "for", "instead", "key", "of", "on", "or"];

/// The tables of a script, each with what is done to it.
pub(super) type Tables = Vec<(String, Access)>;

/// The most sources of a query that are looked at: several times what a record can name.
const SOURCES_MAX: usize = 64;

/// The tables of a script, those that it changes first and each once.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// The access is unknown where the script only seems to read a table.
    pub(super) tables: Tables,
    /// Every statement is understood, in every dialect.
    is_clear: bool,
    /// A statement runs what is in a text.
    is_opaque: bool,
}

impl Script {
    const UNREAD: Script = Script { tables: Tables::new(), is_clear: false, is_opaque: true };

    /// Reports whether it may touch more than its tables. Most texts under a key that does not tell
    /// are no SQL.
    pub(super) fn leaves_doubt(&self, key: &str) -> bool {
        !self.is_clear && (self.is_opaque || !self.tables.is_empty() || key.contains("sql"))
    }

    fn add(&mut self, tokens: &[Token<'_>]) {
        for tokens in tokens.split(|token| *token == Token::Sign(';')) {
            let Statement { tables, is_clear } = of_statement(tokens);
            self.tables.extend(tables);
            self.is_clear &= is_clear;
            let runs =
                |word| tokens[0].is(word) && matches!(tokens[1], Token::Sign(_) | Token::Literal);
            self.is_opaque |= tokens.len() > 1 && ["do", "exec", "execute"].into_iter().any(runs);
        }
    }

    /// Keeps each table once, those that are changed first.
    fn sorted(mut self) -> Script {
        let found = std::mem::take(&mut self.tables);
        let read = if self.is_clear { Access::Read } else { Access::Unknown };
        for (wanted, access) in [(Access::Write, Access::Write), (Access::Read, read)] {
            for (name, _) in found.iter().filter(|(_, access)| *access == wanted) {
                if self.tables.iter().all(|(had, _)| had != name) {
                    self.tables.push((name.clone(), access));
                }
            }
        }
        self
    }
}

/// Reads a script of statements.
pub(super) fn read(script: &str) -> Script {
    if script.len() > STATEMENT_BYTES_MAX {
        return Script::UNREAD;
    }
    if let Some(index) = piped_source(script) {
        let tables = vec![(index.to_owned(), Access::Read)];
        return Script { tables, is_clear: true, is_opaque: false };
    }
    let (tokens, doubts) = Tokens::all(script, Dialect::Standard);
    let mut read = Script { is_clear: doubts.is_resolvable(), ..Script::default() };
    read.add(&tokens);
    if doubts != Doubts::default() {
        let (tokens, doubts) = Tokens::all(script, Dialect::MySql);
        read.is_clear &= doubts.is_resolvable();
        read.add(&tokens);
    }
    read.sorted()
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

/// The tables of one statement.
struct Statement {
    tables: Tables,
    is_clear: bool,
}

fn of_statement(tokens: &[Token<'_>]) -> Statement {
    let tokens = &tokens[tokens.iter().take_while(|token| token.opens()).count()..];
    let (verb, rest) = match tokens.split_first() {
        None => return Statement { tables: Tables::new(), is_clear: true },
        Some((Token::Word(verb), rest)) => (verb.to_ascii_lowercase(), rest),
        Some(_) => return Statement { tables: Tables::new(), is_clear: false },
    };
    let verb = verb.as_str();
    if verb == "explain" {
        return explained(rest);
    }
    let is_harmless = ["select", "with"].contains(&verb) || HARMLESS.contains(&verb);
    let sources = sources(tokens);
    let (mut written, mut read_only) = (Vec::new(), Vec::new());
    match verb {
        "update" => written = sources::updated(tokens, &sources),
        "describe" | "desc" => read_only.extend(after(rest, &["table"]).and_then(name)),
        "copy" if is_from(rest) => written.extend(name(rest)),
        "copy" => read_only.extend(name(rest)),
        "rename" => written = renamed(rest),
        "truncate" => written = after(rest, &["table", "only"]).map(list).unwrap_or_default(),
        _ => written = changed(tokens, 0),
    }
    let is_known = is_harmless || !written.is_empty() || !read_only.is_empty();
    if is_known || OPAQUE.contains(&verb) {
        written.extend((1..tokens.len()).flat_map(|at| changed(tokens, at)));
    }
    let changes_sources = ["delete", "update"].contains(&verb);
    let real = |table| if changes_sources { table_of(&sources, table) } else { table };
    let written: Vec<String> = written.into_iter().map(real).collect();
    let is_query =
        changes_sources || verb == "merge" || tokens.iter().any(|token| token.is("select"));
    if is_known && is_query {
        read_only.extend(read_tables(tokens, &sources));
    }
    let runs = |token: &Token<'_>| ["call", "exec", "execute"].iter().any(|word| token.is(word));
    // A trigger names what it runs.
    let is_definition = verb == "create" || verb == "alter";
    let is_clear = is_known && (is_definition || !rest.iter().any(runs));
    let write = written.into_iter().map(|table| (table, Access::Write));
    let tables = write.chain(read_only.into_iter().map(|table| (table, Access::Read))).collect();
    Statement { tables, is_clear }
}

/// Reports whether a `copy` loads a table.
fn is_from(rest: &[Token<'_>]) -> bool {
    let mut words = rest.iter().filter(|token| token.is("from") || token.is("to"));
    !rest.first().is_some_and(Token::opens) && words.next().is_some_and(|word| word.is("from"))
}

/// Returns the old and new names of `rename table a to b, c to d`.
fn renamed(rest: &[Token<'_>]) -> Vec<String> {
    let starts = |token: &Token<'_>| {
        token.is("table") || token.is("tables") || token.is("to") || *token == Token::Sign(',')
    };
    let named = |at: usize| starts(&rest[at]).then(|| name(&rest[at + 1..])).flatten();
    (0..rest.len()).filter_map(named).collect()
}

/// Returns the rest after the words, in any number and order.
fn after<'a, 't>(tokens: &'a [Token<'t>], words: &[&str]) -> Option<&'a [Token<'t>]> {
    let start = tokens.iter().position(|token| !words.iter().any(|word| token.is(word)))?;
    Some(&tokens[start..])
}

/// Returns the tables that are changed by the word at a place, if it is the verb of a change.
fn changed(tokens: &[Token<'_>], at: usize) -> Vec<String> {
    let (Token::Word(word), rest) = (tokens[at], &tokens[at + 1..]) else {
        return Vec::new();
    };
    if at > 0 && LEADS.iter().any(|lead| tokens[at - 1].is(lead)) {
        return Vec::new();
    }
    let is = |verb: &str| word.eq_ignore_ascii_case(verb);
    if ["alter", "create", "drop"].into_iter().any(is) {
        return defined(rest);
    }
    if is("delete") {
        return deleted(rest);
    }
    let table = if is("into") {
        let is_file = |name: &String| name == "outfile" || name == "dumpfile";
        let table = after(rest, &["table", "only"]).and_then(name);
        table.filter(|name| !is_file(name))
    } else if ["insert", "merge", "replace", "upsert"].into_iter().any(is) {
        inserted(rest, at == 0)
    } else if is("update") && rest.iter().any(|token| token.is("set")) {
        updated(rest)
    } else if is("truncate") && rest.first().is_some_and(|what| what.is("table")) {
        name(&rest[1..])
    } else {
        None
    };
    table.into_iter().collect()
}

/// Returns the table of `insert into`, `insert overwrite` and, where dialects have it, `insert`.
fn inserted(rest: &[Token<'_>], is_first: bool) -> Option<String> {
    let is_into = |token: &Token<'_>| token.is("into") || token.is("overwrite");
    if let Some(into) = rest.iter().take(4).position(is_into) {
        return name(after(&rest[into + 1..], &["table"])?);
    }
    let modifiers = ["ignore", "low_priority", "high_priority", "delayed"];
    let (table, rest) = parts(after(rest, &modifiers)?)?;
    let follows = ["values", "select", "default", "exec", "using", "as", "set"];
    let is_change = rest
        .first()
        .is_some_and(|next| is_first && next.opens() || follows.iter().any(|word| next.is(word)));
    is_change.then_some(table)
}

fn updated(rest: &[Token<'_>]) -> Option<String> {
    // What an `on conflict do update set` changes is the table of the insert.
    name(after(rest, &["only", "or", "ignore"])?).filter(|table| table != "set")
}

/// Returns the tables of `delete from` and, where dialects have it, `delete a, b from`.
fn deleted(rest: &[Token<'_>]) -> Vec<String> {
    if rest.first().is_some_and(|next| next.is("from")) {
        let listed = after(rest, &["from", "only"]).map(list).unwrap_or_default();
        let is_several = rest.iter().any(|token| token.is("using"));
        return listed.into_iter().take(if is_several { SOURCES_MAX } else { 1 }).collect();
    }
    let (mut names, mut left) = (Vec::new(), rest);
    while let Some((name, after)) = parts(left) {
        names.push(name);
        match after {
            [Token::Sign(','), next @ ..] => left = next,
            // In prose, anything follows.
            [] => return names,
            [next, ..] if next.is("where") || next.is("from") => return names,
            _ => break,
        }
    }
    Vec::new()
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
fn explained(rest: &[Token<'_>]) -> Statement {
    let options = ["analyze", "analyse", "verbose", "query", "plan", "for", "format", "json"];
    let verbs = ["select", "with", "insert", "update", "delete", "replace", "merge"];
    let is_verb = |token: &Token<'_>| verbs.iter().any(|verb| token.is(verb));
    let verb = rest.iter().position(is_verb).unwrap_or(rest.len());
    let is_option = |token: &Token<'_>| match token {
        Token::Sign(sign) => "(),=".contains(*sign),
        token => options.iter().any(|option| token.is(option)),
    };
    if verb == rest.len() || !rest[..verb].iter().all(is_option) {
        return Statement { tables: Tables::new(), is_clear: false };
    }
    let executed = rest[..verb].iter().any(|token| token.is(options[0]) || token.is(options[1]));
    let mut statement = of_statement(&rest[verb..]);
    if !executed {
        statement.tables.iter_mut().for_each(|(_, access)| *access = Access::Read);
    }
    statement
}

/// Returns the tables that are read, except those that a statement defines itself and the one that
/// it deletes from.
fn read_tables(tokens: &[Token<'_>], sources: &[TableSource]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for source in sources {
        let (name, at) = (source.table(sources), source.at);
        let defines = |three: &[Token<'_>]| {
            let is_name = || three[0].identifier().is_some_and(|defined| defined == name);
            three[1].is("as") && three[2].opens() && is_name()
        };
        let is_deleted = at > 1 && tokens[at - 2].is("delete");
        if !is_deleted && !found.contains(&name) && !tokens.windows(3).any(defines) {
            found.push(name);
        }
    }
    found
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
