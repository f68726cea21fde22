//! What a test program left out, on the last line that it prints.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// The tests that were left out, by the reason.
static SKIPPED: Mutex<BTreeMap<String, BTreeSet<String>>> = Mutex::new(BTreeMap::new());

/// Notes that this test is left out. The test harness counts it as passed, so the program names it
/// after the harness's last line.
pub fn skip(why: &str) {
    let mut skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    if skipped.is_empty() {
        // SAFETY: `report` is a function of this program, takes nothing and does not unwind.
        #[allow(unsafe_code)]
        unsafe {
            libc::atexit(report)
        };
    }
    // The harness names the thread of a test after it.
    let test = thread::current().name().unwrap_or("a test").to_owned();
    skipped.entry(why.to_owned()).or_default().insert(test);
}

extern "C" fn report() {
    let skipped = SKIPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let reasons = skipped.iter().map(|(why, tests)| format!("{} ({why})", tests.len()));
    let line = format!("tests skipped: {}\n", reasons.collect::<Vec<_>>().join(", "));
    // In one piece, and past what the harness keeps to itself.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
