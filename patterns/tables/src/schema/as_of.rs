//! The records as of the last update of deferred data.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::ops::Deref;

use keyloom::{Entry, KeyBuf, KeyRange, Order, Reader, Result, Subspace};
use keyloom_kit::{Inconsistency, Rule};

use super::queued::{read_queued, record_key};

/// A reader of a table that returns the old values of queued records, as stored in the queue.
pub(super) struct AsOf<'a, R> {
    reader: &'a R,
    /// The queued records by their keys in the table.
    queued: BTreeMap<KeyBuf, Option<Vec<u8>>>,
}

impl<'a, R: Reader> AsOf<'a, R> {
    /// Reads the whole queue. Also returns the damaged entries of the queue.
    pub(super) fn new(
        reader: &'a R,
        table: &Subspace,
        queue: &Subspace,
    ) -> Result<(Self, Vec<Inconsistency>)> {
        let (mut queued, mut damaged) = (BTreeMap::new(), Vec::new());
        for entry in reader.range(queue.self_and_children(), Order::Ascending)? {
            let (key, value) = entry?;
            match read_queued(&value) {
                Ok(record) => {
                    queued.insert(record_key(queue, table, &key), record.map(<[u8]>::to_vec));
                }
                Err(error) if error.downcast_ref::<super::SchemaError>().is_some() => {
                    damaged.push(Inconsistency::new(KeyBuf::from_slice(&key), Rule::Foreign));
                }
                Err(error) => return Err(error.at(&key)),
            }
        }
        Ok((Self { reader, queued }, damaged))
    }
}

impl<R: Reader> Reader for AsOf<'_, R> {
    type Bytes<'r>
        = Bytes<'r, R::Bytes<'r>>
    where
        Self: 'r;
    type Entries<'r>
        = Entries<'r, R::Entries<'r>>
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        match self.queued.get(key) {
            Some(record) => Ok(record.as_deref().map(Bytes::Queued)),
            None => Ok(self.reader.get(key)?.map(Bytes::Stored)),
        }
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        let queued = range.normalized().map(|bounds| self.queued.range::<[u8], _>(bounds));
        let queued = queued.into_iter().flatten();
        let queued: Box<dyn Iterator<Item = _>> = match order {
            Order::Ascending => Box::new(queued),
            Order::Descending => Box::new(queued.rev()),
        };
        let stored = self.reader.range(range, order)?.peekable();
        Ok(Entries { stored, queued: queued.peekable(), order })
    }

    fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Self::Bytes<'_>>>> {
        let stored = self.reader.get_many(keys)?;
        let found = keys.iter().zip(stored).map(|(key, stored)| {
            let queued = self.queued.get(key.as_ref());
            let queued = queued.map(|record| record.as_deref().map(Bytes::Queued));
            queued.unwrap_or_else(|| stored.map(Bytes::Stored))
        });
        Ok(found.collect())
    }
}

/// Bytes from the store or from a queued record.
pub(super) enum Bytes<'q, B> {
    Stored(B),
    Queued(&'q [u8]),
}

impl<B: Deref<Target = [u8]>> Deref for Bytes<'_, B> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Stored(bytes) => bytes,
            Self::Queued(bytes) => bytes,
        }
    }
}

type QueuedRecord<'q> = (&'q KeyBuf, &'q Option<Vec<u8>>);

/// The entries of a range, in which queued records replace the stored ones.
pub(super) struct Entries<'q, I: Iterator> {
    stored: Peekable<I>,
    queued: Peekable<Box<dyn Iterator<Item = QueuedRecord<'q>> + 'q>>,
    order: Order,
}

impl<'q, I, B> Iterator for Entries<'q, I>
where
    I: Iterator<Item = Result<Entry<B>>>,
    B: Deref<Target = [u8]>,
{
    type Item = Result<Entry<Bytes<'q, B>>>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let which = match (self.stored.peek(), self.queued.peek()) {
                (None, None) => return None,
                (None, Some(_)) => Ordering::Greater,
                (Some(Ok((stored, _))), Some((queued, _))) => match self.order {
                    Order::Ascending => (**stored).cmp(queued),
                    Order::Descending => (***queued).cmp(stored),
                },
                (Some(_), _) => Ordering::Less,
            };
            if which.is_le() {
                let stored = self.stored.next()?;
                if which.is_lt() {
                    let both = |(key, value)| (Bytes::Stored(key), Bytes::Stored(value));
                    return Some(stored.map(both));
                }
            }
            if let (key, Some(record)) = self.queued.next()? {
                return Some(Ok((Bytes::Queued(key), Bytes::Queued(record))));
            }
        }
    }
}
