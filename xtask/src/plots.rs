//! `cargo xtask plots`: the plots of the book, drawn from the rows of `cargo xtask compare` in
//! [`ROWS`]. Each plot shows one run.
//!
//! Each row is a horizontal bar on a logarithmic axis, with whiskers at the quartiles of the
//! rounds. A plot has its own background, so it is readable on light and dark pages.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

const ROWS: &str = "benches/compare/measured/rows.jsonl";
/// The circumstances of each run.
const RUNS: &str = "benches/compare/measured/runs.json";
const PICTURES: &str = "book/src/pictures";

/// A row of `cargo xtask compare`, without the fields that no plot shows.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    bench: String,
    what: String,
    first: String,
    peer: String,
    ratio: f64,
    quartiles: (f64, f64),
    rounds: usize,
}

/// The circumstances of a run.
#[derive(Debug, Deserialize)]
struct Run {
    /// The benchmarks that ran.
    benches: Vec<String>,
    date: String,
    commit: String,
    machine: String,
    load: String,
}

/// A plot and the rows that it shows.
struct Plot {
    file: &'static str,
    title: &'static str,
    durability: &'static str,
    shows: fn(&Row) -> bool,
}

const PLOTS: &[Plot] = &[
    Plot {
        file: "measured_stores.svg",
        title: "keyloom's time, divided by that of the engine alone",
        durability: "files not synced on both sides",
        // Rows without an engine alone compare stores of keyloom.
        shows: |row| row.bench == "store" && row.peer.starts_with("raw "),
    },
    Plot {
        file: "measured_keys.svg",
        title: "Encoding keys: keyloom's time, divided by the other's",
        durability: "in memory",
        shows: |row| row.bench == "keys" && is_of_codecs(row),
    },
    Plot {
        file: "measured_trees.svg",
        title: "Trees of cities, and of posts: keyloom's time, divided by SQLite's",
        durability: "no fsync on both sides",
        // Other rows compare a query with its own reads.
        shows: |row| row.bench == "hierarchy" && row.peer.starts_with("SQLite"),
    },
    Plot {
        file: "measured_text.svg",
        title: "Text: keyloom's time, divided by tantivy's (and a commit by that of FTS5)",
        durability: "each commit synced on both sides",
        // Queries take at most 0.4 of the time of FTS5.
        shows: |row| row.bench == "text" && (row.peer == "tantivy" || row.what.contains("durable")),
    },
    Plot {
        file: "measured_graphs.svg",
        title: "Whole graphs: keyloom's time on LMDB, divided by that of graphs in memory",
        durability: "only reads",
        shows: |row| row.bench == "whole_graph" && row.first.starts_with("blocks on LMDB"),
    },
    Plot {
        file: "measured_documents.svg",
        title: "Documents: keyloom's time, divided by SQLite's",
        durability: "no fsync on both sides",
        // The rows of groups take 0.01 to 0.9 of SQLite's time, and would hide the others.
        shows: |row| {
            row.bench == "documents"
                && row.peer.starts_with("SQLite")
                && !row.first.contains("groups")
                && row.first != "exact"
        },
    },
    Plot {
        file: "measured_bitmaps.svg",
        title: "AND and count of two bitmaps on LMDB, divided by the same in memory",
        durability: "only reads",
        shows: |row| row.bench == "bitmaps" && row.first == "keyloom on LMDB",
    },
];

/// Rows on reused buffers and on decoding. The rows on fresh buffers favour keyloom.
fn is_of_codecs(row: &Row) -> bool {
    let is_shown = row.what.starts_with("pack reused") || row.what.starts_with("unpack");
    is_shown && !row.peer.starts_with("keyloom")
}

/// The places of a plot, in pixels.
const WIDTH: f64 = 760.0;
const LEFT: f64 = 372.0;
const RIGHT: f64 = 700.0;
const TOP: f64 = 66.0;
const ROW: f64 = 34.0;

/// Writes all plots.
pub(crate) fn write(root: &Path) -> Result<()> {
    for (file, picture) in draw_all(root)? {
        println!("{PICTURES}/{file} ({} bytes)", picture.len());
        fs::write(root.join(PICTURES).join(file), picture)?;
    }
    Ok(())
}

fn draw_all(root: &Path) -> Result<Vec<(&'static str, String)>> {
    let rows = parse(&fs::read_to_string(root.join(ROWS)).context(ROWS)?)?;
    let runs = fs::read_to_string(root.join(RUNS)).context(RUNS)?;
    let runs: Vec<Run> = serde_json::from_str(&runs).context(RUNS)?;
    PLOTS.iter().map(|plot| Ok((plot.file, draw(plot, &rows, &runs)?))).collect()
}

fn parse(text: &str) -> Result<Vec<Row>> {
    let lines = text.lines().enumerate();
    lines
        .map(|(n, line)| serde_json::from_str(line).with_context(|| format!("line {}", n + 1)))
        .collect()
}

