//! Colors of the output. The text is escaped before it is painted, so content of a store never
//! contains an escape sequence.

use std::io::IsTerminal;
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;

/// When the output has colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always, in a pipe too
    Always,
    /// Never
    Never,
}

/// The meaning of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The head of a column.
    Head,
    /// A name or a key.
    Name,
    /// A number.
    Number,
    /// A fault, or a removed key.
    Fault,
    /// An added key.
    Added,
}

impl Role {
    fn style(self) -> Style {
        match self {
            Self::Head => Style::new().bold(),
            Self::Name => AnsiColor::Blue.on_default(),
            Self::Number => AnsiColor::Cyan.on_default(),
            Self::Fault => AnsiColor::Red.on_default(),
            Self::Added => AnsiColor::Green.on_default(),
        }
    }
}

/// Whether the standard output and the standard error have colors.
#[derive(Clone, Copy, Debug, Default)]
struct Colored {
    out: bool,
    err: bool,
}

static COLORED: OnceLock<Colored> = OnceLock::new();

/// Decides once, at the start of the program, which outputs have colors. JSON has no colors.
pub fn init(when: When, json: bool) {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let is_refused = set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb");
    let is_colored = |is_terminal| decide(when, is_terminal, is_refused);
    let out = !json && is_colored(std::io::stdout().is_terminal());
    let err = is_colored(std::io::stderr().is_terminal());
    // A second call has no effect.
    let _ = COLORED.set(Colored { out, err });
}

fn decide(when: When, is_terminal: bool, is_refused: bool) -> bool {
    match when {
        When::Auto => is_terminal && !is_refused,
        When::Always => true,
        When::Never => false,
    }
}

/// The text, which must be escaped, for the standard output.
pub fn paint(role: Role, text: &str) -> String {
    painted(role, text, COLORED.get().is_some_and(|colored| colored.out))
}

/// The text, which must be escaped, for the standard error.
pub fn paint_err(role: Role, text: &str) -> String {
    painted(role, text, COLORED.get().is_some_and(|colored| colored.err))
}

fn painted(role: Role, text: &str, is_colored: bool) -> String {
    match is_colored && !text.is_empty() {
        true => format!("{style}{text}{style:#}", style = role.style()),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_has_colors_unless_an_option_decides() {
        for (is_terminal, is_refused) in [(true, false), (true, true), (false, false)] {
            assert_eq!(decide(When::Auto, is_terminal, is_refused), is_terminal && !is_refused);
            assert!(decide(When::Always, is_terminal, is_refused));
            assert!(!decide(When::Never, is_terminal, is_refused));
        }
    }
}
