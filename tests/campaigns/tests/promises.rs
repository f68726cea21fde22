//! What the README and the book say of the campaigns is what the result files and the workloads
//! are.
#![allow(clippy::unwrap_used)]

use keyloom_campaigns::promises::{FILES, root, updated};
use keyloom_campaigns::record::Record;

#[test]
fn the_table_of_promises_is_that_of_the_result_files() {
    for file in FILES {
        let written = std::fs::read_to_string(root().join(file)).unwrap();
        assert!(written == updated(file).unwrap(), "{file}: run `cargo campaign promises`");
    }
}

#[test]
fn old_result_file_without_commit_and_workloads_is_read() {
    let text = r#"{"campaign": "kill", "command": "cargo campaign kill", "date": "2026-11-21", "seed": 7,
        "count": 1, "unit": "kills", "failures": 0, "seconds": 1, "controls": {"one": true}}"#;
    let record: Record = serde_json::from_str(text).unwrap();
    assert!(record.is_sound() && record.commit.is_empty() && record.workloads.is_empty());
}
