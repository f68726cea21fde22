//! The columns of the forward index: changes and walks.

use std::collections::BTreeMap;
use std::ops::{Deref, RangeInclusive};

use keyloom::{Entry, Error, KeyBuf, Order, Reader, Result, Subspace};
use keyloom_kit::derived::SortedWrites;
use keyloom_kit::within;

use super::fields::Held;
use crate::column::{Integers, Values, block_of};

/// New values of ids in the columns of any fields.
///
/// Each column is read once. If it changes, it is written once.
#[derive(Debug, Default)]
pub(super) struct ColumnChanges<'h>(BTreeMap<KeyBuf, OfColumn<'h>>);

/// New values of ids of one block, by place.
#[derive(Clone, Debug)]
pub(super) enum OfColumn<'h> {
    Values(Vec<(u16, &'h [KeyBuf])>),
    Integers(Vec<(u16, Option<i64>)>),
}

impl<'h> OfColumn<'h> {
    /// Sets the values of the id at a place. Each place may occur at most once.
    pub(super) fn push(&mut self, place: u16, held: &'h Held) {
        match (self, held) {
            (Self::Values(changes), Held::Values(values)) => changes.push((place, &values[..])),
            (Self::Integers(changes), Held::Integer(integer)) => changes.push((place, *integer)),
            _ => {}
        }
    }

    /// Removes the values of the id at a place.
    pub(super) fn clear(&mut self, place: u16) {
        match self {
            Self::Values(changes) => changes.push((place, &[])),
            Self::Integers(changes) => changes.push((place, None)),
        }
    }

    /// Returns the new bytes of the column; empty if the column is to be deleted.
    ///
    /// # Errors
    /// [`Error::Value`] or [`Error::NewerFormat`] if the stored bytes are not a column of this
    /// kind. The caller adds the key.
    pub(super) fn make(&mut self, stored: Option<&[u8]>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self {
            Self::Values(changes) => {
                changes.sort_by_key(|(place, _)| *place);
                Values::rewrite(stored.map(Values::parse).transpose()?, changes, &mut bytes)?;
            }
            Self::Integers(changes) => {
                changes.sort_by_key(|(place, _)| *place);
                Integers::rewrite(stored.map(Integers::parse).transpose()?, changes, &mut bytes);
            }
        }
        Ok(bytes)
    }
}

impl<'h> ColumnChanges<'h> {
    /// Sets the values of an id in a column of a field, or removes them if `is_there` is false. Set
    /// each id of a field at most once.
    pub(super) fn set(&mut self, space: &Subspace, id: u64, held: &'h Held, is_there: bool) {
        let (block, place) = block_of(id);
        let column = self.0.entry(space.pack(&block)).or_insert_with(|| held.kind().no_changes());
        match is_there {
            true => column.push(place, held),
            false => column.clear(place),
        }
    }

    /// The keys of the changed columns, in order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &KeyBuf> {
        self.0.keys()
    }

    /// Collects the writes; `stored` are the values at the [keys](ColumnChanges::keys). `check`
    /// receives the key and the length of each new column, and may refuse it.
    pub(super) fn apply<B: Deref<Target = [u8]>>(
        self,
        stored: impl IntoIterator<Item = Option<B>>,
        writes: &mut SortedWrites,
        check: impl Fn(&[u8], usize) -> Result<()>,
    ) -> Result<()> {
        for ((key, mut changes), stored) in self.0.into_iter().zip(stored) {
            let made = changes.make(stored.as_deref()).map_err(|error| error.at(&key))?;
            check(&key, made.len())?;
            match (made.is_empty(), stored) {
                (true, None) => {}
                (true, Some(_)) => writes.delete(&key)?,
                (false, Some(stored)) if stored[..] == made => {}
                (false, _) => writes.put(&key, &made)?,
            }
        }
        Ok(())
    }
}

/// A walk over the columns of a field; it skips the columns before the requested block.
pub(crate) struct ColumnWalk<I, B> {
    entries: I,
    space: Subspace,
    order: Order,
    /// The current column; `None` before the first and after the last.
    at: Option<(u64, B)>,
    has_begun: bool,
}

impl<I, B> ColumnWalk<I, B>
where
    I: Iterator<Item = Result<Entry<B>>>,
    B: Deref<Target = [u8]>,
{
    /// Opens a walk over the columns of a range of ids.
    pub(crate) fn open<'r, R>(
        reader: &'r R,
        space: &Subspace,
        ids: &RangeInclusive<u64>,
        order: Order,
    ) -> Result<Self>
    where
        R: Reader<Entries<'r> = I, Bytes<'r> = B>,
    {
        let blocks = block_of(*ids.start()).0..=block_of(*ids.end()).0;
        let entries = reader.range(within(blocks).key_range(space), order)?;
        Ok(Self { entries, space: space.clone(), order, at: None, has_begun: false })
    }

    /// The column of a block, if there is one. Blocks must be requested in the order of the walk.
    pub(crate) fn column(&mut self, block: u64) -> Result<Option<&B>> {
        while !self.has_begun || self.at.as_ref().is_some_and(|(at, _)| self.is_before(*at, block))
        {
            self.has_begun = true;
            self.at = None;
            if let Some((key, bytes)) = self.entries.next().transpose()? {
                self.at = Some((block_at(&self.space, &key)?, bytes));
            }
        }
        Ok(self.at.as_ref().filter(|(at, _)| *at == block).map(|(_, bytes)| bytes))
    }

    /// Adds the key of a block's column to an error.
    pub(crate) fn at(&self, block: u64, error: Error) -> Error {
        error.at(&self.space.pack(&block))
    }

    fn is_before(&self, at: u64, block: u64) -> bool {
        match self.order {
            Order::Ascending => at < block,
            Order::Descending => at > block,
        }
    }
}

/// The block in the key of a column.
pub(crate) fn block_at(space: &Subspace, key: &[u8]) -> Result<u64> {
    space.unpack::<u64>(key).map_err(|error| Error::from(error).at(key))
}
