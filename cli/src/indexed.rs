//! Index entries and their records, read without the types of the program.

use keyloom::key::{Element, List, elements, pack};
use keyloom::{AnyBytes, AnySnapshot, Reader};
use keyloom_tables::index::Found;
use keyloom_tables::parts::AnyParts;

use crate::catalog::Part;
use crate::failure::Result;

/// A key and a value.
pub type Entry<'e> = (&'e [u8], &'e [u8]);

/// An entry of an index, with the record that it leads to.
pub enum Joined<'e, 's> {
    /// The bytes are not an entry.
    NoEntry {
        /// The key of the bytes.
        key: &'e [u8],
    },
    /// There is no such record.
    Dangling {
        /// The key of the entry.
        key: &'e [u8],
        /// The key that the record would have.
        record: Vec<u8>,
    },
    /// The record.
    Record {
        /// The key of the entry.
        key: &'e [u8],
        /// The key of the record.
        record: Vec<u8>,
        /// The record.
        value: AnyBytes<'s>,
    },
}

impl<'e, 's> Joined<'e, 's> {
    /// Joins entries of `index` with the records of `table`, which are read in one round trip.
    pub fn read(
        snapshot: &'s AnySnapshot<'_>,
        index: &Part,
        table: &Part,
        entries: &[Entry<'e>],
    ) -> Result<Vec<Self>> {
        let keys: Vec<Option<Vec<u8>>> =
            entries.iter().map(|entry| record_key(index, table, *entry)).collect();
        let existing: Vec<&[u8]> = keys.iter().flatten().map(Vec::as_slice).collect();
        let mut values = snapshot.get_many(&existing)?.into_iter();
        let joined = entries.iter().zip(keys).map(|((key, _), record)| {
            let Some(record) = record else { return Joined::NoEntry { key } };
            match values.next().flatten() {
                Some(value) => Joined::Record { key, record, value },
                None => Joined::Dangling { key, record },
            }
        });
        Ok(joined.collect())
    }
}

/// The key of the record of an entry, if the entry is one.
pub fn record_key(index: &Part, table: &Part, entry: Entry<'_>) -> Option<Vec<u8>> {
    let found = Found::<_, (), AnyParts, _>::new(&index.space, entry).ok()?;
    let packed = found.packed_record_key();
    let mut one = elements(packed).ok()?.into_iter();
    let key = match (one.next()?, one.next()) {
        // The table has the elements of a composite key; an entry has them as one nested tuple.
        (Element::Tuple(parts), None) => pack(&List(parts.as_slice())).to_vec(),
        (_, None) => packed.to_vec(),
        (_, Some(_)) => return None,
    };
    Some([table.space.prefix(), &key].concat())
}
