//! The list of updates of an item, and the value of the item.

use std::ops::Deref;

use keyloom::key::display_named;
use keyloom::{Entry, Error, KeyBuf, KeyRange, Order, Reader, Result, pack, unpack};
use keyloom_kit::RecordKey;

use super::stamps::Stamp;
use super::{FORMAT, PropertyIndex, bucket, key_of};

/// The progress of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Intended = 0,
    Written = 1,
}

/// An update on the list of its item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Update {
    pub(super) stamp: Stamp,
    pub(super) state: State,
    pub(super) level: u8,
    /// The value as one packed element, `None` if it was removed.
    pub(super) value: Option<KeyBuf>,
}

impl Update {
    pub(super) fn bytes(&self, state: State) -> Vec<u8> {
        let head = [FORMAT << 4 | state as u8, self.level];
        [&head, self.value.as_deref().unwrap_or_default()].concat()
    }
}

/// The packed container and item, which the keys of updates and entries contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    container: KeyBuf,
    item: KeyBuf,
}

impl Place {
    pub(super) fn of_packed(container: KeyBuf, item: KeyBuf) -> Self {
        Self { container, item }
    }

    pub(super) fn container(&self) -> &[u8] {
        &self.container
    }

    pub(super) fn item(&self) -> &[u8] {
        &self.item
    }
}

impl<C: RecordKey, I: RecordKey, V: RecordKey> PropertyIndex<C, I, V> {
    pub(super) fn place(container: &C, item: &I) -> Place {
        Place { container: pack(&(container,)), item: pack(&(item,)) }
    }

    pub(super) fn update_key(&self, place: &Place, stamp: Stamp) -> KeyBuf {
        let stamp = pack(&(stamp.time_us, stamp.writer));
        key_of(&self.updates, &[&place.container, &place.item, &stamp])
    }

    /// The key of an update's entry; `None` if the update removes the value.
    pub(super) fn entry_key(&self, place: &Place, update: &Update) -> Option<KeyBuf> {
        let value = update.value.as_deref()?;
        let row = pack(&(update.level, bucket(&place.item, update.level)));
        let stamp = pack(&(update.stamp.time_us, update.stamp.writer));
        Some(key_of(&self.entries, &[&place.container, &row, value, &place.item, &stamp]))
    }

    /// The updates on the list, newest first.
    pub(super) fn list(&self, reader: &impl Reader, place: &Place) -> Result<Vec<Update>> {
        let prefix = key_of(&self.updates, &[&place.container, &place.item]);
        let entries = reader.range(KeyRange::children(&prefix), Order::Descending)?;
        entries.map(|entry| update(&prefix, entry?)).collect()
    }

    /// The newest written update.
    ///
    /// While an update is in progress, the list may change during the read. The reader may visit
    /// the new update before it is marked as written, and reach the old update after its removal.
    /// If two consecutive reads return the same list, the list existed at one point in time.
    pub(super) fn current(&self, reader: &impl Reader, place: &Place) -> Result<Option<Update>> {
        let prefix = key_of(&self.updates, &[&place.container, &place.item]);
        let newest = reader.last(KeyRange::children(&prefix))?;
        let newest = newest.map(|entry| update(&prefix, entry)).transpose()?;
        match newest {
            None => return Ok(None),
            Some(update) if update.state == State::Written => return Ok(Some(update)),
            Some(_) => {}
        }
        let mut before = self.list(reader, place)?;
        loop {
            let list = self.list(reader, place)?;
            if list == before {
                return Ok(list.into_iter().find(|update| update.state == State::Written));
            }
            before = list;
        }
    }
}

/// Decodes an update. Its key is `prefix` followed by the stamp.
pub(super) fn update<B: Deref<Target = [u8]>>(
    prefix: &[u8],
    (key, value): Entry<B>,
) -> Result<Update> {
    let stamp = key.strip_prefix(prefix).map(unpack::<(u64, u64)>);
    let (Some(Ok((time_us, writer))), [head, level, value @ ..]) = (stamp, &*value) else {
        return Err(Error::other(NoUpdate).at(&key));
    };
    let state = match (head >> 4, head & 0x0F) {
        (FORMAT, 0) => State::Intended,
        (FORMAT, 1) => State::Written,
        (format, _) if format > FORMAT => return Err(newer(&key, format)),
        _ => return Err(Error::other(NoUpdate).at(&key)),
    };
    let value = (!value.is_empty()).then(|| KeyBuf::from_slice(value));
    Ok(Update { stamp: Stamp { time_us, writer }, state, level: *level, value })
}

#[cold]
fn newer(key: &[u8], format: u8) -> Error {
    Error::NewerFormat {
        what: format!("the key {}", display_named(key)),
        found: format.into(),
        supported: FORMAT.into(),
    }
}

#[derive(Debug, thiserror::Error)]
#[error("this is not an update of an item; is another kind of data in the subspace of the index?")]
struct NoUpdate;
