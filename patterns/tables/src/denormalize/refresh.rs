//! Refreshes the copies in targets that were read into memory.

use std::collections::HashMap;

use keyloom::value::Codec;
use keyloom::{Error, KeyBuf, Reader, Result, unpack};
use keyloom_kit::{RecordKey, get_many};

use super::DenormalizedFields;
use crate::table::Table;

/// The sources of some targets, by the parts of the index entries of the targets.
type Known<S> = HashMap<KeyBuf, Option<S>>;

impl<SK, S, K, V, CS, C> DenormalizedFields<SK, S, K, V, CS, C>
where
    SK: RecordKey,
    S: 'static,
    K: RecordKey,
    V: Clone + PartialEq + 'static,
    CS: Codec<S>,
    C: Codec<V>,
{
    /// Sets the copies in targets to the current values of their sources, before the targets are
    /// put. Returns for each target whether its copy changed. Costs one get per distinct source, in
    /// one round trip.
    ///
    /// # Errors
    /// Any error of the store; [`Error::At`] for a source that does not decode;
    /// [`Error::InvalidArgument`] if the parts of the index are not the key of a source.
    pub fn fill(&self, reader: &impl Reader, targets: &mut [(K, V)]) -> Result<Vec<bool>> {
        let wanted = self.different_sources(&*targets);
        let sources = self.read_sources(reader, wanted)?;
        self.set_all(targets, &sources)
    }

    /// [`fill`](Self::fill), but only the copies of sources that are not marked.
    pub(super) fn fill_settled(
        &self,
        reader: &impl Reader,
        targets: &mut [(K, V)],
    ) -> Result<Vec<bool>> {
        let pending = self.pending_sources(reader, &*targets)?;
        let mut wanted = self.different_sources(&*targets);
        wanted.retain(|parts| pending.binary_search(parts).is_err());
        let sources = self.read_sources(reader, wanted)?;
        self.set_all(targets, &sources)
    }

    /// Refreshes targets that the caller has read: sets each stale copy to the value of its source.
    /// Returns for each target whether it was stale. Targets without a pending source are fresh,
    /// and no source is read for them.
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store, Subspace};
    /// use keyloom_tables::denormalize::DenormalizedFields;
    /// use keyloom_tables::{Index, Table, entry};
    /// // A city is (the code of its country, the name of its country).
    /// type City = (String, String);
    /// let countries = Table::<String, String>::new(&Subspace::new("countries"));
    /// let by_country = Index::new(&Subspace::new("by_country"), |_, city: &City| entry(&city.0));
    /// let cities = Table::<u32, City>::new(&Subspace::new("cities")).with(&by_country);
    /// let names = DenormalizedFields::new(
    ///     &Subspace::new("names"), &countries, &by_country, &cities,
    ///     |name: &String| name.clone(), |city, _, name| city.1 = name.unwrap_or_default(),
    /// ).inline(1);
    /// let countries = countries.with(&names);
    /// let store = Memory::new();
    /// store.transact(|txn| {
    ///     countries.put(txn, &"TR".into(), &"Turkey".into())?;
    ///     names.put_many(txn, (0..3).map(|id| (id, ("TR".to_owned(), String::new()))))
    /// })?;
    /// // Three cities are more than fit here: they wait.
    /// store.transact(|txn| countries.put(txn, &"TR".into(), &"Türkiye".into()))?;
    /// let snapshot = store.snapshot()?;
    /// let mut read = cities.range(&snapshot, ..)?.collect::<Result<Vec<_>>>()?;
    /// assert_eq!(read[0].1.1, "Turkey");
    /// assert_eq!(names.refresh(&snapshot, &mut read)?, [true, true, true]);
    /// assert_eq!(read[0].1.1, "Türkiye");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`fill`](DenormalizedFields::fill).
    pub fn refresh(&self, reader: &impl Reader, targets: &mut [(K, V)]) -> Result<Vec<bool>> {
        if !self.is_anything_pending(reader)? {
            return Ok(vec![false; targets.len()]);
        }
        let pending = self.pending_sources(reader, &*targets)?;
        let sources = self.read_sources(reader, pending)?;
        self.set_all(targets, &sources)
    }

    /// Whether any source has copies that may be stale. Costs one range, which is empty if there is
    /// no such source.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn is_anything_pending(&self, reader: &impl Reader) -> Result<bool> {
        Ok(reader.first(self.space.self_and_children())?.is_some())
    }

    /// Whether the copies of a source may be stale. Costs one get.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn is_pending(&self, reader: &impl Reader, source: &SK) -> Result<bool> {
        Ok(reader.get(&self.mark(source))?.is_some())
    }

    /// The parts of the index entries of targets, sorted and without duplicates: the packed keys of
    /// their sources.
    fn different_sources<'c>(&self, targets: impl IntoIterator<Item = &'c (K, V)>) -> Vec<KeyBuf>
    where
        K: 'c,
    {
        let parts = targets.into_iter().flat_map(|(key, target)| self.by_source.parts(key, target));
        let mut parts: Vec<KeyBuf> = parts.collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// The sources of `targets` that are marked.
    pub(super) fn pending_sources<'c>(
        &self,
        reader: &impl Reader,
        targets: impl IntoIterator<Item = &'c (K, V)>,
    ) -> Result<Vec<KeyBuf>>
    where
        K: 'c,
    {
        let parts = self.different_sources(targets);
        let marks: Vec<KeyBuf> =
            parts.iter().map(|parts| joined(self.space.prefix(), parts)).collect();
        let there = get_many(reader, &marks)?;
        Ok(parts.into_iter().zip(there).filter_map(|(parts, mark)| mark.map(|_| parts)).collect())
    }

    fn read_sources(&self, reader: &impl Reader, parts: Vec<KeyBuf>) -> Result<Known<S>> {
        let prefix = self.sources.space().prefix();
        let keys: Vec<KeyBuf> = parts.iter().map(|parts| joined(prefix, parts)).collect();
        let sources = Table::<SK, S, CS>::read_many(reader, &keys)?;
        Ok(parts.into_iter().zip(sources).collect())
    }

    /// Sets the copies in `targets` that come from `sources`, and returns for each target whether
    /// it changed.
    fn set_all(&self, targets: &mut [(K, V)], sources: &Known<S>) -> Result<Vec<bool>> {
        let set = |(key, target): &mut (K, V)| {
            let mut filled = target.clone();
            for parts in self.by_source.parts(key, target) {
                if let Some(source) = sources.get(&parts) {
                    (self.functions.copy)(&mut filled, &source_key(&parts)?, source.as_ref());
                }
            }
            let changed = filled != *target;
            *target = filled;
            Ok(changed)
        };
        targets.iter_mut().map(set).collect()
    }
}

fn joined(prefix: &[u8], parts: &[u8]) -> KeyBuf {
    let mut key = KeyBuf::from_slice(prefix);
    key.extend_from_slice(parts);
    key
}

fn source_key<SK: RecordKey>(parts: &KeyBuf) -> Result<SK> {
    unpack(parts).map_err(|_| Error::InvalidArgument {
        what: "the parts of the index by source",
        value: keyloom::key::display(parts).to_string(),
        why: "they are not a key of a source; the index must have that key as its parts, and nothing more",
    })
}
