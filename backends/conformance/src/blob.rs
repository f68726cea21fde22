//! Bytes with a readable form.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;

/// A key or a value of a check. Its printed form is short: `61 FF*510` for an `a` and 510 times
/// `FF`.
///
/// ```
/// use keyloom_conformance::Blob;
/// assert_eq!(format!("{:?}", Blob::from(&b"a\xFF\xFF\xFF\xFF\xFF"[..])), "[61 FF*5]");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Blob(pub Vec<u8>);

impl Deref for Blob {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Blob {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<[u8]> for Blob {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Blob {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<Vec<u8>> for Blob {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST_RUNS: usize = 24;
        f.write_str("[")?;
        for (n, run) in self.0.chunk_by(|a, b| a == b).enumerate() {
            if n == MOST_RUNS {
                write!(f, " .. {} bytes", self.0.len())?;
                break;
            }
            let separator = if n == 0 { "" } else { " " };
            let byte = run.first().copied().unwrap_or_default();
            match run.len() {
                1 => write!(f, "{separator}{byte:02X}")?,
                length => write!(f, "{separator}{byte:02X}*{length}")?,
            }
        }
        f.write_str("]")
    }
}