/// A logarithmic axis between two powers of two.
struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// The axis of these rows, with 1 inside and their quartiles.
    fn of(rows: &[&Row]) -> Self {
        let values = rows.iter().flat_map(|row| [row.quartiles.0, row.quartiles.1, row.ratio]);
        let logarithms: Vec<f64> = values.map(f64::log2).collect();
        let low = logarithms.iter().copied().fold(-1.0, f64::min).floor();
        let high = logarithms.iter().copied().fold(1.0, f64::max).ceil();
        Self { low, high }
    }

    fn x(&self, ratio: f64) -> f64 {
        let share = (ratio.log2() - self.low) / (self.high - self.low);
        LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    /// The powers of two with a line, at most nine.
    fn lines(&self) -> Vec<f64> {
        let step = ((self.high - self.low) / 8.0).ceil().max(1.0);
        let mut exponents = vec![0.0];
        let (mut up, mut down) = (step, -step);
        while up <= self.high {
            exponents.push(up);
            up += step;
        }
        while down >= self.low {
            exponents.push(down);
            down -= step;
        }
        exponents.into_iter().map(f64::exp2).collect()
    }
}

const STYLE: &str = "text{font:13px sans-serif;fill:#2b2b2b}.title{font-weight:bold}\
    .small{font-size:11.5px;fill:#555}.tick{text-anchor:middle}.grid{stroke:#d8d2c4}.one{stroke:#2b2b2b}\
    .faster{fill:#a9d3b8}.slower{fill:#e8a79b}.whisker{stroke:#2b2b2b;stroke-width:1.3}";

fn draw(plot: &Plot, rows: &[Row], runs: &[Run]) -> Result<String> {
    let rows: Vec<&Row> = rows.iter().filter(|row| (plot.shows)(row)).collect();
    ensure!(!rows.is_empty(), "no rows for {}", plot.file);
    let is_of = |run: &&Run| rows.iter().all(|row| run.benches.contains(&row.bench));
    let run =
        runs.iter().find(is_of).with_context(|| format!("{}: no run in {RUNS}", plot.file))?;
    ensure!(rows.iter().all(|row| row.ratio > 0.0 && row.quartiles.0 > 0.0), "a ratio of 0");
    let axis = Axis::of(&rows);
    let bottom = TOP + ROW * f64::from(u32::try_from(rows.len())?);
    let height = bottom + 62.0;
    let mut svg = format!(
        "<svg height=\"{height}\" role=\"img\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" xmlns=\"http://www.w3.org/2000/svg\">\n<title>{}</title>\n\
         <desc>{}</desc>\n<style>{STYLE}</style>\n\
         <rect fill=\"#fffdf8\" height=\"{height}\" width=\"{WIDTH}\" x=\"0\" y=\"0\"/>\n",
        escaped(plot.title),
        escaped(&description(&rows)),
    );
    text(&mut svg, 10.0, 22.0, "title", plot.title);
    text(
        &mut svg,
        10.0,
        40.0,
        "small",
        "below 1 keyloom is faster; whiskers: quartiles of the rounds",
    );
    for ratio in axis.lines() {
        let (x, class) = (axis.x(ratio), if ratio == 1.0 { "one" } else { "grid" });
        line(&mut svg, class, (x, TOP - 6.0), (x, bottom));
        let label = if ratio < 1.0 { format!("1/{}", 1.0 / ratio) } else { ratio.to_string() };
        text(&mut svg, x, TOP - 10.0, "small tick", &label);
    }
    for (n, row) in rows.iter().enumerate() {
        bar(&mut svg, &axis, row, TOP + ROW * f64::from(u32::try_from(n)?));
    }
    text(&mut svg, 10.0, bottom + 20.0, "small", &losses(&rows));
    let rounds = || rows.iter().map(|row| row.rounds);
    let (fewest, most) = (rounds().min().unwrap_or_default(), rounds().max().unwrap_or_default());
    let Run { date, commit, machine, load, .. } = run;
    let origin =
        format!("{fewest} to {most} rounds in turns, {}; {date}, commit {commit}", plot.durability);
    text(&mut svg, 10.0, bottom + 36.0, "small", &origin);
    text(&mut svg, 10.0, bottom + 52.0, "small", &format!("{machine}; {load}"));
    svg += "</svg>\n";
    Ok(svg)
}

