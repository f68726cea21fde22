//! Prints questions and their answers.

use std::fmt::Display;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use keyloom::{Cost, Reader, Store};

use crate::{TourResult, TourStore};

/// The answers of a step.
#[derive(Default)]
struct Answers {
    step: &'static str,
    count: u64,
    took: Duration,
    round_trips: u64,
    keys_read: u64,
    keys_written: u64,
}

static STEPS: Mutex<Vec<Answers>> = Mutex::new(Vec::new());

fn steps() -> MutexGuard<'static, Vec<Answers>> {
    STEPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins the answers of a step.
pub fn begin(step: &'static str) {
    steps().push(Answers { step, ..Answers::default() });
}

fn record(took: Duration, cost: &Cost) {
    if let Some(step) = steps().last_mut() {
        step.count += 1;
        step.took += took;
        step.round_trips += cost.round_trips;
        step.keys_read += cost.keys_read;
        step.keys_written += cost.keys_written;
    }
}

/// Prints the costs of the answers of each step.
pub fn print_table() {
    say!("{:<58}{:>8}{:>10}{:>11}{:>11}{:>9}", "step", "answers", "ms", "trips", "read", "written");
    for one in steps().iter().filter(|one| one.count > 0) {
        let (read, written) = (grouped(one.keys_read), grouped(one.keys_written));
        let (ms, trips) = (one.took.as_secs_f64() * 1e3, grouped(one.round_trips));
        say!("{:<58}{:>8}{ms:>10.2}{trips:>11}{read:>11}{written:>9}", one.step, one.count);
    }
}

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
    record(took, &cost);
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
    record(took, &cost);
    say!("\n! {what}");
    done?.iter().for_each(|line| say!("  {line}"));
    say!("  [{:.2} ms; {cost}]", took.as_secs_f64() * 1e3);
    Ok(())
}

/// Returns the number of lines, and the first `most` lines.
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
