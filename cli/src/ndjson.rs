//! The text of an export: one JSON object per line.
//!
//! ```text
//! {"keyloom":"export","version":1,"prefix":null}
//! {"key":"(\"orders\", 7)","value_hex":"7b7d","check":"969c50fb"}
//! {"entries":1,"sha256":"…"}
//! ```
//!
//! The entries ascend by key. A key is a tuple, or `0x` and hexadecimal digits. `check` is the
//! beginning of the hash of the entry: a damaged line is found before it is written. The last line
//! contains the number of all entries and their hash: a truncated file is found.

use serde_json::Value;

use crate::digest::{Digest, check_of};
use crate::selection::one_key;
use crate::shown::{self, hex, json_safe};
use crate::value::Shown;

/// The field `keyloom` of the first line.
pub const KIND: &str = "export";
/// The version of the format.
pub const VERSION: u32 = 1;

/// The first line.
pub fn first(prefix: Option<&str>) -> String {
    let prefix = quoted(prefix);
    format!("{{\"keyloom\":\"{KIND}\",\"version\":{VERSION},\"prefix\":{prefix}}}")
}

/// The line of an entry. `decoded` is the value in readable form, which an import ignores.
pub fn entry(key: &[u8], value: &[u8], decoded: Option<&Shown>) -> String {
    let (shown, check) = (quoted(key_text(key)), check_of(key, value));
    let decoded = decoded.map_or_else(String::new, |decoded| {
        let text = quoted(decoded.text.as_str());
        format!(",\"form\":\"{}\",\"decoded\":{text}", decoded.form)
    });
    let value = hex(value);
    format!("{{\"key\":{shown},\"value_hex\":\"{value}\",\"check\":\"{check}\"{decoded}}}")
}

/// The last line.
pub fn last(digest: &Digest) -> String {
    format!("{{\"entries\":{},\"sha256\":\"{}\"}}", digest.entries(), digest.sha256())
}

/// The key as a tuple if the tuple parses to the same bytes, otherwise in hexadecimal digits.
fn key_text(key: &[u8]) -> String {
    let text = shown::key(key);
    match one_key(&text) {
        Ok(same) if same[..] == *key => text,
        _ => format!("0x{}", hex(key)),
    }
}

fn quoted(value: impl Into<Value>) -> String {
    json_safe(&value.into().to_string())
}

#[cfg(test)]
mod tests {
    use keyloom::pack;
    use proptest::prelude::*;

    use super::*;
    use crate::lines::Lines;

    fn read(text: &str) -> Option<(Vec<u8>, Vec<u8>)> {
        Lines::open("test".into(), text.as_bytes()).and_then(|mut lines| lines.read()).ok()?
    }

    proptest! {
        #[test]
        fn an_entry_is_read_as_it_was_written(
            bytes in prop::collection::vec(any::<u8>(), 1..20),
            text in any::<String>(),
            value in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            for key in [bytes, pack(&(&*text, 7)).to_vec()] {
                let shown = Shown { text: text.clone(), form: "utf8", is_cut: false };
                for decoded in [None, Some(&shown)] {
                    let line = entry(&key, &value, decoded);
                    prop_assert!(!line.contains(['<', '\n', '\u{1b}', '\u{202e}']), "{}", line);
                    let file = format!("{}\n{line}\n", first(Some(text.as_str())));
                    prop_assert_eq!(read(&file), Some((key.clone(), value.clone())), "{}", file);
                }
            }
        }
    }
}
