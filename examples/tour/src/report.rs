//! Prints questions and their answers.

use std::fmt::Display;
use std::io::Write;
use std::time::Instant;

use keyloom::Reader;
use keyloom::Store;

use crate::{TourResult, TourStore};

/// Prints a line. A closed output, as after `tour | head`, ends the tour without an error.
macro_rules! say {
    ($($line:tt)*) => { $crate::report::print_line(format_args!($($line)*)) };
}
pub(crate) use say;

pub fn print_line(line: std::fmt::Arguments<'_>) {
    if let Err(error) = writeln!(std::io::stdout(), "{line}") {
        let is_closed = error.kind() == std::io::ErrorKind::BrokenPipe;
        std::process::exit(if is_closed { 0 } else { 1 });
    }
}

/// Runs a query on a snapshot, and prints the answer with its time and cost.
pub fn ask<T>(
    store: &TourStore,
    question: &str,
    answer: impl FnOnce(&<TourStore as Store>::Snapshot<'_>) -> keyloom::Result<(Vec<String>, T)>,
) -> TourResult<T> {
    let snapshot = store.snapshot()?;
    let started = Instant::now();
    let (answered, cost) = store.measure(|_| answer(&snapshot));
    let took = started.elapsed();
    let (lines, value) = answered?;
    say!("\n? {question}");
    lines.iter().for_each(|line| say!("  {line}"));
    say!("  [{:.2} ms; {cost}]", took.as_secs_f64() * 1e3);
    Ok(value)
}

/// Changes the store, and prints the result with its time and cost.
pub fn act(
    store: &TourStore,
    what: &str,
    work: impl FnOnce(&TourStore) -> TourResult<Vec<String>>,
) -> TourResult {
    let started = Instant::now();
    let (done, cost) = store.measure(work);
    let took = started.elapsed();
    say!("\n! {what}");
    done?.iter().for_each(|line| say!("  {line}"));
    say!("  [{:.2} ms; {cost}]", took.as_secs_f64() * 1e3);
    Ok(())
}

/// The number of lines, and the first `most` of them.
pub fn some_of<T: Display>(all: &[T], most: usize, what: &str) -> Vec<String> {
    let mut lines = vec![format!("{} {what}", grouped(all.len() as u64))];
    lines.extend(all.iter().take(most).map(|line| format!("  {line}")));
    if all.len() > most {
        lines.push("  ...".into());
    }
    lines
}

/// A number with thousands separators: `2,138,551`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Whether `key` is in the store.
pub fn is_there(store: &TourStore, key: &[u8]) -> TourResult<bool> {
    Ok(store.snapshot()?.get(key)?.is_some())
}
