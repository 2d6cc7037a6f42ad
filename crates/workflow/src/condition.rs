//! The language of `when`: comparisons of values, combined with `and`, `or` and `not`.
//!
//! `or` has the lowest precedence, then `and`, then comparisons, then `not`. Since `not a == b`
//! would mean `(not a) == b`, which is rarely intended, it must be written with parentheses.
//!
//! Comparisons never fail; values that cannot be compared are unequal and unordered:
//! - `==`, `!=`: two texts by their characters; a number with a number, or with text that parses as
//!   one; `true` and `false` with themselves or their words.
//! - `<`, `<=`, `>`, `>=`: numbers, or text that parses as numbers, by size; otherwise two texts by
//!   their characters.
//! - `contains`: a substring, an element of a JSON list, or a member of a JSON object;
//!   `startsWith`, `endsWith`: texts, and numbers by their digits.
//! - A missing value (a state that has not run, an unset variable) equals nothing.
//! - A value on its own holds if it is `true` or the text `true`.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::reference::Reference;
use super::template::TextFault;
use super::values::Values;

/// Nesting of parentheses and `not`; the parser recurses.
const DEPTH_MAX: usize = 32;

/// A condition is a line or two.
const SIZE_MAX_BYTES: usize = 4_096;

/// A checked `when`.
#[derive(Clone, Debug)]
pub struct Condition {
    text: String,
    root: Expression,
}

#[derive(Clone, Debug)]
enum Expression {
    Or(Vec<Expression>),
    And(Vec<Expression>),
    Not(Box<Expression>),
    Compare { left: Operand, operator: Operator, right: Operand },
    Alone(Operand),
}

#[derive(Clone, Debug)]
enum Operand {
    Literal(Value),
    Reference { reference: Reference, at: usize },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Contains,
    StartsWith,
    EndsWith,
}

impl Condition {
    /// Returns the condition as written in the file.
    pub fn as_written(&self) -> &str {
        &self.text
    }

    pub(super) fn parse(text: &str) -> Result<Condition, TextFault> {
        if text.len() > SIZE_MAX_BYTES {
            return Err(malformed(
                0,
                format!("the condition is longer than {SIZE_MAX_BYTES} bytes"),
            ));
        }
        let tokens = tokens(text)?;
        let mut parser = Parser { tokens: &tokens, next: 0, end: text.len(), depth: 0 };
        let root = parser.any_of()?;
        match parser.peek() {
            None => Ok(Condition { text: text.to_owned(), root }),
            Some(token) => Err(malformed(token.at, parser.surprise(token))),
        }
    }

    pub(super) fn references(&self) -> Vec<(&Reference, usize)> {
        let mut found = Vec::new();
        self.root.visit(&mut |operand, _| match operand {
            Operand::Literal(_) => {}
            Operand::Reference { reference, at } => found.push((reference, *at)),
        });
        found
    }

    /// Lists references that stand alone, where only a boolean makes sense.
    pub(super) fn alone(&self) -> Vec<(&Reference, usize)> {
        let mut found = Vec::new();
        self.root.visit(&mut |operand, is_alone| match operand {
            Operand::Reference { reference, at } if is_alone => found.push((reference, *at)),
            Operand::Literal(_) | Operand::Reference { .. } => {}
        });
        found
    }

    pub(super) fn holds(&self, values: &Values) -> bool {
        self.root.holds(values)
    }
}

impl Expression {
    fn visit<'e>(&'e self, see: &mut impl FnMut(&'e Operand, bool)) {
        match self {
            Expression::Or(list) | Expression::And(list) => {
                list.iter().for_each(|expression| expression.visit(see));
            }
            Expression::Not(inner) => inner.visit(see),
            Expression::Compare { left, right, .. } => {
                see(left, false);
                see(right, false);
            }
            Expression::Alone(operand) => see(operand, true),
        }
    }

