//! Splits a command line into the words and redirects of its commands, as a shell does. A word with
//! an expansion is a word whose text is not known.

/// A command of a pipeline.
#[derive(Debug, Default)]
pub(super) struct SimpleCommand {
    pub(super) words: Vec<ShellWord>,
    /// The files of its `>`, `>>` and `&>`; `None` if the name is not known.
    pub(super) redirects: Vec<Option<String>>,
}

#[derive(Debug)]
pub(super) struct ShellWord {
    /// The text, unless the shell makes it from something else.
    pub(super) literal: Option<String>,
}

/// Returns the commands of a pipeline; `None` for a list of commands, or a text that is not read.
pub(super) fn read(command: &str, home: Option<&str>) -> Option<Vec<SimpleCommand>> {
    let mut reader = Reader { rest: command, home, heredocs: Vec::new() };
    let mut pipeline = vec![SimpleCommand::default()];
    while let Some(part) = reader.part()? {
        let command = pipeline.last_mut()?;
        match part {
            Part::Pipe => pipeline.push(SimpleCommand::default()),
            Part::Redirect(file) => command.redirects.push(file),
            // `[[ a > b ]]` compares, and a group has commands inside.
            Part::Word(ShellWord { literal: Some(name) })
                if command.words.is_empty() && ["[[", "{"].contains(&name.as_str()) =>
            {
                return None;
            }
            Part::Word(word) => command.words.push(word),
            Part::Nothing => {}
        }
    }
    Some(pipeline)
}

enum Part {
    Word(ShellWord),
    /// The file to which the output goes.
    Redirect(Option<String>),
    Pipe,
    /// A part that changes no file.
    Nothing,
}

struct Reader<'a> {
    rest: &'a str,
    home: Option<&'a str>,
    /// The ends of the texts that follow the line.
    heredocs: Vec<Heredoc>,
}

struct Heredoc {
    end: String,
    /// Tabs before its end are ignored.
    is_indented: bool,
}

