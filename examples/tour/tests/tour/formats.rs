//! The output without `--verbose`, on a store that is loaded already.

use std::path::Path;

use crate::{lmdb, said, tour};

const STEPS: usize = 19;

/// The address is a bare path, and the output is a pipe.
pub fn the_summary_is_short_and_plain(store: &Path) {
    let output = tour(&[store]);
    let text = said(&output);
    assert!(output.status.success() && output.stderr.is_empty(), "{text}");
    assert!((90..=125).contains(&text.lines().count()), "{text}");
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
    let is_answer =
        |line: &&str| line.starts_with("    answer: ") || line.starts_with("    result: ");
    assert_eq!(text.lines().filter(is_answer).count(), STEPS, "an answer of each step: {text}");
    let command = format!("keyloom ls {} ", lmdb(store));
    assert!(text.lines().last().unwrap().contains(&command), "{text}");
}
