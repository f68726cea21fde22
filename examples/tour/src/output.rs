//! Lines on standard output, and progress on standard error.
//!
//! On a terminal, columns are aligned and some words are colored. In a pipe, columns are separated
//! by tabs.

use std::fmt::Arguments;
use std::io::{ErrorKind, IsTerminal, Write, stdout};
use std::sync::LazyLock;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Prints a line. A closed output, as after `tour | head`, ends the tour without an error.
macro_rules! out {
    ($($line:tt)*) => { $crate::output::print_line(format_args!($($line)*)) };
}
pub(crate) use out;

/// Hidden unless standard error is a terminal.
static PROGRESS: LazyLock<ProgressBar> = LazyLock::new(|| {
    let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_spinner());
    ProgressBar::new_spinner().with_style(style)
});

pub fn print_line(line: Arguments<'_>) {
    let written = PROGRESS.suspend(|| writeln!(stdout(), "{line}"));
    if let Err(error) = written {
        std::process::exit(i32::from(error.kind() != ErrorKind::BrokenPipe));
    }
}

/// Shows what the tour is doing, until [`end_progress`].
pub fn progress(what: String) {
    if PROGRESS.is_finished() {
        PROGRESS.reset();
    }
    PROGRESS.set_message(what);
    PROGRESS.enable_steady_tick(Duration::from_millis(100));
}

pub fn end_progress() {
    PROGRESS.finish_and_clear();
}

/// Emphasizes a title.
pub fn bold(text: &str) -> String {
    colored("1", text)
}

/// Prints details in the background.
pub fn dim(text: &str) -> String {
    colored("2", text)
}

fn colored(code: &str, text: &str) -> String {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    match stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb {
        true => format!("\x1b[{code}m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// Pads a text on a terminal, so that the next column is aligned.
pub fn padded(text: &str, width: usize) -> String {
    let width = if stdout().is_terminal() { width } else { 0 };
    format!("{text:<width$}")
}

/// Prints rows in columns. All columns but the first are numbers if `are_numbers`.
pub fn print_table(rows: &[Vec<String>], are_numbers: bool) {
    let is_terminal = stdout().is_terminal();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    for row in rows {
        let cell = |(column, cell): (usize, &String)| match width(column) {
            _ if !is_terminal => cell.clone(),
            width if are_numbers && column > 0 => format!("{cell:>width$}"),
            width => format!("{cell:<width$}"),
        };
        let cells: Vec<_> = row.iter().enumerate().map(cell).collect();
        out!("{}", cells.join(if is_terminal { "  " } else { "\t" }).trim_end());
    }
}
