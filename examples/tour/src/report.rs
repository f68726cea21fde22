//! The questions of the steps with their answers and costs.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use keyloom::{Cost, Reader, Store};
use serde::Serialize;

use crate::{TourResult, TourStore};

/// A query or a change of a step, and its answer.
#[derive(Serialize)]
pub struct Figure {
    pub question: String,
    pub answer: Vec<String>,
    /// Seconds.
    pub elapsed: f64,
    pub round_trips: u64,
    pub keys_read: u64,
    pub keys_written: u64,
}

static FIGURES: Mutex<Vec<Figure>> = Mutex::new(Vec::new());
static IS_VERBOSE: AtomicBool = AtomicBool::new(false);

/// Prints all answers as they come.
pub fn be_verbose() {
    IS_VERBOSE.store(true, Ordering::Relaxed);
}

pub fn is_verbose() -> bool {
    IS_VERBOSE.load(Ordering::Relaxed)
}

/// Prints a line if the output is verbose.
macro_rules! say {
    ($($line:tt)*) => {
        if $crate::report::is_verbose() {
            $crate::output::out!($($line)*)
        }
    };
}
pub(crate) use say;

/// Returns the figures since the last call.
pub fn take_figures() -> Vec<Figure> {
    std::mem::take(&mut FIGURES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Runs a query on a snapshot, and records the answer with its time and cost.
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
    record('?', question, lines, took, &cost);
    Ok(value)
}

/// Changes the store, and records the result with its time and cost.
pub fn act(
    store: &TourStore,
    what: &str,
    work: impl FnOnce(&TourStore) -> TourResult<Vec<String>>,
) -> TourResult {
    measured('!', store, what, work)
}

/// Answers a question with several snapshots of one state, and records it like [`ask`].
pub fn ask_in_parallel(
    store: &TourStore,
    question: &str,
    work: impl FnOnce(&TourStore) -> TourResult<Vec<String>>,
) -> TourResult {
    measured('?', store, question, work)
}

fn measured(
    sign: char,
    store: &TourStore,
    what: &str,
    work: impl FnOnce(&TourStore) -> TourResult<Vec<String>>,
) -> TourResult {
    let started = Instant::now();
    let (done, cost) = store.measure(work);
    let took = started.elapsed();
    record(sign, what, done?, took, &cost);
    Ok(())
}

fn record(sign: char, question: &str, answer: Vec<String>, took: Duration, cost: &Cost) {
    say!("\n{sign} {question}");
    answer.iter().for_each(|line| say!("  {line}"));
    say!("  [{:.2} ms; {cost}]", took.as_secs_f64() * 1e3);
    let figure = Figure {
        question: question.to_owned(),
        answer,
        elapsed: took.as_secs_f64(),
        round_trips: cost.round_trips,
        keys_read: cost.keys_read,
        keys_written: cost.keys_written,
    };
    FIGURES.lock().unwrap_or_else(PoisonError::into_inner).push(figure);
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
