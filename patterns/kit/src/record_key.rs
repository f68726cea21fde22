//! The keys of records.

use keyloom::key::Packer;
use keyloom::{KeyBuf, Pack, Reader, Result, Unpack};

use crate::parts::Parts;

/// The bound of a record key: it can be packed, and unpacked into an owned value. Every owned
/// tuple, number and string is a record key; a type of your own becomes one with
/// `#[derive(Key)]` of the crate `keyloom-patterns`, or with [`impl_parts!`](crate::impl_parts).
///
/// If it implements [`Borrow`](std::borrow::Borrow) for another type, both must be packed alike, as `str` and `String`
/// are.
pub trait RecordKey: Pack + for<'k> Unpack<'k> + Parts + 'static {}

impl<K: Pack + for<'k> Unpack<'k> + Parts + 'static> RecordKey for K {}

/// A record key as exactly one element: a composite key is a nested tuple after the parts. So the
/// entry of parts `("a",)` and key `("b", "c")` differs from that of parts `("a", "b")` and key
/// `("c",)`.
pub fn pack_one<K: Pack>(key: &K) -> KeyBuf {
    let mut packer = Packer::new();
    key.pack_element(&mut packer);
    packer.finish()
}

/// [`Reader::get_many`], but without keys it costs no round trip.
///
/// # Errors
/// Any error of the store.
pub fn get_many<'r, R: Reader>(
    reader: &'r R,
    keys: &[impl AsRef<[u8]>],
) -> Result<Vec<Option<R::Bytes<'r>>>> {
    if keys.is_empty() { Ok(Vec::new()) } else { reader.get_many(keys) }
}
