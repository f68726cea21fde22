//! Index entries and their records, read without the types of the program.

use keyloom::key::{Element, List, elements, pack};
use keyloom::{AnyBytes, AnySnapshot, Reader, Subspace};
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
    #[cfg_attr(not(feature = "explore"), expect(dead_code, reason = "only the page shows it"))]
    Record {
        /// The key of the record.
        record: Vec<u8>,
        /// The record.
        value: AnyBytes<'s>,
    },
}

impl<'e, 's> Joined<'e, 's> {
    /// Joins entries in the subspace `index` with the records of `table`, which are read in one
    /// round trip.
    pub fn read(
        snapshot: &'s AnySnapshot<'_>,
        index: &Subspace,
        table: &Part,
        entries: &[Entry<'e>],
    ) -> Result<Vec<Self>> {
        let keys: Vec<Vec<Vec<u8>>> =
            entries.iter().map(|entry| record_keys(index, table, *entry)).collect();
        let all: Vec<&[u8]> = keys.iter().flatten().map(Vec::as_slice).collect();
        let mut values = snapshot.get_many(&all)?.into_iter();
        let joined = entries.iter().zip(keys).map(|((key, _), mut keys)| {
            let found: Vec<_> = values.by_ref().take(keys.len()).collect();
            let found = found.into_iter().enumerate().find_map(|(n, value)| Some((n, value?)));
            match found {
                Some((n, value)) => Joined::Record { record: keys.swap_remove(n), value },
                None if keys.is_empty() => Joined::NoEntry { key },
                None => Joined::Dangling { key, record: keys.swap_remove(0) },
            }
        });
        Ok(joined.collect())
    }
}

/// The keys that the record of an entry may have; none if the bytes are not an entry.
///
/// An entry has the key of its record as one element. The table stores a composite key as its
/// elements, one after the other. It stores a key of a single element, such as `Option<(u32,
/// u32)>`, unchanged. So a nested tuple gives two possible keys.
pub fn record_keys(index: &Subspace, table: &Part, entry: Entry<'_>) -> Vec<Vec<u8>> {
    let Ok(found) = Found::<_, (), AnyParts, _>::new(index, entry) else {
        return Vec::new();
    };
    keys_of(table, found.packed_record_key())
}

/// The keys that the record whose key is this packed element may have in the table. Empty if the
/// bytes are not one element.
pub fn keys_of(table: &Part, packed: &[u8]) -> Vec<Vec<u8>> {
    let Ok(parts) = elements(packed) else { return Vec::new() };
    let keys = match &parts[..] {
        [Element::Tuple(parts)] => vec![pack(&List(parts.as_slice())).to_vec(), packed.to_vec()],
        [_] => vec![packed.to_vec()],
        _ => Vec::new(),
    };
    keys.into_iter().map(|key| [table.space.prefix(), &key].concat()).collect()
}
