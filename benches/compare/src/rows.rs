//! The results of all comparisons in one file, and their summary.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};

/// A file to which every comparison appends its rows, as lines of JSON.
pub const JSON: &str = "KEYLOOM_COMPARE_JSON";
/// The largest number of rounds of a comparison, for a quick look.
pub const ROUNDS: &str = "KEYLOOM_COMPARE_ROUNDS";

/// The first contender beside one of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The benchmark.
    pub bench: String,
    /// What was measured.
    pub what: String,
    /// The first contender.
    pub first: String,
    /// The other one.
    pub peer: String,
    /// The time of the first, divided by that of the other, in the median round.
    pub ratio: f64,
    /// The first and third quartile of the rounds.
    pub quartiles: (f64, f64),
    /// The median times of both, per operation.
    pub nanoseconds: (f64, f64),
    /// The number of rounds.
    pub rounds: usize,
}

/// The value of [`ROUNDS`].
pub fn most_rounds() -> Option<usize> {
    std::env::var(ROUNDS).ok()?.parse().ok()
}

/// The name of the running benchmark: that of its program, without cargo's hash.
pub fn bench() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let name = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    name.rsplit_once('-').map_or(name.clone(), |(name, _)| name.to_owned())
}

/// Appends a row to the file of [`JSON`], if there is one. A row that cannot be written is reported
/// and left out: the measurement before it may have taken an hour.
pub fn append(row: &Row) {
    let Ok(path) = std::env::var(JSON) else { return };
    let written = OpenOptions::new().create(true).append(true).open(&path).and_then(|mut file| {
        let line = serde_json::to_string(row).map_err(io::Error::other)?;
        writeln!(file, "{line}")
    });
    if let Err(error) = written {
        eprintln!("{path}: {error}");
    }
}

/// Reads the rows of a file.
///
/// # Errors
/// A line that is not a row, with its number.
pub fn parse(text: &str) -> Result<Vec<Row>, String> {
    let lines = text.lines().enumerate();
    lines
        .map(|(n, line)| serde_json::from_str(line).map_err(|e| format!("line {}: {e}", n + 1)))
        .collect()
}

/// All rows as a table, and after it those in which the first contender is slower, the slowest
/// first.
pub fn summary(rows: &[Row]) -> String {
    let mut text = String::from(
        "| bench | what | | beside | ratio | quartiles |\n|---|---|---|---|---|---|\n",
    );
    for row in rows {
        text += &line(row);
    }
    let mut slower: Vec<&Row> = rows.iter().filter(|row| row.ratio > 1.0).collect();
    slower.sort_by(|a, b| b.ratio.total_cmp(&a.ratio));
    let _ = writeln!(
        text,
        "\nA ratio is the time of the first divided by that of the other. It is above 1 in {} of {} rows:\n",
        slower.len(),
        rows.len()
    );
    text += "| bench | what | | beside | ratio | quartiles |\n|---|---|---|---|---|---|\n";
    slower.into_iter().for_each(|row| text += &line(row));
    text
}

fn line(row: &Row) -> String {
    let Row { bench, what, first, peer, ratio, quartiles: (low, high), .. } = row;
    format!("| {bench} | {what} | {first} | {peer} | {ratio:.2} | {low:.2} to {high:.2} |\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    fn row(what: &str, ratio: f64) -> Row {
        Row {
            bench: "store".into(),
            what: what.into(),
            first: "keyloom".into(),
            peer: "heed".into(),
            ratio,
            quartiles: (ratio / 2.0, ratio * 2.0),
            nanoseconds: (10.0, 20.0),
            rounds: 3,
        }
    }

    #[test]
    fn summary_ends_with_the_slower_rows_the_slowest_first() {
        let rows = [row("get", 0.5), row("scan", 1.5), row("put", 3.0)];
        let text = summary(&rows);
        assert!(text.contains("above 1 in 2 of 3 rows"), "{text}");
        let tail: Vec<_> = text.lines().rev().take(2).collect();
        assert_eq!(tail[1], "| store | put | keyloom | heed | 3.00 | 1.50 to 6.00 |");
        assert_eq!(tail[0], "| store | scan | keyloom | heed | 1.50 | 0.75 to 3.00 |");
    }

    #[test]
    fn rows_are_read_as_they_were_written() {
        let rows = [row("get", 0.5), row("a | b \"\n", f64::MIN_POSITIVE)];
        let text: Vec<_> = rows.iter().map(|row| serde_json::to_string(row).unwrap()).collect();
        assert_eq!(parse(&text.join("\n")), Ok(rows.to_vec()));
        assert!(parse("{}").unwrap_err().starts_with("line 1: "));
    }
}
