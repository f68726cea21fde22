//! The direct index: what the fields of a record hold, by its id.

use std::fmt;
use std::ops::{Deref, RangeBounds};

use keyloom::key::{Unpack, Unpacker, display, pack_into};
use keyloom::{Entry, Error, KeyBuf, Order, Reader, Result, Subspace};

use super::fields::Held;
use crate::general::inverted_index::bitmap::id_range;
use crate::select::{Select, within};

/// The first byte of an entry: the format.
const FORMAT: u8 = 1;

/// What begins and what ends a nested tuple, of elements that are no nulls.
const TUPLE: u8 = 0x05;
const END: u8 = 0x00;

/// The value of an entry: the names of fields that hold something, each with a tuple of what it holds.
pub(super) fn encode<'f>(fields: impl IntoIterator<Item = (&'f str, &'f Held)>) -> KeyBuf {
    let mut out = KeyBuf::from_slice(&[FORMAT]);
    for (name, held) in fields {
        match held {
            Held::Values(values) => {
                let values = values.packed();
                if !values.is_empty() {
                    pack_into(name, &mut out);
                    out.push(TUPLE);
                    values.iter().for_each(|value| out.extend_from_slice(value));
                    out.push(END);
                }
            }
            Held::Integer(None) => {}
            Held::Integer(Some(integer)) => pack_into(&(name, (integer,)), &mut out),
        }
    }
    out
}

/// What the fields of one record hold, as the direct index has it.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_patterns::Table;
/// use keyloom_patterns::general::inverted_index::{InvertedIndex, one};
/// let index = InvertedIndex::new(&Subspace::new("index"))
///     .field("tags", |_id, tags: &Vec<String>| tags.iter().collect())
///     .field("how many", |_, tags| one(tags.len()));
/// let posts = Table::<u32, Vec<String>>::new(&Subspace::new("posts")).with(&index);
/// let store = Memory::new();
/// store.transact(|txn| posts.put(txn, &7, &vec!["rust".into(), "lmdb".into()]))?;
/// let snapshot = store.snapshot()?;
/// let entry = index.direct(&snapshot, 0)?.expect("the first record has the first id");
/// assert_eq!(entry.values::<&str>("tags")?, ["lmdb", "rust"]);
/// assert_eq!(entry.values::<u64>("how many")?, [2]);
/// assert!(entry.values::<u64>("else")?.is_empty());
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DirectEntry<B> {
    bytes: B,
}

impl<B: Deref<Target = [u8]>> fmt::Debug for DirectEntry<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = display(self.bytes.get(1..).unwrap_or_default()).to_string();
        f.debug_tuple("DirectEntry").field(&shown).finish()
    }
}

impl<B: Deref<Target = [u8]>> DirectEntry<B> {
    pub(super) fn new(bytes: B) -> Result<Self> {
        match bytes.first() {
            Some(&FORMAT) => Ok(Self { bytes }),
            Some(format) if *format > FORMAT => Err(Error::NewerFormat {
                what: "the direct index".into(),
                found: (*format).into(),
                supported: FORMAT.into(),
            }),
            _ => Err(Error::Value {
                codec: "an entry of the direct index",
                action: "decode",
                source: "it does not begin with its format".into(),
            }),
        }
    }

    /// The fields that hold something, in the order of their declaration.
    pub fn fields(&self) -> DirectFields<'_> {
        DirectFields { rest: self.bytes.get(1..).unwrap_or_default() }
    }

    /// What a field holds, packed; nothing where it is absent.
    ///
    /// # Errors
    /// When the bytes are no entry of a direct index.
    pub fn packed(&self, field: &str) -> Result<PackedValues<'_>> {
        for found in self.fields() {
            let (name, values) = found?;
            if name == field {
                return Ok(values);
            }
        }
        Ok(PackedValues { rest: &[] })
    }

    /// What a field holds, in order; nothing where it is absent.
    ///
    /// # Errors
    /// When a value is no `P`, or the bytes are no entry of a direct index.
    pub fn values<'e, P: Unpack<'e>>(&'e self, field: &str) -> Result<Vec<P>> {
        self.packed(field)?
            .map(|value| Ok(P::unpack_element(&mut Unpacker::new(value?))?))
            .collect()
    }
}

/// The fields of a [`DirectEntry`], by name, and what they hold.
#[derive(Clone, Debug)]
pub struct DirectFields<'e> {
    rest: &'e [u8],
}

impl<'e> DirectFields<'e> {
    fn one(&mut self) -> Result<(&'e str, PackedValues<'e>)> {
        let mut input = Unpacker::new(self.rest);
        let name = <&str>::unpack(&mut input)?;
        let before = input.offset();
        input.skip()?;
        let (values, rest) = self.rest.split_at_checked(input.offset()).unwrap_or_default();
        let values = match values.get(before..) {
            Some([TUPLE, values @ .., END]) => values,
            _ => return Err(input.refuse("no values stand behind the name of a field").into()),
        };
        self.rest = rest;
        Ok((name, PackedValues { rest: values }))
    }
}

impl<'e> Iterator for DirectFields<'e> {
    type Item = Result<(&'e str, PackedValues<'e>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let one = self.one();
        if one.is_err() {
            self.rest = &[];
        }
        Some(one)
    }
}

/// The values of a field, each as its packed element: the bytes that stand for it in the keys of the index.
#[derive(Clone, Debug)]
pub struct PackedValues<'e> {
    rest: &'e [u8],
}

impl<'e> Iterator for PackedValues<'e> {
    type Item = Result<&'e [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let mut input = Unpacker::new(self.rest);
        let skipped = input.skip();
        let (value, rest) = self.rest.split_at_checked(input.offset()).unwrap_or_default();
        self.rest = if skipped.is_ok() { rest } else { &[] };
        Some(skipped.map(|()| value).map_err(Error::from))
    }
}

/// Entries of the direct index with their ids: what [`directs`](super::InvertedIndex::directs) returns.
pub struct DirectEntries<I> {
    entries: Option<I>,
    space: Subspace,
}

impl<I> DirectEntries<I> {
    pub(super) fn open<'r, R: Reader<Entries<'r> = I>>(
        space: &Subspace,
        reader: &'r R,
        ids: &impl RangeBounds<u64>,
        order: Order,
    ) -> Result<Self> {
        let entries = match id_range(ids) {
            Some(ids) => Some(reader.range(within(ids).key_range(space), order)?),
            None => None,
        };
        Ok(Self { entries, space: space.clone() })
    }
}

impl<I> fmt::Debug for DirectEntries<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectEntries").field("space", &self.space).finish_non_exhaustive()
    }
}

impl<I, B> Iterator for DirectEntries<I>
where
    I: Iterator<Item = Result<Entry<B>>>,
    B: Deref<Target = [u8]>,
{
    type Item = Result<(u64, DirectEntry<B>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.entries.as_mut()?.next()?;
        Some(entry.and_then(|(key, value)| {
            let read = || Ok((self.space.unpack(&key)?, value));
            let (id, value) = read().map_err(|error: Error| error.at(&key))?;
            Ok((id, DirectEntry::new(value).map_err(|error| error.at(&key))?))
        }))
    }
}
