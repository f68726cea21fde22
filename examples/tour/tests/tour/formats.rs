//! The output without `--verbose`, on a store that is loaded already.

use std::path::Path;

use serde_json::Value;

use crate::{lmdb, said, tour};

const STEPS: usize = 21;

/// The address is a bare path, and the output is a pipe.
pub fn the_summary_is_short_and_plain(store: &Path) {
    let output = tour(&[store]);
    let text = said(&output);
    assert!(output.status.success() && output.stderr.is_empty(), "{text}");
    assert!((90..=135).contains(&text.lines().count()), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
    for line in [
        "1  Find, sort and page records by any field  book/src/composite_key_index.md",
        "    keys: (cities.by_size, country, region, population descending, id)",
        "    result: refused: its lock is lost  [",
        "spatial.md",
        "step\tkeys\tbytes\ttime",
    ] {
        assert!(text.contains(line), "{line} is not in: {text}");
    }
    for line in excerpt_of_the_readme() {
        assert!(text.contains(&line), "{line} of the README is not in: {text}");
    }
    let is_answer =
        |line: &&str| line.starts_with("    answer: ") || line.starts_with("    result: ");
    assert_eq!(text.lines().filter(is_answer).count(), STEPS, "an answer of each step: {text}");
    let command = format!("keyloom ls {} ", lmdb(store));
    assert!(text.lines().last().unwrap().contains(&command), "{text}");
}

/// The lines of the README's excerpt, up to the times and costs.
fn excerpt_of_the_readme() -> Vec<String> {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let (_, rest) = readme.split_once("\n```text\n4  ").unwrap();
    let (excerpt, _) = rest.split_once("```").unwrap();
    let lines = excerpt.lines().filter(|line| *line != "...");
    let lines: Vec<_> = lines.map(|line| line.split("  [").next().unwrap().to_owned()).collect();
    assert!(lines.len() >= 8, "{lines:?}");
    lines
}

pub fn every_step_is_a_line_of_json(store: &Path) {
    let output = tour(&["--json".as_ref(), store]);
    let text = said(&output);
    assert!(output.status.success() && output.stderr.is_empty(), "{text}");
    let steps: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(steps.len(), STEPS, "{text}");
    for step in &steps {
        let texts = ["step", "title", "chapter", "layout"].map(|name| step[name].as_str());
        assert!(texts.iter().all(Option::is_some), "{step}");
        assert!(step["figures"][0]["question"].is_string(), "{step}");
        assert!(step["bytes"].as_u64() > step["keys"].as_u64(), "{step}");
        assert!(step["elapsed"].as_f64() > Some(0.0), "{step}");
    }
    // All keys but those of the schema and the marks of complete loads belong to a step.
    let keys: u64 = steps.iter().map(|step| step["keys"].as_u64().unwrap()).sum();
    assert!((984_420..984_470).contains(&keys), "{keys}");
}