    fn holds(&self, values: &Values) -> bool {
        match self {
            Expression::Or(list) => list.iter().any(|expression| expression.holds(values)),
            Expression::And(list) => list.iter().all(|expression| expression.holds(values)),
            Expression::Not(inner) => !inner.holds(values),
            Expression::Alone(operand) => {
                operand.value(values).is_some_and(|value| equal(&value, &Value::Bool(true)))
            }
            Expression::Compare { left, operator, right } => {
                match (left.value(values), right.value(values)) {
                    (Some(left), Some(right)) => operator.holds(&left, &right),
                    // Two missing values are not equal either: nothing is known about them.
                    (None, _) | (_, None) => *operator == Operator::NotEqual,
                }
            }
        }
    }
}

impl Operand {
    fn value(&self, values: &Values) -> Option<Value> {
        match self {
            Operand::Literal(value) => Some(value.clone()),
            Operand::Reference { reference, .. } => values.value(reference),
        }
    }
}

impl Operator {
    fn named(text: &str) -> Option<Operator> {
        Some(match text {
            "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            "contains" => Operator::Contains,
            "startsWith" => Operator::StartsWith,
            "endsWith" => Operator::EndsWith,
            _ => return None,
        })
    }

    fn holds(self, left: &Value, right: &Value) -> bool {
        let order = || ordering(left, right);
        match self {
            Operator::Equal => equal(left, right),
            Operator::NotEqual => !equal(left, right),
            Operator::Less => order().is_some_and(Ordering::is_lt),
            Operator::LessOrEqual => order().is_some_and(Ordering::is_le),
            Operator::Greater => order().is_some_and(Ordering::is_gt),
            Operator::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
            Operator::Contains => contains(left, right),
            Operator::StartsWith => {
                both_texts(left, right).is_some_and(|(left, right)| left.starts_with(&right))
            }
            Operator::EndsWith => {
                both_texts(left, right).is_some_and(|(left, right)| left.ends_with(&right))
            }
        }
    }
}

fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(_), _) | (_, Value::Number(_)) => {
            matches!((number(left), number(right)), (Some(a), Some(b)) if a == b)
        }
        (Value::Bool(flag), Value::String(text)) | (Value::String(text), Value::Bool(flag)) => {
            text.trim() == if *flag { "true" } else { "false" }
        }
        _ => left == right,
    }
}

fn ordering(left: &Value, right: &Value) -> Option<Ordering> {
    if let (Some(left), Some(right)) = (number(left), number(right)) {
        return left.partial_cmp(&right);
    }
    match (left, right) {
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        _ => None,
    }
}

fn contains(left: &Value, right: &Value) -> bool {
    match left {
        Value::Array(elements) => elements.iter().any(|element| equal(element, right)),
        Value::Object(members) => text(right).is_some_and(|name| members.contains_key(&name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            both_texts(left, right).is_some_and(|(left, right)| left.contains(&right))
        }
    }
}

fn both_texts(left: &Value, right: &Value) -> Option<(String, String)> {
    Some((text(left)?, text(right)?))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        // `inf` and `nan` are words, not numbers.
        Value::String(text) if text.trim().ends_with(|c: char| c.is_ascii_digit()) => {
            text.trim().parse().ok()
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => {
            None
        }
    }
}

#[derive(Debug)]
struct Token {
    at: usize,
    kind: TokenKind,
}

#[derive(Debug, PartialEq)]
enum TokenKind {
    And,
    Or,
    Not,
    Open,
    Close,
    Operator(&'static str),
    Literal(Value),
    Path(String),
}

fn tokens(text: &str) -> Result<Vec<Token>, TextFault> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        if character.is_whitespace() {
            at += character.len_utf8();
            continue;
        }
        let (kind, length) = token(&text[at..]).map_err(|message| malformed(at, message))?;
        tokens.push(Token { at, kind });
        at += length;
    }
    Ok(tokens)
}