impl Reader<'_> {
    /// Returns the next part, or `None` at the end of the command; the outer `None` for what is not
    /// read.
    fn part(&mut self) -> Option<Option<Part>> {
        while self.take(" ") || self.take("\t") || self.take("\\\n") {}
        if self.rest.starts_with('#') {
            self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..];
        }
        if self.rest.is_empty() {
            return Some(None);
        }
        if self.rest.starts_with('\n') {
            return self.skip_heredocs().map(|()| None);
        }
        if self.rest.starts_with("||") {
            return None;
        }
        let digits = self.rest.bytes().take_while(u8::is_ascii_digit).count();
        if self.rest[digits..].starts_with(['<', '>']) {
            self.rest = &self.rest[digits..];
        }
        let part = if self.take("|&") || self.take("|") {
            Part::Pipe
        } else if self.take(">&") {
            self.descriptor()?
        } else if ["&>>", "&>", ">>", ">|", ">"].into_iter().any(|sign| self.take(sign)) {
            Part::Redirect(self.operand()?.literal)
        } else if self.rest.starts_with("<>") {
            return None;
        } else if self.take("<<<") || self.take("<&") {
            self.operand().map(|_| Part::Nothing)?
        } else if self.take("<<") {
            let is_indented = self.take("-");
            let end = self.operand()?.literal?;
            self.heredocs.push(Heredoc { end, is_indented });
            Part::Nothing
        } else if self.take("<") {
            self.operand().map(|_| Part::Nothing)?
        } else {
            Part::Word(self.word()?)
        };
        Some(Some(part))
    }

    fn take(&mut self, sign: &str) -> bool {
        let rest = self.rest.strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Reads what follows `>&`: a stream, or a file.
    fn descriptor(&mut self) -> Option<Part> {
        let word = self.operand()?.literal;
        let is_stream = |text: &str| text == "-" || text.bytes().all(|byte| byte.is_ascii_digit());
        Some(match word {
            Some(text) if is_stream(&text) => Part::Nothing,
            file => Part::Redirect(file),
        })
    }

    /// Reads the word that a sign needs.
    fn operand(&mut self) -> Option<ShellWord> {
        while self.take(" ") || self.take("\t") {}
        self.word()
    }

    /// Skips the texts that follow the line; nothing may follow them.
    fn skip_heredocs(&mut self) -> Option<()> {
        let mut lines = self.rest.strip_prefix('\n')?.lines();
        if self.heredocs.is_empty() {
            return None;
        }
        for Heredoc { end, is_indented } in std::mem::take(&mut self.heredocs) {
            lines.find(|line| {
                let line = if is_indented { line.trim_start_matches('\t') } else { line };
                line == end
            });
        }
        self.rest = "";
        lines.all(|line| line.trim().is_empty()).then_some(())
    }

    /// Reads a word, which has at least one character or quotes.
    fn word(&mut self) -> Option<ShellWord> {
        let before = self.rest;
        let (mut text, mut is_literal) = (String::new(), true);
        if let Some(rest) = self.rest.strip_prefix('~') {
            self.rest = rest;
            match self.home {
                Some(home) if rest.is_empty() || rest.starts_with(['/', ' ', '\t', '\n']) => {
                    text.push_str(home);
                }
                _ => is_literal = false,
            }
        }
        while let Some(first) = self.rest.chars().next() {
            if " \t\n|&;<>()".contains(first) {
                break;
            }
            self.rest = &self.rest[first.len_utf8()..];
            match first {
                '\'' => text.push_str(self.until('\'')?),
                '"' => is_literal &= self.quoted(&mut text)?,
                '\\' => text.extend(self.escaped()?),
                '$' | '`' => {
                    self.skip_expansion(first)?;
                    is_literal = false;
                }
                '*' | '?' | '[' | ']' | '{' | '}' | '~' | '!' | '\r' => {
                    text.push(first);
                    // A brace alone begins a group.
                    is_literal &= first == '{' && text == "{" && self.is_at_end()
                        || "[]".contains(first) && ["[", "[[", "]", "]]"].contains(&text.as_str());
                }
                plain => text.push(plain),
            }
        }
        let is_word = self.rest.len() < before.len();
        is_word.then(|| ShellWord { literal: is_literal.then_some(text) })
    }

    fn is_at_end(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with([' ', '\t', '\n'])
    }

    /// Returns the text up to a quote, which is skipped too.
    fn until(&mut self, quote: char) -> Option<&str> {
        let (inner, rest) = self.rest.split_once(quote)?;
        self.rest = rest;
        Some(inner)
    }

    /// Reads the rest of a text in double quotes; reports whether it is literal.
    fn quoted(&mut self, text: &mut String) -> Option<bool> {
        let mut is_literal = true;
        loop {
            let next = self.rest.chars().next()?;
            self.rest = &self.rest[next.len_utf8()..];
            match next {
                '"' => return Some(is_literal),
                '$' | '`' => {
                    self.skip_expansion(next)?;
                    is_literal = false;
                }
                '!' => is_literal = false,
                '\\' if self.rest.starts_with(['$', '`', '"', '\\', '\n']) => {
                    text.extend(self.escaped()?);
                }
                plain => text.push(plain),
            }
        }
    }

    /// Returns the character after a backslash; a line break is none.
    fn escaped(&mut self) -> Option<Option<char>> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        match next {
            '\r' => None,
            '\n' => Some(None),
            plain => Some(Some(plain)),
        }
    }

    /// Skips what the shell replaces after `$` or a backquote; `None` if its end is not certain.
    fn skip_expansion(&mut self, sign: char) -> Option<()> {
        let (open, close) = match (sign, self.rest.chars().next()) {
            ('`', _) => return self.until('`').filter(|it| !it.contains('\\')).map(|_| ()),
            (_, Some('(')) => ('(', ')'),
            (_, Some('{')) => ('{', '}'),
            // `$'…'` has escapes.
            (_, Some('\'')) => return None,
            _ => return Some(()),
        };
        let mut depth = 0;
        for (at, char) in self.rest.char_indices() {
            match char {
                '\'' | '"' | '`' | '\\' | '#' => return None,
                char if char == open => depth += 1,
                char if char == close => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.rest = &self.rest[at + 1..];
                return Some(());
            }
        }
        None
    }
}
