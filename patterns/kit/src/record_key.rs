//! The keys of records.

use keyloom::key::Packer;
use keyloom::{KeyBuf, Pack, Reader, Result, Unpack};

use crate::parts::Parts;

/// The trait bound of record keys: types that can be packed, and unpacked into an owned value.
/// Every owned tuple, number and string is a record key. To make your own type a record key, use
/// `#[derive(Key)]` of the crate `keyloom-patterns`, or [`impl_parts!`](crate::impl_parts).
///
/// If a record key implements [`Borrow`](std::borrow::Borrow) for another type, both must have the
/// same packed form, as `str` and `String` do.
pub trait RecordKey: Pack + for<'k> Unpack<'k> + Parts + 'static {}

impl<K: Pack + for<'k> Unpack<'k> + Parts + 'static> RecordKey for K {}

/// Packs a record key as exactly one element. In an entry, a composite key is a nested tuple after
/// the parts. So the entry of parts `("a",)` and key `("b", "c")` differs from the entry of parts
/// `("a", "b")` and key `("c",)`.
pub fn pack_one<K: Pack>(key: &K) -> KeyBuf {
    let mut packer = Packer::new();
    key.pack_element(&mut packer);
    packer.finish()
}

/// Like [`Reader::get_many`], but costs no round trip if `keys` is empty.
///
/// # Errors
/// Any error of the store.
pub fn get_many<'r, R: Reader>(
    reader: &'r R,
    keys: &[impl AsRef<[u8]>],
) -> Result<Vec<Option<R::Bytes<'r>>>> {
    if keys.is_empty() { Ok(Vec::new()) } else { reader.get_many(keys) }
}
