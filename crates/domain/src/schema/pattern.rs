//! Estimates the cost of a pattern from its text. Only constructs known to match in linear time
//! count as light: engines add new constructs, and a list of costly ones would be outdated.

/// Beyond this size an automaton slows down.
const SIZE_MAX: u64 = 1000;

/// Letters that may follow a backslash: classes, word boundaries and single characters.
const ESCAPES: &str = "dDwWsSbBnrtfvxuUpP0";

/// Returns an upper bound on the automaton size of a light pattern. Returns `None` if the pattern
/// uses lookaround, backreferences or possessive matching, or is too large.
pub(super) fn light_size(pattern: &str) -> Option<u64> {
    let mut scan = Scan { rest: pattern, groups: Vec::new(), sum: 0, last: 0 };
    while let Some(char) = scan.next() {
        scan.step(char)?;
        if scan.sum > SIZE_MAX {
            return None;
        }
    }
    // An unclosed group does not compile.
    scan.groups.is_empty().then_some(scan.sum)
}

struct Scan<'a> {
    rest: &'a str,
    /// The sum before each open group.
    groups: Vec<u64>,
    sum: u64,
    /// The size of the item that a repetition would repeat; already in the sum.
    last: u64,
}

impl Scan<'_> {
    fn next(&mut self) -> Option<char> {
        let char = self.rest.chars().next()?;
        self.rest = &self.rest[char.len_utf8()..];
        Some(char)
    }

    fn step(&mut self, char: char) -> Option<()> {
        match char {
            '\\' => self.escape(),
            '[' => self.class(),
            '(' => self.open(),
            ')' => {
                self.last = self.sum;
                self.sum = self.sum.saturating_add(self.groups.pop()?);
                Some(())
            }
            '*' | '+' | '?' => self.repeated(2),
            '{' => match self.count() {
                Some(times) => self.repeated(times),
                None => self.atom(1),
            },
            _ => self.atom(1),
        }
    }

    fn atom(&mut self, size: u64) -> Option<()> {
        self.last = size;
        self.sum = self.sum.saturating_add(size);
        Some(())
    }

    fn escape(&mut self) -> Option<()> {
        let char = self.next()?;
        if char.is_ascii_alphanumeric() && !ESCAPES.contains(char) {
            return None;
        }
        let is_named = matches!(char, 'x' | 'u' | 'U' | 'p' | 'P') && self.rest.starts_with('{');
        if is_named {
            self.rest = &self.rest[self.rest.find('}')? + 1..];
        }
        self.atom(if matches!(char, 'p' | 'P') { 64 } else { 8 })
    }

    fn class(&mut self) -> Option<()> {
        let mut is_first = true;
        let mut depth = 1_u32;
        loop {
            match self.next()? {
                '\\' => drop(self.next()?),
                '^' if is_first => continue,
                '[' => depth += 1,
                ']' if !is_first => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return self.atom(8);
            }
            is_first = false;
        }
    }

    fn open(&mut self) -> Option<()> {
        if let Some(kind) = self.rest.strip_prefix('?') {
            let kind = kind.strip_prefix('P').unwrap_or(kind);
            let is_named = kind.strip_prefix('<').is_some_and(|name| {
                name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            });
            if is_named {
                self.rest = &self.rest[self.rest.find('>')? + 1..];
            } else {
                self.rest = self.rest.strip_prefix("?:")?;
            }
        }
        self.groups.push(self.sum);
        self.sum = 0;
        Some(())
    }

    /// Reads the upper end of `{m}`, `{m,}` or `{m,n}`; returns `None` if the brace is a literal.
    fn count(&mut self) -> Option<u64> {
        let (inside, behind) = self.rest.split_once('}')?;
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        let least: u64 = least.parse().ok()?;
        let times = if most.is_empty() { least.saturating_add(1) } else { most.parse().ok()? };
        self.rest = behind;
        Some(times)
    }

    fn repeated(&mut self, times: u64) -> Option<()> {
        self.sum = self.sum.saturating_add(self.last.saturating_mul(times.saturating_sub(1)));
        self.last = self.last.saturating_mul(times.max(1));
        // Lazy repetition is allowed; possessive is not.
        self.rest = self.rest.strip_prefix('?').unwrap_or(self.rest);
        (!self.rest.starts_with('+')).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_matched_in_linear_time_is_light() {
        for pattern in [
            "",
            "^[a-z0-9_-]{3,16}$",
            "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
            r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?Z$",
            r"^(?<year>\d+)/(?P<month>\d+)$",
            r"^[^\]\s]+?$",
            "^[]a]$",
            r"\p{L}+\x{41}",
            "a{x}{",
            "^(https?|ftp)://.*$",
        ] {
            assert!(light_size(pattern).is_some(), "{pattern}");
        }
        for pattern in [
            "(?=.*x)a",
            "(?!x)",
            "(?<=a)b",
            "(?<!a)b",
            "(?>a+)b",
            r"(a)\1",
            r"(?<n>a)\k<n>",
            r"(a)\g<1>",
            "(?(1)a|b)",
            "(?i)a",
            "a++b",
            "a{2}+",
            r"\Kb",
            "((a{10}){10}){20}",
            "a{2000}",
            "(a",
            "a)",
            "[a",
            r"a\",
        ] {
            assert_eq!(light_size(pattern), None, "{pattern}");
        }
    }
}