/// A row: what was measured, beside what, the bar from 1 to the ratio, and the whiskers.
fn bar(svg: &mut String, axis: &Axis, row: &Row, y: f64) {
    let peer = if row.first == "keyloom" {
        row.peer.clone()
    } else {
        format!("{}; {}", row.first, row.peer)
    };
    text(svg, 10.0, y + 13.0, "", row.what.trim());
    text(svg, 10.0, y + 27.0, "small", &peer);
    let (one, end) = (axis.x(1.0), axis.x(row.ratio));
    let class = if row.ratio > 1.0 { "slower" } else { "faster" };
    let _ = writeln!(
        svg,
        "<rect class=\"{class}\" height=\"18\" width=\"{:.1}\" x=\"{:.1}\" y=\"{:.1}\"/>",
        (end - one).abs().max(1.0),
        one.min(end),
        y + 6.0
    );
    let (low, high) = (axis.x(row.quartiles.0), axis.x(row.quartiles.1));
    line(svg, "whisker", (low, y + 15.0), (high, y + 15.0));
    for x in [low, high] {
        line(svg, "whisker", (x, y + 10.0), (x, y + 20.0));
    }
    text(svg, RIGHT + 8.0, y + 19.0, "", &rounded(row.ratio));
}

fn rounded(ratio: f64) -> String {
    if ratio < 0.095 { format!("{ratio:.3}") } else { format!("{ratio:.2}") }
}

/// Where keyloom loses. A difference within the quartiles is not counted as a loss.
fn losses(rows: &[&Row]) -> String {
    let slower = rows.iter().filter(|row| row.ratio > 1.0).count();
    let clearly = rows.iter().filter(|row| row.quartiles.0 > 1.0).count();
    format!(
        "keyloom is slower in {slower} of {} rows, in {clearly} of them by the lower quartile, too",
        rows.len()
    )
}

/// All values in words, for readers who do not see the plot.
fn description(rows: &[&Row]) -> String {
    let one = |row: &&Row| {
        let (low, high) = row.quartiles;
        format!(
            "{}, beside {}: {} ({} to {})",
            row.what,
            row.peer,
            rounded(row.ratio),
            rounded(low),
            rounded(high)
        )
    };
    rows.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn text(svg: &mut String, x: f64, y: f64, class: &str, text: &str) {
    let _ =
        writeln!(svg, "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>", escaped(text));
}

fn line(svg: &mut String, class: &str, from: (f64, f64), to: (f64, f64)) {
    let ((x1, y1), (x2, y2)) = (from, to);
    let _ = writeln!(
        svg,
        "<line class=\"{class}\" x1=\"{x1:.1}\" x2=\"{x2:.1}\" y1=\"{y1:.1}\" y2=\"{y2:.1}\"/>"
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeSet;

    use super::*;

    fn row(ratio: f64) -> Row {
        Row {
            bench: "store".into(),
            what: "get <a>".into(),
            first: "keyloom".into(),
            peer: "raw heed".into(),
            ratio,
            quartiles: (ratio * 0.9, ratio * 1.05),
            rounds: 3,
        }
    }

    fn run(bench: &str) -> Run {
        let [date, commit, machine, load] = ["a", "b", "c", "d"].map(String::from);
        Run { benches: vec![bench.into()], date, commit, machine, load }
    }

    #[test]
    fn the_plots_of_the_book_are_drawn_from_the_rows() {
        let root = crate::root().unwrap();
        let mut drawn = BTreeSet::new();
        for (file, picture) in draw_all(&root).unwrap() {
            let kept = fs::read_to_string(root.join(PICTURES).join(file)).unwrap();
            assert!(kept == picture, "{file}: run `cargo xtask plots`");
            drawn.insert(file.to_owned());
        }
        let files = fs::read_dir(root.join(PICTURES)).unwrap();
        let kept = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let kept = kept.filter(|name| name.starts_with("measured_"));
        assert_eq!(kept.collect::<BTreeSet<_>>(), drawn);
    }

    #[test]
    fn a_changed_ratio_changes_the_plot() {
        let runs = [run("store")];
        let draw = |ratio: f64| draw(PLOTS.first().unwrap(), &[row(ratio)], &runs).unwrap();
        assert_ne!(draw(0.5), draw(0.51));
        assert!(
            draw(0.5).contains("slower in 0 of 1") && !draw(0.5).contains("<rect class=\"slower\"")
        );
        assert!(
            draw(1.5).contains("slower in 1 of 1") && draw(1.5).contains("<rect class=\"slower\"")
        );
        assert!(draw(1.5).contains("get &lt;a&gt;"));
    }

    #[test]
    fn twice_and_half_are_equally_far_from_one() {
        let rows = [row(0.25), row(3.0)];
        let axis = Axis::of(&rows.iter().collect::<Vec<_>>());
        let (half, one, twice) = (axis.x(0.5), axis.x(1.0), axis.x(2.0));
        assert!(((one - half) - (twice - one)).abs() < 1e-9);
        assert!(LEFT <= half && twice <= RIGHT);
        assert!(axis.lines().contains(&1.0));
    }

    #[test]
    fn rows_without_a_plot_are_an_error() {
        assert!(parse("{}").unwrap_err().to_string().contains("line 1"));
        draw(PLOTS.first().unwrap(), &[], &[run("store")]).unwrap_err();
        // Rows of a run whose circumstances are unknown.
        draw(PLOTS.first().unwrap(), &[row(0.5)], &[run("keys")]).unwrap_err();
    }
}
