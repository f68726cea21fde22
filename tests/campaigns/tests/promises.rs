//! What the README and the book say of the campaigns is what the result files say.
#![allow(clippy::unwrap_used)]

use keyloom_campaigns::promises::{FILES, root, updated};

#[test]
fn the_table_of_promises_is_that_of_the_result_files() {
    for file in FILES.map(|file| root().join(file)) {
        let written = std::fs::read_to_string(&file).unwrap();
        let wanted = updated(&file).unwrap();
        assert!(written == wanted, "{}: run `cargo campaign promises`", file.display());
    }
}
