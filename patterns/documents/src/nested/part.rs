//! The `Part` of documents that maintains their elements.

use keyloom::value::Codec;
use keyloom::{DynWriter, Result};
use keyloom_kit::RecordKey;
use keyloom_tables::table::record;

use super::align::align;
use super::{Nested, Stored, too_many};
use crate::documents::{Documents, Expected, Part, ReadEntries};

/// The records of elements that change with their documents.
struct Changes<P, E> {
    removed: Vec<(P, u32)>,
    written: Vec<((P, u32), E)>,
}

impl<P, E> Default for Changes<P, E> {
    fn default() -> Self {
        Self { removed: Vec::new(), written: Vec::new() }
    }
}

impl<P, D, E, C> Nested<P, D, E, C>
where
    P: RecordKey + Clone,
    E: Clone,
    C: Codec<D> + Codec<E> + 'static,
{
    /// Adds to `changes` the records to write and to remove so that a document has these elements.
    /// Returns the ordinals of the elements.
    fn compare(
        &self,
        key: &P,
        elements: &[E],
        stored: &Stored,
        changes: &mut Changes<P, E>,
    ) -> Result<Vec<u32>> {
        let records: Vec<E> =
            elements.iter().map(|element| self.elements.stripped(element)).collect();
        let bytes = records.iter().map(Documents::<(P, u32), E, C>::encoded);
        let bytes = bytes.collect::<Result<Vec<_>>>();
        let bytes =
            bytes.map_err(|error| error.at(&self.elements.table().space().pack(&(key,))))?;
        let ordinals = align(stored, &bytes).ok_or_else(too_many)?;
        let is_kept = |ordinal: &u32| ordinals.binary_search(ordinal).is_ok();
        let gone = stored.iter().map(|(ordinal, _)| *ordinal);
        changes
            .removed
            .extend(gone.filter(|ordinal| !is_kept(ordinal)).map(|ordinal| (key.clone(), ordinal)));
        for ((record, bytes), ordinal) in records.into_iter().zip(&bytes).zip(&ordinals) {
            let place = stored.binary_search_by_key(ordinal, |(ordinal, _)| *ordinal);
            let before = place.ok().and_then(|n| stored.get(n));
            if before.is_none_or(|(_, before)| before != bytes) {
                changes.written.push(((key.clone(), *ordinal), record));
            }
        }
        Ok(ordinals)
    }
}

impl<P, D, E, C> Part<P, D> for Nested<P, D, E, C>
where
    P: RecordKey + Clone,
    E: Clone,
    C: Codec<D> + Codec<E> + 'static,
{
    fn strip(&self, document: &mut D) {
        (self.get_mut)(document).clear();
    }

    fn write(&self, txn: &mut DynWriter<'_>, documents: &[(&P, &D)]) -> Result<()> {
        let keys: Vec<&P> = documents.iter().map(|(key, _)| *key).collect();
        let (mut changes, mut all) = (Changes::default(), Vec::new());
        let has_parts = !self.elements.parts().is_empty();
        for ((key, document), stored) in documents.iter().zip(&self.stored(txn, &keys)?) {
            let elements = (self.get)(document);
            let ordinals = self.compare(key, elements, stored, &mut changes)?;
            if has_parts {
                let keys = ordinals.into_iter().map(|ordinal| (P::clone(key), ordinal));
                all.extend(keys.zip(elements));
            }
        }
        self.elements.delete_at(txn, &changes.removed, 0)?;
        if !changes.written.is_empty() {
            self.elements.table().put_many(txn, &changes.written)?;
        }
        let all: Vec<(&(P, u32), &E)> = all.iter().map(|(key, element)| (key, *element)).collect();
        self.elements.write_parts(txn, &all)
    }

    fn add_expected(&self, all: &mut Vec<Expected>) {
        self.elements.add_expected(all);
    }

    fn read(&self, reader: &dyn ReadEntries, keys: &[&P], documents: &mut [D]) -> Result<()> {
        let space = self.elements.table().space();
        let ranges: Vec<_> = keys.iter().map(|key| self.range_of(key)).collect();
        let (mut owners, mut keys, mut elements) = (Vec::new(), Vec::new(), Vec::new());
        reader.visit_each(&ranges, &mut |owner, key, value| {
            let (key, element) = record::<_, (P, u32), E, C>(space, (key, value))?;
            owners.push(owner);
            keys.push(key);
            elements.push(element);
            Ok(())
        })?;
        let keys: Vec<&(P, u32)> = keys.iter().collect();
        self.elements.read_parts(reader, &keys, &mut elements)?;
        for (owner, element) in owners.into_iter().zip(elements) {
            if let Some(document) = documents.get_mut(owner) {
                (self.get_mut)(document).push(element);
            }
        }
        Ok(())
    }

    fn removed(&self, txn: &mut DynWriter<'_>, keys: &[P], depth: usize) -> Result<()> {
        let stored = self.stored(txn, &keys.iter().collect::<Vec<_>>())?;
        let ordinals = keys.iter().zip(stored).flat_map(|(key, elements)| {
            elements.into_iter().map(|(ordinal, _)| (key.clone(), ordinal))
        });
        self.elements.delete_at(txn, &ordinals.collect::<Vec<_>>(), depth).map(drop)
    }

    fn moved(&self, txn: &mut DynWriter<'_>, from: &P, to: &P, depth: usize) -> Result<()> {
        for (ordinal, element) in self.elements(txn, from)? {
            let [from, to] = [from, to].map(|document| (document.clone(), ordinal));
            self.elements.move_at(txn, &from, &to, &element, depth)?;
        }
        Ok(())
    }
}
