//! The options of a measurement on its command line.

use std::str::FromStr;

pub(crate) struct Options(Vec<String>);

impl Options {
    /// Takes the arguments of the process, without the one that cargo adds.
    pub(crate) fn given() -> Options {
        Options(std::env::args().skip(1).filter(|argument| argument != "--bench").collect())
    }

    /// Takes the role of a process that a measurement starts, if this is one.
    pub(crate) fn words(&self) -> Vec<&str> {
        self.0.iter().map(String::as_str).collect()
    }

    /// Removes a flag and reports whether it was given.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let place = self.0.iter().position(|argument| argument == name);
        place.map(|place| self.0.remove(place)).is_some()
    }

    /// Removes an option with its value.
    pub(crate) fn value<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, String> {
        let Some(place) = self.0.iter().position(|argument| argument == name) else {
            return Ok(None);
        };
        self.0.remove(place);
        if place == self.0.len() {
            return Err(format!("{name} needs a value"));
        }
        let value = self.0.remove(place);
        value.parse().map(Some).map_err(|_| format!("{name} cannot be {value}"))
    }

    /// Refuses what nothing has taken.
    pub(crate) fn finish(self) -> Result<(), String> {
        match self.0.first() {
            Some(unknown) => Err(format!("unknown option {unknown} (see ./bench --help)")),
            None => Ok(()),
        }
    }
}
