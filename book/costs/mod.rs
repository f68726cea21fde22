//! The tables of costs in the chapters, row by row, compared with what the operations cost.
//!
//! A row names an operation and its counts, as formulas of n (and other letters): `2n + 1`, or
//! `at most 9n`. A test runs the operation at two sizes, and compares each count. If a table shows
//! the costs of one set of data, a test repeats the measurement and compares each cell. A row that
//! no test runs is a fault, and so is a table that is neither tested nor in [`NOT_COUNTED`].

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

mod choose_tree;
mod entity;
mod index;
mod join;
mod path;
mod sequence;
mod spatial_boxes;
mod trees;
mod versioned;

use std::collections::BTreeSet;
use std::fs;

use keyloom::Cost;

/// Tables with costs that are not compared here, and why: the beginning of their first line.
const NOT_COUNTED: [(&str, &str, &str); 3] = [
    ("aggregate_totals.md", "| attached | time per put |", "times of a benchmark"),
    ("foundationdb.md", "| | round trips |", "needs a cluster; tests on it count them"),
    ("locking.md", "| a lock acquired and released |", "times beside other systems"),
];

/// Tables with costs that are compared here: the beginnings of their first lines.
const COUNTED: [(&str, &str); 10] = [
    ("composite_key_index.md", "| operation | gets |"),
    ("entity.md", "| operation | gets |"),
    ("join.md", "| join | the right side is |"),
    ("measurements.md", "| operation: keys written / keys read /"),
    ("path.md", "| operation | ranges |"),
    ("sequence.md", "| operation | gets |"),
    ("spatial_boxes.md", "| query | found | ranges |"),
    ("trees.md", "| operation: keys written / keys read /"),
    ("trees_nodes.md", "| gets / ranges / keys read |"),
    ("versioned.md", "| operation | gets |"),
];

