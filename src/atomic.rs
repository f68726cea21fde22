//! Atomic operations, which a store may execute without a read of the old value.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::backend::shown_key;
use crate::key::Versionstamp;
use crate::{Error, KeyRange, Reader, Result, Writer, check_key, check_value};

/// An atomic operation on the value of a key, which a store may execute without a read of the old
/// value; see [`Writer::apply`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtomicOp<'v> {
    /// See [`Writer::add`].
    Add(i64),
    /// See [`Writer::min`].
    Min(u64),
    /// See [`Writer::max`].
    Max(u64),
    /// See [`Writer::append_if_fits`].
    AppendIfFits(Cow<'v, [u8]>),
    /// See [`Writer::compare_and_clear`].
    CompareAndClear(Cow<'v, [u8]>),
}

/// A key that the store completes when the transaction commits; see [`Writer::put_versionstamped`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionstampedKey<'k> {
    /// The bytes before the stamp. The last of these bytes is the [type
    /// code](Versionstamp::TYPE_CODE) of versionstamps.
    pub prefix: &'k [u8],
    /// The bytes of the key after the stamp.
    pub suffix: &'k [u8],
    /// The key of a counter. A store that does not assign versions to commits takes the stamps of
    /// this prefix from the counter. The key must have no other use.
    pub clock: &'k [u8],
}

impl VersionstampedKey<'_> {
    /// The complete key with this stamp.
    ///
    /// ```
    /// use keyloom::VersionstampedKey;
    /// use keyloom::key::Versionstamp;
    /// let key = VersionstampedKey { prefix: b"log\x33", suffix: b"", clock: b"clock" };
    /// let stamped = key.with(Versionstamp::new([7; 10], 1));
    /// assert_eq!(stamped, [&b"log\x33"[..], &[7; 10], &[0, 1]].concat());
    /// ```
    pub fn with(&self, stamp: Versionstamp) -> Vec<u8> {
        [self.prefix, &stamp.0, self.suffix].concat()
    }

    /// The length of the key with its stamp.
    ///
    /// ```
    /// use keyloom::VersionstampedKey;
    /// let key = VersionstampedKey { prefix: b"log\x33", suffix: b"", clock: b"clock" };
    /// assert_eq!(key.bytes(), 4 + 12);
    /// ```
    pub fn bytes(&self) -> usize {
        self.prefix.len() + size_of::<Versionstamp>() + self.suffix.len()
    }
}

/// The effect of an operation on a value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    Put(SmallVec<[u8; 8]>),
    Clear,
    Keep,
}

impl AtomicOp<'_> {
    /// The operand as bytes: a number in the encoding of a counter, or the bytes themselves.
    ///
    /// ```
    /// use keyloom::AtomicOp;
    /// assert_eq!(&AtomicOp::Add(-2).operand()[..], (-2_i64).to_le_bytes());
    /// ```
    pub fn operand(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Add(delta) => delta.to_le_bytes().to_vec().into(),
            Self::Min(bound) | Self::Max(bound) => bound.to_le_bytes().to_vec().into(),
            Self::AppendIfFits(bytes) | Self::CompareAndClear(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// The length of the [operand](AtomicOp::operand).
    ///
    /// ```
    /// use keyloom::AtomicOp;
    /// assert_eq!(AtomicOp::Add(1).bytes(), 8);
    /// ```
    pub fn bytes(&self) -> usize {
        match self {
            Self::Add(_) | Self::Min(_) | Self::Max(_) => size_of::<i64>(),
            Self::AppendIfFits(bytes) | Self::CompareAndClear(bytes) => bytes.len(),
        }
    }

    pub(crate) fn into_owned(self) -> AtomicOp<'static> {
        match self {
            Self::Add(delta) => AtomicOp::Add(delta),
            Self::Min(bound) => AtomicOp::Min(bound),
            Self::Max(bound) => AtomicOp::Max(bound),
            Self::AppendIfFits(tail) => AtomicOp::AppendIfFits(tail.into_owned().into()),
            Self::CompareAndClear(value) => AtomicOp::CompareAndClear(value.into_owned().into()),
        }
    }

    /// Checks that a store with values of up to `max_value_bytes` can execute the operation on
    /// `key`. A backend that executes operations itself calls this first.
    ///
    /// # Errors
    /// [`Error::EmptyKey`], [`Error::KeyTooLong`], [`Error::ValueTooLong`].
    pub fn check(&self, key: &[u8], max_value_bytes: usize) -> Result<()> {
        check_key(key)?;
        match self {
            Self::AppendIfFits(tail) => check_value(key, tail, max_value_bytes),
            _ => Ok(()),
        }
    }

    /// The effect on the value of `key` if the current value is `old`.
    pub(crate) fn apply(
        &self,
        key: &[u8],
        old: Option<&[u8]>,
        max_value_bytes: usize,
    ) -> Result<Applied> {
        let counter = || old.map(|value| decode_counter(key, value)).transpose();
        let put = |number: i64| Applied::Put(SmallVec::from_slice(&number.to_le_bytes()));
        let unsigned = |number: u64| put(number.cast_signed());
        Ok(match self {
            Self::Add(delta) => put(counter()?.unwrap_or(0).wrapping_add(*delta)),
            Self::Min(bound) => {
                unsigned(counter()?.map_or(*bound, |old| old.cast_unsigned().min(*bound)))
            }
            Self::Max(bound) => {
                unsigned(counter()?.map_or(*bound, |old| old.cast_unsigned().max(*bound)))
            }
            Self::AppendIfFits(tail) => {
                let old = old.unwrap_or_default();
                match old.len() + tail.len() <= max_value_bytes {
                    true => Applied::Put([old, tail].concat().into()),
                    false => Applied::Keep,
                }
            }
            Self::CompareAndClear(value) if old == Some(value) => Applied::Clear,
            Self::CompareAndClear(_) => Applied::Keep,
        })
    }
}