/// Returns the first token of text that does not begin with a space, and its length.
fn token(rest: &str) -> Result<(TokenKind, usize), String> {
    const FOREIGN: [(&str, &str); 6] = [
        ("{{", "conditions use names without braces: write inputs.x"),
        ("&&", "use 'and'"),
        ("||", "use 'or'"),
        ("===", "use '=='"),
        ("=~", "use contains, startsWith or endsWith"),
        ("$", "write variables as env.NAME"),
    ];
    if let Some((_, message)) = FOREIGN.iter().find(|(foreign, _)| rest.starts_with(foreign)) {
        return Err((*message).to_owned());
    }
    for operator in ["==", "!=", "<=", ">=", "<", ">"] {
        if rest.starts_with(operator) {
            return Ok((TokenKind::Operator(operator), operator.len()));
        }
    }
    let first = rest.chars().next().unwrap_or_default();
    match first {
        '(' => Ok((TokenKind::Open, 1)),
        ')' => Ok((TokenKind::Close, 1)),
        '\'' | '"' => quoted(rest, first),
        '!' => Err("use 'not'".to_owned()),
        '=' => Err("use '=='".to_owned()),
        _ if first.is_ascii_alphanumeric() || matches!(first, '.' | '_' | '-') => word(rest),
        _ => Err(format!("unexpected character {first:?}")),
    }
}

fn quoted(rest: &str, quote: char) -> Result<(TokenKind, usize), String> {
    match rest[1..].find(quote) {
        Some(length) => {
            let text = rest[1..=length].to_owned();
            Ok((TokenKind::Literal(Value::String(text)), length + 2))
        }
        None => Err("the closing quote is missing".to_owned()),
    }
}

fn word(rest: &str) -> Result<(TokenKind, usize), String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let length = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
    let word = &rest[..length];
    let kind = match word {
        "and" => TokenKind::And,
        "or" => TokenKind::Or,
        "not" => TokenKind::Not,
        "contains" => TokenKind::Operator("contains"),
        "startsWith" => TokenKind::Operator("startsWith"),
        "endsWith" => TokenKind::Operator("endsWith"),
        "true" => TokenKind::Literal(Value::Bool(true)),
        "false" => TokenKind::Literal(Value::Bool(false)),
        _ if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            let number: Option<Number> = serde_json::from_str(word).ok();
            let number = number.ok_or_else(|| format!("'{word}' is not a number"))?;
            TokenKind::Literal(Value::Number(number))
        }
        _ => TokenKind::Path(word.to_owned()),
    };
    Ok((kind, length))
}

