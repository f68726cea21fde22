//! Sequences of consecutive numbers.

use std::marker::PhantomData;
use std::ops::Range;

use keyloom::{Error, KeyBuf, Pack, Reader, Result, Subspace, Writer};

/// A sequence of numbers for each container: 1, 2, 3 ...; see the [module](super).
///
/// A number is assigned within a transaction. If the transaction is rolled back, the next
/// transaction gets the same number. So the numbers of committed transactions have no gaps.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::sequence::Sequence;
/// let invoices = Sequence::<u32>::new(&Subspace::new("invoices"));
/// let store = Memory::new();
/// assert_eq!(store.transact(|txn| invoices.next(txn, &2026))?, 1);
/// assert_eq!(store.transact(|txn| invoices.next(txn, &2026))?, 2);
/// assert_eq!(store.transact(|txn| invoices.reserve(txn, &2026, 10))?, 3..13);
/// assert_eq!(invoices.last(&store.snapshot()?, &2026)?, 12);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Debug)]
pub struct Sequence<C> {
    space: Subspace,
    container: PhantomData<fn(C)>,
}

impl<C> Clone for Sequence<C> {
    fn clone(&self) -> Self {
        Self { space: self.space.clone(), container: PhantomData }
    }
}

impl<C: Pack> Sequence<C> {
    /// Sequences in `space`, one per container.
    pub fn new(space: &Subspace) -> Self {
        Self { space: space.clone(), container: PhantomData }
    }

    /// The next number of `container`. Costs one get and one key written.
    ///
    /// # Errors
    /// Any error of the store; [`Error::NotACounter`]; [`Error::At`] with an [`Error::Other`] after
    /// 2^63 - 1 numbers.
    pub fn next(&self, txn: &mut impl Writer, container: &C) -> Result<u64> {
        txn.guarded(|txn| Ok(self.reserve(txn, container, 1)?.start))
    }

    /// The next `count` numbers of `container`, as one range. Costs the same as one number.
    ///
    /// # Errors
    /// The errors of [`next`](Sequence::next).
    pub fn reserve(&self, txn: &mut impl Writer, container: &C, count: u64) -> Result<Range<u64>> {
        txn.guarded(|txn| {
            let key = self.key(container);
            let next = self.peek(txn, container)?;
            let last = next.checked_add(count).map(|end| end - 1).filter(|&last| last <= LAST);
            let last = last.ok_or_else(|| exhausted(&key))?;
            txn.put(&key, &last.to_le_bytes())?;
            Ok(next..last + 1)
        })
    }

    /// The last number assigned, 0 if there is none. Costs one get.
    ///
    /// # Errors
    /// Any error of the store, and [`Error::NotACounter`].
    pub fn last(&self, reader: &impl Reader, container: &C) -> Result<u64> {
        last_of(reader, &self.key(container))
    }

    /// Advances the sequence to at least `number`, so that the next number is greater. Use it for
    /// records that already have numbers. Costs one key written.
    ///
    /// # Errors
    /// Any error of the store; [`Error::InvalidArgument`] for a `number` above 2^63 - 1;
    /// [`Error::NotACounter`].
    pub fn advance_to(&self, txn: &mut impl Writer, container: &C, number: u64) -> Result<()> {
        txn.guarded(|txn| {
            if number > LAST {
                return Err(Error::InvalidArgument {
                    what: "the number of a sequence",
                    value: number.to_string(),
                    why: "the last one is 2^63 - 1",
                });
            }
            txn.max(&self.key(container), number)
        })
    }

    /// The next number, without assigning it.
    pub(super) fn peek(&self, reader: &impl Reader, container: &C) -> Result<u64> {
        match self.last(reader, container)? {
            LAST.. => Err(exhausted(&self.key(container))),
            last => Ok(last + 1),
        }
    }

    pub(super) fn key(&self, container: &C) -> KeyBuf {
        // The container is one element, as in the keys of the records.
        self.space.pack(&(container,))
    }
}

/// The largest number; a counter is signed.
const LAST: u64 = i64::MAX as u64;

#[cold]
fn exhausted(key: &[u8]) -> Error {
    Error::other("the sequence has no more numbers").at(key)
}

fn last_of(reader: &impl Reader, key: &[u8]) -> Result<u64> {
    let last = reader.counter(key)?;
    u64::try_from(last).map_err(|_| Error::other("a sequence is never below 0").at(key))
}
