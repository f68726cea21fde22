//! Progress on the standard error.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::output::grouped;

/// The time between two lines of progress. A terminal shows one line, which is rewritten.
const PAUSE: Duration = Duration::from_millis(500);

/// Counts the entries and bytes, or the pages, processed so far.
#[derive(Debug)]
pub struct Progress {
    what: &'static str,
    entries: u64,
    bytes: u64,
    /// About how many entries there are, if that is known.
    expected: Option<f64>,
    /// The pages processed so far and their total, if pages are counted.
    pages: Option<(u64, u64)>,
    shown: Instant,
    is_terminal: bool,
}

impl Progress {
    /// A counter at zero.
    pub fn new(what: &'static str) -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        Self {
            what,
            entries: 0,
            bytes: 0,
            expected: None,
            pages: None,
            shown: Instant::now(),
            is_terminal,
        }
    }

    /// A counter of work that has processed `entries` entries before.
    pub fn resumed(what: &'static str, entries: u64) -> Self {
        Self { entries, ..Self::new(what) }
    }

    /// A counter at zero of about `expected` entries.
    pub fn of_about(what: &'static str, expected: f64) -> Self {
        Self { expected: Some(expected), ..Self::new(what) }
    }

    /// A counter of pages at zero.
    pub fn of_pages(what: &'static str) -> Self {
        Self { pages: Some((0, 0)), ..Self::new(what) }
    }

    /// Sets the number of pages processed so far.
    pub fn set(&mut self, done: u64, total: u64) {
        self.pages = Some((done, total));
        self.show_sometimes();
    }

    /// Adds `entries` entries with `bytes` bytes in total.
    pub fn add(&mut self, entries: usize, bytes: usize) {
        self.entries += entries as u64;
        self.bytes += bytes as u64;
        self.show_sometimes();
    }

    /// The number of entries processed so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// On a terminal, shows the counter again and ends its line.
    pub fn finish(&self) {
        if self.is_terminal {
            self.show();
            write("\n");
        }
    }

    fn show_sometimes(&mut self) {
        if self.shown.elapsed() >= PAUSE {
            self.shown = Instant::now();
            self.show();
        }
    }

    fn show(&self) {
        let done = match self.pages {
            Some((done, total)) => format!("{} of {} pages", grouped(done), grouped(total)),
            None => format!("{} entries, {} bytes", grouped(self.entries), grouped(self.bytes)),
        };
        let share = self.expected.map_or(String::new(), |expected| {
            let percent = 100.0 * self.entries as f64 / expected.max(1.0);
            format!("about {:.0} %, ", percent.min(99.0))
        });
        let done = format!("{share}{done}");
        match self.is_terminal {
            true => write(&format!("\r{} {done}", self.what)),
            false => write(&format!("{} {done}\n", self.what)),
        }
    }
}

// Errors are ignored: the work continues even if its progress cannot be shown.
fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
