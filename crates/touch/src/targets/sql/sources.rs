//! The sources of a query or a change: the tables after `from`, `join`, `using` and the commas
//! between them, with the names that the statement gives them.

use super::tokens::Token;
use super::{SOURCES_MAX, after, parts};

/// Words that end a list of sources.
const ENDS: &[&str] = &[
    "connect",
    "except",
    "for",
    "group",
    "having",
    "intersect",
    "limit",
    "order",
    "qualify",
    "returning",
    "set",
    "start",
    "union",
    "where",
    "window",
];

/// Words after a source that are no name for it.
const FOLLOWS: &[&str] = &[
    "anti",
    "apply",
    "asof",
    "cross",
    "force",
    "full",
    "global",
    "ignore",
    "inner",
    "join",
    "left",
    "natural",
    "on",
    "outer",
    "right",
    "semi",
    "straight_join",
    "tablesample",
    "use",
    "using",
    "when",
    "with",
];

/// Words between `update` and its table.
const MODIFIERS: &[&str] =
    &["abort", "fail", "ignore", "low_priority", "only", "or", "replace", "rollback"];

/// A table that a statement reads, or changes among others.
pub(super) struct TableSource {
    name: String,
    /// The name that it has in the statement.
    alias: Option<String>,
    /// The place of its name among the tokens.
    pub(super) at: usize,
    /// It follows `update`, and may be called by the name that the statement gives it.
    is_target: bool,
}

impl TableSource {
    fn read(tokens: &[Token<'_>], at: usize) -> Option<TableSource> {
        let (name, rest) = parts(tokens.get(at..)?)?;
        let rest = if rest.first().is_some_and(|next| next.is("as")) { &rest[1..] } else { rest };
        let is_name = |next: &&Token<'_>| !is_one_of(next, ENDS) && !is_one_of(next, FOLLOWS);
        let alias = rest.first().filter(is_name).and_then(Token::identifier);
        Some(TableSource { name, alias, at, is_target: false })
    }

    /// Returns the name of the table.
    pub(super) fn table(&self, sources: &[TableSource]) -> String {
        let name = self.name.clone();
        if self.is_target { table_of(sources, name) } else { name }
    }

    /// Reports whether the statement calls it by this name.
    fn is_called(&self, name: &str) -> bool {
        match &self.alias {
            Some(alias) => alias == name,
            None => self.name == name || self.name.rsplit('.').next() == Some(name),
        }
    }
}

fn is_one_of(token: &Token<'_>, words: &[&str]) -> bool {
    words.iter().any(|word| token.is(word))
}

/// A pair of parentheses that is open, or the whole statement.
struct Level {
    is_query: bool,
    /// A list of sources is being read.
    in_sources: bool,
}

/// Returns the sources of a statement in their order.
pub(super) fn sources(tokens: &[Token<'_>]) -> Vec<TableSource> {
    let mut found = Vec::new();
    let removes = tokens.first().is_some_and(|verb| verb.is("delete") || verb.is("merge"));
    let mut levels = vec![Level { is_query: true, in_sources: false }];
    for (at, token) in tokens.iter().enumerate() {
        if found.len() == SOURCES_MAX {
            break;
        }
        let (next, last) = (tokens.get(at + 1), levels.len() - 1);
        let Level { is_query, in_sources } = levels[last];
        let before = at.checked_sub(1).map(|before| &tokens[before]);
        let follows = |word: &str| before.is_some_and(|before| before.is(word));
        if token.opens() {
            let inner = next.is_some_and(|next| next.is("select") || next.is("with"));
            // `from (a join b on …)`
            let leads = ["from", "join", "lateral", "using"].into_iter().any(follows)
                || matches!(before, Some(Token::Sign(',' | '(')));
            let is_group = is_query && in_sources && leads && !inner;
            levels.push(Level { is_query: inner || is_group, in_sources: is_group });
            if is_group && is_source(&tokens[at + 1..]) && !follows("using") {
                found.extend(TableSource::read(tokens, at + 1));
            }
            continue;
        }
        let begins = token.is("from") && is_query && !follows("distinct")
            || token.is("join")
            || token.is("using") && removes && is_query
            || in_sources && (token.is("apply") || token.is("straight_join"))
            || at == 0 && token.is("update");
        if *token == Token::Sign(')') {
            if last > 0 {
                levels.pop();
            }
        } else if begins || (*token == Token::Sign(',') && in_sources && is_query) {
            levels[last].in_sources = true;
            let start = at + 1 + skipped(tokens, at);
            if is_source(tokens.get(start..).unwrap_or_default()) {
                let source = TableSource::read(tokens, start);
                found.extend(source.map(|it| TableSource { is_target: token.is("update"), ..it }));
            }
        } else if is_one_of(token, ENDS)
            || token.is("on") && next.is_some_and(|it| it.is("conflict") || it.is("duplicate"))
        {
            levels[last].in_sources = false;
        }
    }
    found
}

/// Returns the number of words between a word that begins sources and the first of them.
fn skipped(tokens: &[Token<'_>], at: usize) -> usize {
    let rest = &tokens[at + 1..];
    let words = if tokens[at].is("update") { MODIFIERS } else { &["lateral", "only"] };
    after(rest, words).map_or(0, |after| rest.len() - after.len())
}

/// Reports whether a name stands here, rather than a function or a query.
fn is_source(tokens: &[Token<'_>]) -> bool {
    match parts(tokens) {
        Some((_, rest)) => !rest.first().is_some_and(Token::opens),
        None => false,
    }
}

/// Returns the table that a statement calls by a name, which may be one that it gave it.
pub(super) fn table_of(sources: &[TableSource], name: String) -> String {
    let called = sources.iter().find(|source| source.alias.as_deref() == Some(&name));
    called.map_or(name, |source| source.name.clone())
}

/// Returns the tables that an `update` changes: of several, those whose columns are set.
pub(super) fn updated(tokens: &[Token<'_>], sources: &[TableSource]) -> Vec<String> {
    let Some(set) = tokens.iter().position(|token| token.is("set")) else {
        return Vec::new();
    };
    let listed: Vec<&TableSource> = sources.iter().filter(|source| source.at < set).collect();
    let Some((first, others)) = listed.split_first() else {
        return Vec::new();
    };
    if others.is_empty() {
        return vec![first.table(sources)];
    }
    let mut depth = 0;
    let mut changed: Vec<String> = Vec::new();
    for (at, token) in tokens.iter().enumerate().skip(set) {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth -= 1,
            token if depth == 0 && at > set && is_one_of(token, ENDS) => break,
            _ => {}
        }
        let sets = depth == 0 && (at == set || *token == Token::Sign(','));
        let Some([table, Token::Sign('.'), ..]) = tokens.get(at + 1..).filter(|_| sets) else {
            continue;
        };
        let called = table.identifier();
        let found =
            listed.iter().find(|it| called.as_deref().is_some_and(|name| it.is_called(name)));
        changed.extend(found.map(|source| source.name.clone()));
    }
    if changed.is_empty() { vec![first.name.clone()] } else { changed }
}
