//! Writing that is proven by reading: bytes are kept only if they are read as the value they stand
//! for.
//!
//! A codec sees the calls of a type's `Serialize`, not what its `Deserialize` will ask for, and the
//! two disagree more often than it seems: an attribute that skips a field, a type that describes
//! itself in a format that does not, a float that the format has no word for. No rule about types
//! finds all of them, and most depend on the value. So every value is read back once, and
//! serialized once more: what was read must have the [fingerprint](super::fingerprint) of what was
//! written. To compare the bytes instead would refuse a `HashMap`, whose order changes, and let
//! pass the very records whose bytes were misread.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failed;
use super::fingerprint::{SkippedField, see};
use crate::{BoxedError, Result};

/// A format of serde's, as its crate writes and reads it.
pub(super) trait Format {
    const NAME: &'static str;
    const IS_HUMAN_READABLE: bool;
    const IS_BY_POSITION: bool;
    /// What the format cannot express, and what can.
    const REMEDY: &'static str;

    /// Appends a value, or a part of it and fails.
    fn write<V: Serialize>(value: &V, out: &mut Vec<u8>) -> Result<(), BoxedError>;

    /// The value that `bytes` hold, all of them.
    fn read<V: DeserializeOwned>(bytes: &[u8]) -> Result<V, BoxedError>;
}

/// Appends `value` if it is read back as itself, and nothing if not.
pub(super) fn write<F: Format, V: Serialize + DeserializeOwned>(
    value: &V,
    out: &mut Vec<u8>,
) -> Result<()> {
    let before = out.len();
    let written = F::write(value, out)
        .and_then(|()| prove::<F, V>(value, out.get(before..).unwrap_or_default()));
    written.map_err(|error| {
        out.truncate(before);
        failed(F::NAME, "encode")(error)
    })
}

fn prove<F: Format, V: Serialize + DeserializeOwned>(
    value: &V,
    bytes: &[u8],
) -> Result<(), BoxedError> {
    let written = see(value, F::IS_HUMAN_READABLE)?;
    let why = match F::read::<V>(bytes) {
        Ok(read) if see(&read, F::IS_HUMAN_READABLE)?.fingerprint == written.fingerprint => {
            return Ok(());
        }
        Ok(_) => None,
        Err(error) => Some(error),
    };
    Err(match (written.skipped.filter(|_| F::IS_BY_POSITION), why) {
        (Some(skipped), _) => Mismatch::skipped(skipped, F::REMEDY).into(),
        (None, None) => Mismatch::Altered { remedy: F::REMEDY }.into(),
        (None, Some(source)) => Mismatch::Unreadable { source, remedy: F::REMEDY }.into(),
    })
}

#[derive(Debug, thiserror::Error)]
enum Mismatch {
    #[error("`skip_serializing_if` leaves out the field `{field}` of `{of}`; {remedy}")]
    Skipped { of: &'static str, field: &'static str, remedy: &'static str },
    #[error("its bytes decode to another value; {remedy}")]
    Altered { remedy: &'static str },
    #[error("its bytes do not decode: {source}; {remedy}")]
    Unreadable { source: BoxedError, remedy: &'static str },
}

impl Mismatch {
    fn skipped(SkippedField { of, field }: SkippedField, remedy: &'static str) -> Self {
        Self::Skipped { of, field, remedy }
    }
}
