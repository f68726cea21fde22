//! What the tour prints of each step, and of all steps at its end.

use serde::Serialize;

use crate::output::{bold, dim, out, padded, print_table};
use crate::report::{Figure, grouped, is_verbose};
use crate::steps::About;

/// The number of characters of an answer in the summary.
const SHOWN: usize = 60;

/// A step that ran.
#[derive(Serialize)]
pub struct Done {
    #[serde(flatten)]
    pub about: &'static About,
    pub figures: Vec<Figure>,
    /// The number of keys that the step keeps in the store.
    pub keys: u64,
    /// The bytes of these keys and their values.
    pub bytes: u64,
    /// The seconds of the load and of all answers.
    pub elapsed: f64,
}

impl Done {
    /// Prints the step in some lines, with one of its answers.
    pub fn print(&self, number: usize) {
        let About { title, chapter, layout, shown, .. } = self.about;
        out!("");
        let title = bold(&padded(title, 60));
        out!("{}  {title}  {}", padded(&number.to_string(), 2), dim(chapter));
        line("keys", layout);
        let figure = self.figures.iter().find(|figure| figure.question.contains(shown));
        if let Some(figure) = figure {
            let (question, answer) = match figure.question.strip_suffix(':') {
                Some(change) => (("change", change), "result"),
                None => (("question", &*figure.question), "answer"),
            };
            line(question.0, question.1);
            line(answer, &format!("{}  {}", short(&figure.answer), dim(&cost(figure))));
        }
    }

    fn row(&self) -> Vec<String> {
        let time = format!("{:.2} s", self.elapsed);
        let row = [self.about.name.to_owned(), grouped(self.keys), size(self.bytes), time];
        let sum = |of: fn(&Figure) -> u64| grouped(self.figures.iter().map(of).sum());
        let ms: f64 = self.figures.iter().map(|figure| figure.elapsed * 1e3).sum();
        let more = [
            grouped(self.figures.len() as u64),
            format!("{ms:.2}"),
            sum(|figure| figure.round_trips),
            sum(|figure| figure.keys_read),
            sum(|figure| figure.keys_written),
        ];
        row.into_iter().chain(more).take(columns().len()).collect()
    }
}

/// Prints a table of the steps.
pub fn print_all(done: &[Done]) {
    let head = columns().iter().map(|&name| name.to_owned()).collect();
    let rows: Vec<_> = [head].into_iter().chain(done.iter().map(Done::row)).collect();
    print_table(&rows, true);
}

/// The verbose table has the costs of the answers, too.
fn columns() -> &'static [&'static str] {
    const COLUMNS: [&str; 9] =
        ["step", "keys", "bytes", "time", "answers", "ms", "trips", "read", "written"];
    if is_verbose() { &COLUMNS } else { COLUMNS.split_at(4).0 }
}

fn line(label: &str, text: &str) {
    out!("    {} {text}", dim(&padded(&format!("{label}:"), 10)));
}

/// The first lines of an answer in one line of about `SHOWN` characters.
fn short(answer: &[String]) -> String {
    let mut short = String::new();
    for line in answer {
        let separator = if short.is_empty() { "" } else { "; " };
        let room = SHOWN.saturating_sub(short.chars().count() + separator.len());
        let line = line.trim();
        match line.char_indices().nth(room) {
            None => short.extend([separator, line]),
            Some(_) if !short.is_empty() => return short + "; …",
            Some((end, _)) => return format!("{}…", line.split_at(end).0),
        }
    }
    short
}

fn cost(figure: &Figure) -> String {
    let keys = |count, what| match count {
        0 => String::new(),
        1 => format!(", 1 key {what}"),
        _ => format!(", {} keys {what}", grouped(count)),
    };
    let (read, written) = (keys(figure.keys_read, "read"), keys(figure.keys_written, "written"));
    format!("[{:.2} ms{read}{written}]", figure.elapsed * 1e3)
}

fn size(bytes: u64) -> String {
    match bytes {
        1_000_000.. => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} kB", bytes as f64 / 1e3),
    }
}
