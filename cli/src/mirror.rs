//! Entries whose keys have the elements of a record's key in the opposite order.

use keyloom::Subspace;
use keyloom::key::{List, elements, pack};

use crate::catalog::{Catalog, Part};
use crate::indexed::Entry;

/// The first byte of an entry's value. In incoming edges, the value of the edge follows.
const FORMAT: u8 = 1;

/// Derived data with such entries, and its table.
#[derive(Clone, Copy, Debug)]
pub struct Mirror<'c> {
    /// The derived data.
    pub part: &'c Part,
    /// The table of edges, or of links.
    pub table: &'c Part,
    has_values: bool,
    elements: usize,
}

impl<'c> Mirror<'c> {
    /// The mirror of a part. `None` if the part is neither incoming edges nor reversed links.
    pub fn of(catalog: &'c Catalog, part: &'c Part) -> Option<Self> {
        let (has_values, elements) = match part.kind.as_str() {
            "incoming edges" => (true, 3),
            "reversed pairs" => (false, 2),
            _ => return None,
        };
        Some(Self { part, table: catalog.table_of(part)?, has_values, elements })
    }

    /// The entry of a record. `None` if the record's key is not that of an edge or a link.
    pub fn entry_of(&self, (key, value): Entry<'_>) -> Option<(Vec<u8>, Vec<u8>)> {
        let own = if self.has_values { value } else { &[] };
        Some((self.turned(&self.table.space, key, &self.part.space)?, [&[FORMAT], own].concat()))
    }

    /// The key of the record of an entry. `None` if the key is not that of an entry.
    pub fn record_of(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.turned(&self.part.space, key, &self.table.space)
    }

    fn turned(&self, from: &Subspace, key: &[u8], to: &Subspace) -> Option<Vec<u8>> {
        let mut all = elements(key.strip_prefix(from.prefix())?).ok()?;
        all.reverse();
        let key = || [to.prefix(), &pack(&List(&all[..]))].concat();
        (all.len() == self.elements).then(key)
    }
}
