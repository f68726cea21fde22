//! The race of renames keeps its promises: every strategy leaves a clean file system, and the
//! control without protection is caught.
#![allow(clippy::unwrap_used)]

use std::process::Command;

#[test]
fn every_strategy_but_the_control_renames_correctly() {
    let arguments = ["--processes", "3", "--seconds", "0.5", "--think-us", "1000"];
    let output = Command::new(env!("CARGO_BIN_EXE_rename_race")).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(text.matches("clean").count(), 6, "{text}");
}
