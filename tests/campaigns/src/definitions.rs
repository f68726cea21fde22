//! The definitions of the schemas that the workloads declare.

use keyloom::{KeyRange, Memory, Order, Reader, Result, Store, Writer};

/// The entries of all schemas, as declared in a store in memory.
///
/// The first transaction in each store of a campaign writes a copy of these entries, so the handles
/// are valid there.
#[derive(Clone)]
pub struct Definitions(Vec<(Vec<u8>, Vec<u8>)>);

impl Definitions {
    /// Copies the definitions of the schemas that were declared in `store`.
    ///
    /// # Errors
    /// Only errors of the memory store, which do not occur here.
    pub fn of(store: &Memory) -> Result<Self> {
        let snapshot = store.snapshot()?;
        let entries = snapshot.range(KeyRange::all(), Order::Ascending)?;
        let entries = entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())));
        entries.collect::<Result<_>>().map(Self)
    }

    /// Each key and its value.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Writes the definitions into a store without them.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn write(&self, txn: &mut impl Writer) -> Result<()> {
        match self.0.first() {
            Some((key, _)) if txn.get(key)?.is_none() => {
                self.iter().try_for_each(|(key, value)| txn.put(key, value))
            }
            _ => Ok(()),
        }
    }

    /// The keys that are missing in a store, or have another value there.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn differences(&self, reader: &impl Reader) -> Result<Vec<String>> {
        let mut different = Vec::new();
        for (key, wanted) in self.iter() {
            if reader.get(key)?.as_deref() != Some(wanted) {
                different.push(keyloom::key::display(key).to_string());
            }
        }
        Ok(different)
    }
}
