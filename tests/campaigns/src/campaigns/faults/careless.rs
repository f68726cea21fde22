//! Programs that ignore errors: the controls.

use keyloom::{KeyRange, Limits, Order, Reader, Result, TransactionState, Writer};

/// A transaction whose errors are swallowed: a failed read returns nothing, and a failed write is
/// skipped.
pub struct Careless<'w, W>(pub &'w mut W);

impl<W: Writer> Reader for Careless<'_, W> {
    type Bytes<'r>
        = W::Bytes<'r>
    where
        Self: 'r;
    type Entries<'r>
        = WithoutErrors<W::Entries<'r>>
    where
        Self: 'r;

    fn get(&self, key: &[u8]) -> Result<Option<Self::Bytes<'_>>> {
        Ok(self.0.get(key).unwrap_or_default())
    }

    fn range(&self, range: KeyRange<'_>, order: Order) -> Result<Self::Entries<'_>> {
        Ok(WithoutErrors(self.0.range(range, order).ok()))
    }
}

impl<W: Writer> Writer for Careless<'_, W> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let _ = self.0.put(key, value);
        Ok(())
    }

    fn state(&mut self) -> &mut TransactionState {
        self.0.state()
    }

    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn delete(&mut self, key: &[u8]) -> Result<()> {
        let _ = self.0.delete(key);
        Ok(())
    }

    fn delete_range(&mut self, range: KeyRange<'_>) -> Result<()> {
        let _ = self.0.delete_range(range);
        Ok(())
    }
}

/// The entries up to an error, which is treated as the end.
pub struct WithoutErrors<I>(Option<I>);

impl<E, I: Iterator<Item = Result<E>>> Iterator for WithoutErrors<I> {
    type Item = Result<E>;

    fn next(&mut self) -> Option<Result<E>> {
        self.0.as_mut()?.next().filter(Result::is_ok)
    }
}