/// Executes `operation` by reading the old value and writing the new one. This is the default of
/// [`Writer::apply`].
///
/// # Errors
/// [`Error::NotACounter`], and the errors of [`Reader::get`] and [`Writer::put`].
pub fn apply_by_reading<W: Writer + ?Sized>(
    txn: &mut W,
    key: &[u8],
    operation: &AtomicOp<'_>,
) -> Result<()> {
    let most = txn.limits().max_value_bytes;
    operation.check(key, most)?;
    let applied = operation.apply(key, txn.get(key)?.as_deref(), most)?;
    match applied {
        Applied::Put(value) => txn.put(key, &value),
        Applied::Clear => txn.delete(key),
        Applied::Keep => Ok(()),
    }
}

/// Takes the next number of the counter at `clock` as a versionstamp, and puts `value` under the
/// stamped key. An absent counter begins after the last stored stamp, because the entries may come
/// from a store that assigns versions to commits. This is what [`Writer::put_versionstamped`] does
/// by default.
///
/// # Errors
/// [`Error::NotACounter`] if the value at `clock` is not a counter; and the errors of
/// [`Reader::get`], [`Reader::last`] and [`Writer::put`].
pub fn stamp_by_counting<W: Writer + ?Sized>(
    txn: &mut W,
    key: &VersionstampedKey<'_>,
    value: &[u8],
) -> Result<()> {
    let last = match txn.get(key.clock)? {
        Some(count) => decode_counter(key.clock, &count)?,
        None => last_stamp(txn, key.prefix)?,
    };
    let now = last.wrapping_add(1);
    // The entry is put before the clock changes, so that a refused key changes nothing.
    txn.put(&key.with(Versionstamp::of_a_counter(now)), value)?;
    txn.put(key.clock, &now.to_le_bytes())
}

/// The number in the last stamp after `prefix`, or 0 if there is no stamp.
fn last_stamp<R: Reader + ?Sized>(reader: &R, prefix: &[u8]) -> Result<i64> {
    let last = reader.last(KeyRange::prefix(prefix))?;
    let stamp = last.as_ref().and_then(|(key, _)| key.get(prefix.len()..)?.first_chunk());
    Ok(stamp.map_or(0, |stamp| i64::from_be_bytes(*stamp)))
}

/// Decodes `value` as the number of a counter.
pub(crate) fn decode_counter(key: &[u8], value: &[u8]) -> Result<i64> {
    match value.try_into() {
        Ok(bytes) => Ok(i64::from_le_bytes(bytes)),
        Err(_) => Err(Error::NotACounter { key: shown_key(key), bytes: value.len() }),
    }
}
