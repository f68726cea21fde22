//! Lines of the output: text in columns, or JSON.

use std::io::{BufWriter, StdoutLock, Write};

use serde_json::Value;

use crate::failure::Result;
use crate::shown::{json_safe, printable};
use crate::style::{Role, paint, paint_err};

/// The heads of columns with names or keys.
const NAMES: [&str; 6] = ["DATABASE", "LOCKS", "NAME", "OWNER", "PREFIX", "QUEUE"];

/// The standard output.
pub struct Output {
    to: BufWriter<StdoutLock<'static>>,
    /// Whether the output is JSON.
    pub json: bool,
}

impl Output {
    /// The output of a command.
    pub fn new(json: bool) -> Self {
        Self { to: BufWriter::new(std::io::stdout().lock()), json }
    }

    /// Writes one line.
    pub fn line(&mut self, text: &str) -> Result {
        Ok(writeln!(self.to, "{text}")?)
    }

    /// Writes bytes unchanged.
    pub fn bytes(&mut self, text: &[u8]) -> Result {
        Ok(self.to.write_all(text)?)
    }

    /// Writes one line: the object, or the text.
    pub fn either(
        &mut self,
        object: impl FnOnce() -> Value,
        text: impl FnOnce() -> String,
    ) -> Result {
        match self.json {
            true => self.line(&json_safe(&object().to_string())),
            false => self.line(&text()),
        }
    }

    /// Writes the buffered lines.
    pub fn flush(&mut self) -> Result {
        Ok(self.to.flush()?)
    }

    /// Ends the output. Must be called, since errors of a drop are lost.
    pub fn finish(mut self) -> Result {
        self.flush()
    }

    /// Writes rows in aligned columns. `right` lists the right-aligned columns, those of numbers.
    pub fn table(&mut self, head: &[&str], rows: &[Vec<String>], right: &[usize]) -> Result {
        let head: Vec<String> = head.iter().map(|&title| title.to_owned()).collect();
        let width = |column: usize| {
            let cells = rows.iter().chain([&head]).filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        for (place, row) in [&head].into_iter().chain(rows).enumerate() {
            let is_head = place == 0;
            let cells = row.iter().zip(&widths).enumerate();
            let padded = cells.map(|(column, (cell, &width))| {
                let is_number = right.contains(&column);
                let role = match head.get(column).map(String::as_str) {
                    _ if is_head => Some(Role::Head),
                    _ if is_number => Some(Role::Number),
                    Some(title) if NAMES.contains(&title) => Some(Role::Name),
                    _ => None,
                };
                let space = " ".repeat(width - cell.chars().count());
                let cell = role.map_or_else(|| cell.clone(), |role| paint(role, cell));
                if is_number { space + &cell } else { cell + &space }
            });
            let line = padded.collect::<Vec<_>>().join("  ");
            self.line(line.trim_end())?;
        }
        Ok(())
    }
}

/// Writes a message to the standard error, without control characters. A failed write is ignored,
/// since it cannot be reported.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr(), "keyloom: {}", printable(text));
}

/// Writes an error to the standard error.
pub fn note_fault(text: &str) {
    let text = paint_err(Role::Fault, &printable(text));
    let _ = writeln!(std::io::stderr(), "keyloom: {text}");
}

/// The number with a comma between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
