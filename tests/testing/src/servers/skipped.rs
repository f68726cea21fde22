//! Tests that a program has skipped, on the last line of its output.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The skipped tests, by reason.
static SKIPPED: Mutex<BTreeMap<String, BTreeSet<String>>> = Mutex::new(BTreeMap::new());

/// Records that this test is skipped. The test harness counts it as passed, so the program names it
/// after the harness's last line.
pub fn skip(why: &str) {
    let mut skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    if skipped.is_empty() {
        // SAFETY: `report` is a function of this program without arguments, and does not unwind.
        #[allow(unsafe_code)]
        unsafe {
            libc::atexit(report)
        };
    }
    // The harness names the thread of a test after the test.
    let test = thread::current().name().unwrap_or("a test").to_owned();
    skipped.entry(why.to_owned()).or_default().insert(test);
}

extern "C" fn report() {
    let skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let reasons = skipped.iter().map(|(why, tests)| format!("{} ({why})", tests.len()));
    let line = format!("tests skipped: {}\n", reasons.collect::<Vec<_>>().join(", "));
    // In one write, and not through the output that the harness captures.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