struct Parser<'t> {
    tokens: &'t [Token],
    next: usize,
    /// The offset just past the last byte.
    end: usize,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.next)
    }

    fn take_if(&mut self, wanted: &TokenKind) -> bool {
        let found = self.peek().is_some_and(|token| token.kind == *wanted);
        self.next += usize::from(found);
        found
    }

    fn any_of(&mut self) -> Result<Expression, TextFault> {
        let mut list = vec![self.all_of()?];
        while self.take_if(&TokenKind::Or) {
            list.push(self.all_of()?);
        }
        Ok(if list.len() == 1 { list.remove(0) } else { Expression::Or(list) })
    }

    fn all_of(&mut self) -> Result<Expression, TextFault> {
        let mut list = vec![self.term()?];
        while self.take_if(&TokenKind::And) {
            list.push(self.term()?);
        }
        Ok(if list.len() == 1 { list.remove(0) } else { Expression::And(list) })
    }

    fn term(&mut self) -> Result<Expression, TextFault> {
        let at = self.peek().map_or(self.end, |token| token.at);
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(malformed(
                at,
                format!("parentheses are nested deeper than {DEPTH_MAX} levels"),
            ));
        }
        let expression = if self.take_if(&TokenKind::Not) {
            let inner = self.negated()?;
            Expression::Not(Box::new(inner))
        } else if self.take_if(&TokenKind::Open) {
            self.bracketed()?
        } else {
            self.comparison()?
        };
        self.depth -= 1;
        Ok(expression)
    }

    fn negated(&mut self) -> Result<Expression, TextFault> {
        let at = self.peek().map_or(self.end, |token| token.at);
        let inner = self.term()?;
        match inner {
            Expression::Compare { .. } if !self.closed_before() => {
                let message =
                    "write not (a == b), with parentheses: 'not' binds more tightly".to_owned();
                Err(malformed(at, message))
            }
            Expression::Compare { .. }
            | Expression::Or(_)
            | Expression::And(_)
            | Expression::Not(_)
            | Expression::Alone(_) => Ok(inner),
        }
    }

    /// Reports whether the previous token was a closing parenthesis.
    fn closed_before(&self) -> bool {
        let before = self.next.checked_sub(1).and_then(|index| self.tokens.get(index));
        before.is_some_and(|token| token.kind == TokenKind::Close)
    }

    fn bracketed(&mut self) -> Result<Expression, TextFault> {
        let inner = self.any_of()?;
        let at = self.peek().map_or(self.end, |token| token.at);
        if !self.take_if(&TokenKind::Close) {
            return Err(malformed(at, "a closing parenthesis is missing".to_owned()));
        }
        if let Some(Token { at, kind: TokenKind::Operator(_) }) = self.peek() {
            let message = "a condition in parentheses cannot be compared".to_owned();
            return Err(malformed(*at, message));
        }
        Ok(inner)
    }

    fn comparison(&mut self) -> Result<Expression, TextFault> {
        let at = self.peek().map_or(self.end, |token| token.at);
        let left = self.operand()?;
        let Some(operator) = self.operator() else {
            return match left {
                Operand::Literal(Value::Bool(_)) | Operand::Reference { .. } => {
                    Ok(Expression::Alone(left))
                }
                Operand::Literal(_) => {
                    Err(malformed(at, "a value alone is not a condition: compare it".to_owned()))
                }
            };
        };
        let right = self.operand()?;
        let at = self.peek().map_or(self.end, |token| token.at);
        if self.operator().is_some() {
            let message = "comparisons cannot be chained: join them with 'and'".to_owned();
            return Err(malformed(at, message));
        }
        Ok(Expression::Compare { left, operator, right })
    }

    fn operator(&mut self) -> Option<Operator> {
        let TokenKind::Operator(text) = &self.peek()?.kind else { return None };
        self.next += 1;
        Operator::named(text)
    }

    fn operand(&mut self) -> Result<Operand, TextFault> {
        let Some(token) = self.peek() else {
            return Err(malformed(self.end, "expected a value at the end".to_owned()));
        };
        let operand = match &token.kind {
            TokenKind::Literal(value) => Operand::Literal(value.clone()),
            TokenKind::Path(path) => {
                let reference = Reference::parse(path).map_err(|why| {
                    malformed(token.at, format!("'{path}': {why}; put text in quotes"))
                })?;
                Operand::Reference { reference, at: token.at }
            }
            TokenKind::And
            | TokenKind::Or
            | TokenKind::Not
            | TokenKind::Open
            | TokenKind::Close
            | TokenKind::Operator(_) => return Err(malformed(token.at, self.surprise(token))),
        };
        self.next += 1;
        Ok(operand)
    }

    fn surprise(&self, token: &Token) -> String {
        match &token.kind {
            TokenKind::And => "expected a value, found 'and'".to_owned(),
            TokenKind::Or => "expected a value, found 'or'".to_owned(),
            TokenKind::Not => "expected a value, found 'not'".to_owned(),
            TokenKind::Open => "unexpected '('".to_owned(),
            TokenKind::Close => "')' without '('".to_owned(),
            TokenKind::Operator(text) => format!("expected a value, found '{text}'"),
            TokenKind::Literal(value) => {
                format!("expected 'and', 'or' or a comparison before {value}")
            }
            TokenKind::Path(path) => {
                format!("expected 'and', 'or' or a comparison before '{path}'")
            }
        }
    }
}

fn malformed(at: usize, message: String) -> TextFault {
    TextFault { at, message }
}
