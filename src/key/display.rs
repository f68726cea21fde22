//! Keys in readable form.

use std::fmt::{self, Display, Write};

use super::{Element, elements};

/// Shows a key: as a tuple if it is one, otherwise as escaped bytes.
///
/// ```
/// use keyloom::key::{Desc, display, pack};
/// let key = pack(&("Zürich", -1, &b"\0a"[..], None::<u8>, ((), 1.5_f64), Desc(7)));
/// assert_eq!(display(&key).to_string(), r#"("Zürich", -1, b"\x00a", null, ((), 1.5), desc(7))"#);
/// assert_eq!(display(b"\xFEzz").to_string(), r#"b"\xfezz""#);
/// ```
///
/// Control characters and quotes in strings are escaped as in Rust. The key is decoded each time it
/// is displayed.
pub fn display(bytes: &[u8]) -> impl Display {
    Shown(bytes)
}

struct Shown<'k>(&'k [u8]);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match elements(self.0) {
            Ok(elements) => tuple(&elements, f),
            Err(_) => bytes(self.0, f),
        }
    }
}

impl Display for Element {
    /// Shows the element as [`display`] does within a key. An `f32` is shown with the suffix `f32`,
    /// an `f64` without a suffix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bytes(content) => bytes(content, f),
            Self::Str(text) => write!(f, "{text:?}"),
            Self::Tuple(elements) => tuple(elements, f),
            Self::Int(value) => write!(f, "{value}"),
            Self::BigInt(value) => write!(f, "{value}"),
            Self::F32(value) => write!(f, "{value:?}f32"),
            Self::F64(value) => write!(f, "{value:?}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Uuid(value) => write!(f, "{value}"),
            Self::Versionstamp(value) => write!(f, "{value}"),
            Self::Desc(element) => write!(f, "desc({element})"),
        }
    }
}

/// Writes a tuple as in Rust: `()`, `(1,)`, `(1, 2)`.
fn tuple(elements: &[Element], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('(')?;
    for (i, element) in elements.iter().enumerate() {
        f.write_str(if i == 0 { "" } else { ", " })?;
        element.fmt(f)?;
    }
    f.write_str(if elements.len() == 1 { ",)" } else { ")" })
}

fn bytes(content: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("b\"")?;
    content.iter().try_for_each(|&byte| match byte {
        b'"' | b'\\' => write!(f, "\\{}", char::from(byte)),
        b' '..=b'~' => f.write_char(char::from(byte)),
        _ => write!(f, "\\x{byte:02x}"),
    })?;
    f.write_char('"')
}
