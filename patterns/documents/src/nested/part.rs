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

    fn write(&self, txn: &mut DynWriter<'_>, key: &P, document: &D) -> Result<()> {
        let elements = (self.get)(document);
        let records: Vec<E> =
            elements.iter().map(|element| self.elements.stripped(element)).collect();
        let bytes = records.iter().map(Documents::<(P, u32), E, C>::encoded);
        let bytes = bytes.collect::<Result<Vec<_>>>();
        let bytes =
            bytes.map_err(|error| error.at(&self.elements.table().space().pack(&(key,))))?;
        let stored = self.stored(txn, key)?;
        let ordinals = align(&stored, &bytes).ok_or_else(too_many)?;
        let is_kept = |ordinal: &u32| ordinals.binary_search(ordinal).is_ok();
        let removed = stored.iter().filter(|(ordinal, _)| !is_kept(ordinal));
        let removed: Vec<(P, u32)> = removed.map(|(ordinal, _)| (key.clone(), *ordinal)).collect();
        self.elements.delete_at(txn, &removed, 0)?;
        let is_stored = |ordinal: u32, bytes: &Vec<u8>| {
            let place = stored.binary_search_by_key(&ordinal, |(ordinal, _)| *ordinal);
            place.ok().and_then(|n| stored.get(n)).is_some_and(|(_, before)| before == bytes)
        };
        let changed = records.into_iter().zip(&bytes).zip(&ordinals);
        let changed = changed.filter(|((_, bytes), ordinal)| !is_stored(**ordinal, bytes));
        let changed: Vec<((P, u32), E)> =
            changed.map(|((record, _), ordinal)| ((key.clone(), *ordinal), record)).collect();
        if !changed.is_empty() {
            self.elements.table().put_many(txn, &changed)?;
        }
        if self.elements.parts().is_empty() {
            return Ok(());
        }
        let mut each = ordinals.iter().zip(elements);
        each.try_for_each(|(ordinal, element)| {
            self.elements.write_parts(txn, &(key.clone(), *ordinal), element)
        })
    }

    fn add_expected(&self, all: &mut Vec<Expected>) {
        self.elements.add_expected(all);
    }

    fn read(&self, reader: &dyn ReadEntries, keys: &[P], documents: &mut [D]) -> Result<()> {
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
