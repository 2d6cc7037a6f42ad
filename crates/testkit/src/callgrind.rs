//! Reads a profile of `valgrind --tool=callgrind`: the cost of each call path of one thread.
//!
//! The profile must come from `--separate-callers=N --compress-mangled=yes`. Callgrind then keeps a
//! function apart for each path of up to N callers that leads to it, so that the self costs of these
//! paths add up to everything that the thread executed, and no inclusive cost has to be divided.

use std::collections::HashMap;
use std::sync::Arc;

/// One thread's costs.
#[derive(Debug)]
pub struct ThreadCosts {
    pub paths: Vec<PathCost>,
    /// The sum as callgrind states it, which is also that of the paths.
    pub total: u64,
}

/// The self cost of a function, as reached by one path.
#[derive(Debug)]
pub struct PathCost {
    /// The function, its caller, the caller's caller, and so on.
    pub frames: Vec<Arc<str>>,
    pub cost: u64,
}

/// Parses the file of one thread, which counts one event.
pub fn parse(profile: &str) -> Result<ThreadCosts, String> {
    let mut reader = Reader::default();
    for (index, line) in profile.lines().enumerate() {
        reader.line(line).map_err(|fault| format!("line {}: {fault}: {line}", index + 1))?;
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    names: HashMap<u32, Name>,
    /// The function whose costs follow.
    current: Option<u32>,
    costs: HashMap<u32, u64>,
    /// The next line is the inclusive cost of a call, which the lines of the callee hold too.
    is_call: bool,
    total: Option<u64>,
}

enum Name {
    Plain(Arc<str>),
    /// The ids of a function and its callers.
    Path(Vec<u32>),
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        if let Some(name) = line.strip_prefix("fn=") {
            self.current = Some(self.name(name)?);
        } else if let Some(name) = line.strip_prefix("cfn=") {
            self.name(name)?;
        } else if line.starts_with("calls=") {
            self.is_call = true;
        } else if let Some(total) = line.strip_prefix("totals:") {
            self.total = Some(total.trim().parse().map_err(|_| "no number")?);
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            self.cost(line)?;
        }
        Ok(())
    }

    /// Reads `(id) name` or `(id)`, and returns the id.
    fn name(&mut self, text: &str) -> Result<u32, &'static str> {
        let (id, name) = numbered(text).ok_or("no id of a function")?;
        if !name.is_empty() {
            let name = name.strip_prefix(' ').unwrap_or(name);
            let name = path(name).map_or_else(|| Name::Plain(name.into()), Name::Path);
            self.names.insert(id, name);
        }
        Ok(id)
    }

    fn cost(&mut self, line: &str) -> Result<(), &'static str> {
        if std::mem::take(&mut self.is_call) {
            return Ok(());
        }
        let cost = line.split(' ').nth(1).unwrap_or("0").parse::<u64>().map_err(|_| "no cost")?;
        let function = self.current.ok_or("a cost before the first function")?;
        *self.costs.entry(function).or_default() += cost;
        Ok(())
    }

    fn finish(self) -> Result<ThreadCosts, String> {
        let total = self.total.ok_or("no totals: the profile is incomplete")?;
        let mut paths = Vec::with_capacity(self.costs.len());
        for (id, cost) in &self.costs {
            paths.push(PathCost { frames: self.frames(*id)?, cost: *cost });
        }
        let sum: u64 = paths.iter().map(|path| path.cost).sum();
        if sum != total {
            return Err(format!("the paths add up to {sum}, not to {total}"));
        }
        Ok(ThreadCosts { paths, total })
    }

    fn frames(&self, id: u32) -> Result<Vec<Arc<str>>, String> {
        let plain = |id: &u32| match self.names.get(id) {
            Some(Name::Plain(name)) => Ok(name.clone()),
            _ => Err(format!("function {id} has no name")),
        };
        match self.names.get(&id) {
            Some(Name::Path(ids)) => ids.iter().map(plain).collect(),
            _ => Ok(vec![plain(&id)?]),
        }
    }
}

/// Splits `(id)rest`.
fn numbered(text: &str) -> Option<(u32, &str)> {
    let (id, rest) = text.strip_prefix('(')?.split_once(')')?;
    Some((id.parse().ok()?, rest))
}

/// Reads `(3)'2'(5)'(7)`: ids from the function outward. A number without parentheses is a level of
/// recursion.
fn path(text: &str) -> Option<Vec<u32>> {
    let mut ids = Vec::new();
    for part in text.split('\'') {
        match numbered(part) {
            Some((id, "")) => ids.push(id),
            _ if !ids.is_empty() && part.parse::<u32>().is_ok() => {}
            _ => return None,
        }
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "\
# callgrind format
events: Ir
summary: 172

fl=(1) ???
fn=(0) main
fn=(2) serve
fn=(4) (2)'(0)
0 100
+3 20
cfi=(2) alloc.rs
cfn=(6) memcpy
cfn=(8) (6)'(2)'(0)
calls=7 0
0 35
* 2

fn=(8)
0 35

fn=(9) (6)'2'(2)'(0)
12 15
totals: 172
";

    fn costs(threads: &ThreadCosts) -> Vec<(String, u64)> {
        let shown = |path: &PathCost| (path.frames.join(" < "), path.cost);
        let mut costs: Vec<_> = threads.paths.iter().map(shown).collect();
        costs.sort();
        costs
    }

    #[test]
    fn costs_of_calls_are_counted_once_and_paths_add_up() {
        let threads = parse(PROFILE).unwrap();
        assert_eq!(threads.total, 172);
        let expected = [
            ("memcpy < serve < main".to_owned(), 15),
            ("memcpy < serve < main".to_owned(), 35),
            ("serve < main".to_owned(), 122),
        ];
        assert_eq!(costs(&threads), expected);
    }

    #[test]
    fn a_name_in_parentheses_is_no_path() {
        let profile = "fn=(1) (below main)\n0 5\nfn=(2) <(A,B) as T>::f::'lifetime\n0 1\ntotals: 6";
        let expected =
            [("(below main)".to_owned(), 5), ("<(A,B) as T>::f::'lifetime".to_owned(), 1)];
        assert_eq!(costs(&parse(profile).unwrap()), expected);
    }

    #[test]
    fn what_cannot_be_read_is_reported_with_its_line() {
        for (profile, expected) in [
            ("fn=(1) f\n0 5\n", "no totals: the profile is incomplete"),
            ("fn=(1) f\n0 5\ntotals: 6", "the paths add up to 5, not to 6"),
            ("fn=f\n", "line 1: no id of a function: fn=f"),
            ("0 5\n", "line 1: a cost before the first function: 0 5"),
            ("fn=(1) f\n0 five\n", "line 2: no cost: 0 five"),
            ("fn=(1)\n0 5\ntotals: 5", "function 1 has no name"),
        ] {
            assert_eq!(parse(profile).unwrap_err(), expected);
        }
    }
}
