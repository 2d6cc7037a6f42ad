//! The properties of the terminal behind stdout that output depends on.

use std::io::IsTerminal;

#[derive(Clone, Copy)]
pub(crate) struct Terminal {
    /// Its width; `None` where stdout is no terminal or does not say.
    pub(crate) columns: Option<usize>,
    pub(crate) has_colour: bool,
}

impl Terminal {
    pub(crate) fn stdout() -> Terminal {
        let stdout = std::io::stdout();
        if !stdout.is_terminal() {
            return Terminal { columns: None, has_colour: false };
        }
        let size = rustix::termios::tcgetwinsize(&stdout).ok();
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        Terminal { columns, has_colour: wants_colour() }
    }
}

/// Reports whether the user's environment allows colours (<https://no-color.org>).
pub(crate) fn wants_colour() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[derive(Clone, Copy)]
pub(crate) enum Colour {
    Red,
    Green,
    Yellow,
}

pub(crate) fn painted(text: &str, colour: Colour) -> String {
    let code = match colour {
        Colour::Red => 31,
        Colour::Green => 32,
        Colour::Yellow => 33,
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}
