//! Elements as parts of their documents.

use keyloom::value::Codec;
use keyloom::{DynWriter, Result};
use keyloom_kit::RecordKey;
use keyloom_tables::table::record;

use super::align::align;
use super::{Nested, too_many};
use crate::documents::{Documents, Expected, Part, ReadEntries};

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
        let stored = self.stored_of_each(txn, documents)?;
        let (mut removed, mut changed, mut all) = (Vec::new(), Vec::new(), Vec::new());
        for ((key, document), stored) in documents.iter().zip(&stored) {
            let elements = (self.get)(document);
            let records: Vec<E> =
                elements.iter().map(|element| self.elements.stripped(element)).collect();
            let bytes = records.iter().map(Documents::<(P, u32), E, C>::encoded);
            let bytes = bytes.collect::<Result<Vec<_>>>();
            let bytes =
                bytes.map_err(|error| error.at(&self.elements.table().space().pack(&(key,))))?;
            let ordinals = align(stored, &bytes).ok_or_else(too_many)?;
            let key_of = |ordinal: u32| (P::clone(key), ordinal);
            let is_kept = |ordinal: &u32| ordinals.binary_search(ordinal).is_ok();
            let gone = stored.iter().map(|(ordinal, _)| *ordinal);
            removed.extend(gone.filter(|ordinal| !is_kept(ordinal)).map(key_of));
            let is_stored = |ordinal: u32, bytes: &Vec<u8>| {
                let place = stored.binary_search_by_key(&ordinal, |(ordinal, _)| *ordinal);
                place.ok().and_then(|n| stored.get(n)).is_some_and(|(_, before)| before == bytes)
            };
            for ((record, bytes), ordinal) in records.into_iter().zip(&bytes).zip(&ordinals) {
                if !is_stored(*ordinal, bytes) {
                    changed.push((key_of(*ordinal), record));
                }
            }
            all.extend(ordinals.iter().map(|ordinal| key_of(*ordinal)).zip(elements));
        }
        self.elements.delete_at(txn, &removed, 0)?;
        if !changed.is_empty() {
            self.elements.table().put_many(txn, &changed)?;
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
        for key in keys {
            let stored = self.stored(txn, key)?;
            let elements: Vec<(P, u32)> =
                stored.into_iter().map(|(ordinal, _)| (key.clone(), ordinal)).collect();
            self.elements.delete_at(txn, &elements, depth)?;
        }
        Ok(())
    }

    fn moved(&self, txn: &mut DynWriter<'_>, from: &P, to: &P, depth: usize) -> Result<()> {
        for (ordinal, element) in self.elements(txn, from)? {
            let [from, to] = [from, to].map(|document| (document.clone(), ordinal));
            self.elements.move_at(txn, &from, &to, &element, depth)?;
        }
        Ok(())
    }
}
