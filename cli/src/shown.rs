//! Keys and texts in a form that a terminal can show. A shown key parses to the same key.

use std::fmt::Write;

use keyloom::key::{Element, List, elements, pack};

/// The key as a tuple if it is one, otherwise as `0x…`.
pub fn key(bytes: &[u8]) -> String {
    match elements(bytes) {
        // A key whose tuple would be packed to other bytes is shown as bytes: the shown form must
        // find the key again.
        Ok(all) if pack(&List(all.as_slice()))[..] == *bytes => tuple(&all),
        _ => format!("0x{}", hex(bytes)),
    }
}

/// The bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    // Does not use `write!`, which would call the formatter for each byte of an export.
    let digit = |four: u8| char::from_digit(u32::from(four), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0x0F)]).collect()
}

fn tuple(all: &[Element]) -> String {
    let shown: Vec<_> = all.iter().map(element).collect();
    match shown.as_slice() {
        [one] => format!("({one},)"),
        _ => format!("({})", shown.join(", ")),
    }
}

/// One element, in the language of [`crate::tuple`].
pub fn element(one: &Element) -> String {
    match one {
        Element::Bytes(bytes) => format!("x\"{}\"", hex(bytes)),
        Element::Tuple(all) => tuple(all),
        // A NaN has many bit patterns, and each pattern is a different key.
        Element::F64(value) if value.is_nan() => format!("nan({})", hex(&value.to_be_bytes())),
        Element::F32(value) if value.is_nan() => format!("nan32({})", hex(&value.to_be_bytes())),
        Element::Desc(inner) => format!("desc({})", element(inner)),
        _ => one.to_string(),
    }
}

/// The text in one line, with escapes for control characters. An escaped text stays as it is.
pub fn printable(text: &str) -> String {
    let escaped = |one: char| match one {
        '"' | '\'' | '\\' => vec![one],
        _ => one.escape_debug().collect::<Vec<_>>(),
    };
    text.chars().flat_map(escaped).collect()
}

/// A JSON text in one line, with escapes for all characters that a terminal or a browser could
/// interpret.
pub fn json_safe(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for one in json.chars() {
        match one {
            // Outside of strings, these characters are white space; in strings, JSON does not allow
            // them.
            '\n' | '\r' | '\t' => safe.push(' '),
            '<' | '>' | '&' => escape_units(one, &mut safe),
            '"' | '\'' | '\\' => safe.push(one),
            _ if one.escape_debug().len() == 1 => safe.push(one),
            _ => escape_units(one, &mut safe),
        }
    }
    safe
}

fn escape_units(one: char, into: &mut String) {
    for unit in one.encode_utf16(&mut [0; 2]) {
        let _ = write!(into, "\\u{unit:04x}");
    }
}

/// At most `most` characters of `text`, with its length in bytes if some are left out.
pub fn cut(text: &str, most: Option<usize>, bytes: usize) -> (String, bool) {
    match most.and_then(|most| text.char_indices().nth(most)) {
        Some((end, _)) => {
            (format!("{}… ({bytes} bytes)", text.get(..end).unwrap_or_default()), true)
        }
        None => (text.to_owned(), false),
    }
}