fn chapter(name: &str) -> String {
    fs::read_to_string(format!("{}/src/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn cells(line: &str) -> Vec<String> {
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// A table of a chapter, and the rows that a test has run.
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
    run: BTreeSet<String>,
}

impl Table {
    fn of(name: &str) -> Self {
        let (_, head) = COUNTED.iter().find(|(chapter, _)| *chapter == name).unwrap();
        Self::parse(&chapter(name), head)
    }

    fn parse(text: &str, head: &str) -> Self {
        let mut lines = text.lines().skip_while(|line| !line.starts_with(head));
        let columns = cells(lines.next().unwrap());
        let rows = lines.skip(1).take_while(|line| line.starts_with('|')).map(cells).collect();
        Self { columns, rows, run: BTreeSet::new() }
    }

    fn row(&mut self, operation: &str) -> Vec<String> {
        let row = self.rows.iter().find(|row| row[0] == operation);
        self.run.insert(operation.to_owned());
        row.unwrap_or_else(|| panic!("the table has no row {operation:?}")).clone()
    }

    /// Compares a row with a cost. `sizes` are the letters of the formulas. If a cell has several
    /// cases, as in `1; 2`, `case` is the one that was run, from 0.
    fn compare(&mut self, operation: &str, case: usize, sizes: &[(char, u64)], cost: &Cost) {
        let row = self.row(operation);
        let faults = faults(&self.columns, &row, case, sizes, cost);
        assert!(faults.is_empty(), "{operation} with {sizes:?}: {faults:?}");
    }

    /// Compares a row with the cells that a measurement has printed.
    fn compare_cells(&mut self, operation: &str, measured: &[String]) {
        let row = self.row(operation);
        let faults = different_cells(&self.columns, &row, measured);
        assert!(faults.is_empty(), "{operation}: {faults:?}");
    }

    /// Every row has been run.
    fn end(self, left_out: &[&str]) {
        let all = self.rows.iter().map(|row| row[0].clone());
        let missing: Vec<String> = all
            .filter(|row| !self.run.contains(row) && !left_out.contains(&row.as_str()))
            .collect();
        assert_eq!(missing, [""; 0], "rows that no test runs");
    }
}

/// The cells of a row that differ from a cost.
fn faults(
    columns: &[String],
    row: &[String],
    case: usize,
    sizes: &[(char, u64)],
    cost: &Cost,
) -> Vec<String> {
    let mut found = Vec::new();
    let mut compare = |what: &str, formula: &str, count: u64| {
        if differs(formula, sizes, count) {
            found.push(format!("{what}: {formula:?} in the book, {count} counted"));
        }
    };
    for (column, cell) in columns.iter().zip(row).skip(1) {
        let cases: Vec<&str> = cell.split("; ").collect();
        let cell = cases.get(case).or(cases.last()).copied().unwrap_or_default();
        let (cell, reads) = cell.split_once(", reads ").map_or((cell, None), |(a, b)| (a, Some(b)));
        let count = match column.as_str() {
            "gets" => cost.gets,
            "ranges" => cost.ranges,
            "keys read" => cost.keys_read,
            "keys written" => cost.keys_written,
            "round trips" => cost.round_trips,
            // Words.
            "the right side is" | "in memory" => continue,
            other => panic!("what is {other:?}?"),
        };
        compare(column, cell, count);
        if let Some(reads) = reads {
            // Gets that find something read a key too, and are in a column of their own.
            let of_ranges = cost.keys_read - cost.gets.min(cost.keys_read);
            compare("keys of ranges", reads, of_ranges);
        }
    }
    found
}

/// Whether a count contradicts a formula, or the formula has a letter without a size.
fn differs(formula: &str, sizes: &[(char, u64)], count: u64) -> bool {
    let most = formula.strip_prefix("at most ");
    match evaluate(most.unwrap_or(formula), sizes) {
        Some(expected) if most.is_none() => count != expected,
        // A bound that is far from the count states nothing.
        Some(most) => count > most || 2 * count < most,
        // A cell in words has no number to compare.
        None => formula.split(' ').all(|word| word.matches(char::is_alphabetic).count() < 2),
    }
}

/// The cells of a row, after the first one, that differ from what a measurement has printed.
fn different_cells(columns: &[String], row: &[String], measured: &[String]) -> Vec<String> {
    assert_eq!((columns.len(), row.len()), (measured.len() + 1, measured.len() + 1));
    let cells = columns.iter().zip(row).skip(1).zip(measured);
    cells
        .filter(|((_, cell), measured)| cell.trim_matches('*') != measured.as_str())
        .map(|((column, cell), measured)| {
            format!("{column}: {cell:?} in the book, {measured:?} measured")
        })
        .collect()
}

/// The value of `2n + 1`, or of `n / s`, which is rounded up. An empty cell is 0. `None` for words.
fn evaluate(formula: &str, sizes: &[(char, u64)]) -> Option<u64> {
    if formula.is_empty() {
        return Some(0);
    }
    let factor = |term: &str| {
        let digits = term.trim_end_matches(char::is_alphabetic);
        let letter = term.strip_prefix(digits)?;
        let factor = if digits.is_empty() { 1 } else { digits.parse().ok()? };
        match letter.chars().next() {
            None => Some(factor),
            Some(letter) if term.len() == digits.len() + 1 => {
                let (_, size) = sizes.iter().find(|(name, _)| *name == letter)?;
                Some(factor * size)
            }
            Some(_) => None,
        }
    };
    let term = |term: &str| match term.split_once(" / ") {
        Some((rows, batch)) => Some(factor(rows)?.div_ceil(factor(batch)?)),
        None => factor(term),
    };
    formula.split(" + ").map(term).sum()
}

#[test]
fn formulas_have_the_values_that_they_state() {
    let sizes = [('n', 7), ('s', 3)];
    let value = |formula| evaluate(formula, &sizes);
    assert_eq!(["", "0", "12"].map(value), [Some(0), Some(0), Some(12)]);
    assert_eq!(["n", "2n + 1", "s + n"].map(value), [Some(7), Some(15), Some(10)]);
    assert_eq!(["n / s", "n / s + 1"].map(value), [Some(3), Some(4)]);
    assert_eq!(["the difference", "k", "n / batch"].map(value), [None; 3]);
}

#[test]
fn a_count_is_compared_with_a_bound_from_both_sides() {
    let found = |formula, count| differs(formula, &[('n', 7)], count);
    assert_eq!([14, 15, 21].map(|count| found("2n + 1", count)), [true, false, true]);
    assert_eq!(
        [7, 8, 15, 16].map(|count| found("at most 2n + 1", count)),
        [true, false, false, true]
    );
    assert_eq!(["the document", "k", "2k + 1"].map(|of| found(of, 1)), [false, true, true]);
}

/// Every column is compared: a row with one number changed is a fault.
#[test]
fn a_changed_number_of_a_table_is_found() {
    let text = "| operation | gets | ranges | keys read | keys written | round trips |\n|-|\n\
                | read | 1; 2 | 1, reads n | n + 1 | | 3 |\n";
    let table = Table::parse(text, "| operation");
    let cost = Cost { gets: 1, ranges: 1, keys_read: 8, round_trips: 3, ..Cost::default() };
    let found = |row: &[String], case| faults(&table.columns, row, case, &[('n', 7)], &cost);
    assert_eq!(found(&table.rows[0], 0), [""; 0]);
    assert_eq!(found(&table.rows[0], 1).len(), 1);
    let changes = [(1, "2"), (2, "2, reads n"), (2, "1, reads 2n"), (3, "n"), (4, "1"), (5, "")];
    for (column, cell) in changes {
        let mut row = table.rows[0].clone();
        row[column] = cell.into();
        assert_eq!(found(&row, 0).len(), 1, "{column}: {cell}");
    }
}

/// Every cell of a measured row is compared.
#[test]
fn a_changed_cell_of_a_measured_table_is_found() {
    let text = "| operation: keys read | list | path |\n|-|\n| get | 0 / 1.5 | **1,100 / 2** |\n";
    let table = Table::parse(text, "| operation");
    let measured = ["0 / 1.5".to_owned(), "1,100 / 2".to_owned()];
    let found = |row: &[String]| different_cells(&table.columns, row, &measured);
    assert_eq!(found(&table.rows[0]), [""; 0]);
    for (column, cell) in [(1, "0 / 1.4"), (1, "0 / 1"), (2, "**1,101 / 2**"), (2, "")] {
        let mut row = table.rows[0].clone();
        row[column] = cell.into();
        assert_eq!(found(&row).len(), 1, "{column}: {cell}");
    }
}

#[test]
fn every_table_of_costs_is_compared_or_has_a_reason() {
    let listed: BTreeSet<(String, String)> = NOT_COUNTED
        .map(|(chapter, head, _)| (chapter.to_owned(), head.to_owned()))
        .into_iter()
        .chain(COUNTED.map(|(chapter, head)| (chapter.to_owned(), head.to_owned())))
        .collect();
    let mut unused = listed.clone();
    let directory = format!("{}/src", env!("CARGO_MANIFEST_DIR"));
    for file in fs::read_dir(directory).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        if !name.ends_with(".md") {
            continue;
        }
        let text = chapter(&name);
        let lines: Vec<&str> = text.lines().collect();
        for pair in lines.windows(2).filter(|pair| pair[1].starts_with("|--")) {
            let has_costs =
                ["gets", "keys read", "round trips"].iter().any(|one| pair[0].contains(one));
            let is_listed = |(chapter, head): &&(String, String)| {
                *chapter == name && pair[0].starts_with(head.as_str())
            };
            match listed.iter().find(is_listed) {
                Some(found) => _ = unused.remove(found),
                None => assert!(!has_costs, "{name}: no test compares the table {}", pair[0]),
            }
        }
    }
    assert!(unused.is_empty(), "listed, but not in the book: {unused:?}");
}
