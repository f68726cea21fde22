//! The incoming edges: derived entries of the table of edges, ordered by target.

use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{DynWriter, Error, Reader, Result, Store, Subspace};
use keyloom_kit::derived::{
    AS_ENTRIES, Attach, Derived, DerivedEntries, DerivedEntry, RecordChange, SortedWrites,
};
use keyloom_kit::{Inconsistency, Progress, RepairOptions};
use keyloom_tables::{Maintained, Table, derived};

use crate::{EdgeKey, VertexId};

/// The first byte of the value of an entry; the encoded properties follow.
pub(crate) const FORMAT: u8 = 1;

/// The mirror of the table of edges: `(target, label, source)`.
pub(crate) struct Incoming<I, E, C> {
    pub(crate) space: Subspace,
    pub(crate) directed: bool,
    types: PhantomData<fn() -> (I, E, C)>,
}

impl<I, E, C> Incoming<I, E, C> {
    pub(crate) fn new(space: &Subspace, directed: bool) -> Self {
        Self { space: space.clone(), directed, types: PhantomData }
    }
}

impl<I, E, C> Clone for Incoming<I, E, C> {
    fn clone(&self) -> Self {
        Self::new(&self.space, self.directed)
    }
}

impl<I, E, C> fmt::Debug for Incoming<I, E, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming").field("space", &self.space).finish_non_exhaustive()
    }
}

impl<I: VertexId, E, C: Codec<E>> DerivedEntries<EdgeKey<I>, E> for Incoming<I, E, C> {
    fn space(&self) -> &Subspace {
        &self.space
    }

    fn entries(&self, (source, label, target): &EdgeKey<I>, edge: &E) -> Vec<DerivedEntry> {
        let mut value = vec![FORMAT];
        // The table encodes an edge first, and refuses the edge if this fails. So an error here can
        // be ignored.
        match C::encode(edge, &mut value) {
            Ok(()) => vec![(self.space.pack(&(target, label, source)), value.as_slice().into())],
            Err(_) => Vec::new(),
        }
    }

    /// A change of an edge does not change the key of its mirror entry, so only values are
    /// compared.
    fn maintain(
        &self,
        _: &mut DynWriter<'_>,
        changes: &[RecordChange<'_, EdgeKey<I>, E>],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for RecordChange { key: (source, label, target), old, new, .. } in changes {
            let key = self.space.pack(&(target, label, source));
            for (edge, value) in [(old, &mut before), (new, &mut after)] {
                value.clear();
                if let Some(edge) = edge {
                    value.push(FORMAT);
                    C::encode(edge, value)?;
                }
            }
            match new {
                Some(_) if before == after => {}
                Some(_) => writes.put(&key, &after)?,
                None => writes.delete(&key)?,
            }
        }
        Ok(())
    }

    fn record_key(&self, key: &[u8], value: &[u8]) -> Result<EdgeKey<I>> {
        match value {
            [FORMAT, ..] => {
                let (target, label, source) = self.space.unpack(key)?;
                Ok((source, label, target))
            }
            _ => Err(Error::other(NotAnEdge)),
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "it is not a mirrored edge: it is damaged, or another kind of data is in the subspace; repair \
     the graph"
)]
pub(crate) struct NotAnEdge;

/// The properties in the value of an edge. In the mirror, the format comes first.
pub(crate) fn decode_properties<E>(
    is_mirror: bool,
    value: &[u8],
    decode: impl FnOnce(&[u8]) -> Result<E>,
) -> Result<E> {
    match (is_mirror, value) {
        (false, bytes) | (true, [FORMAT, bytes @ ..]) => decode(bytes),
        (true, _) => Err(Error::other(NotAnEdge)),
    }
}

impl<I: VertexId, E: 'static, C: Codec<E> + 'static> Maintained for Incoming<I, E, C> {
    type Key = EdgeKey<I>;
    type Value = E;

    fn kind(&self) -> &'static str {
        "incoming edges"
    }

    fn options(&self) -> String {
        if self.directed { "directed".into() } else { "undirected".into() }
    }

    fn can_be_deferred(&self) -> bool {
        false
    }

    fn space(&self) -> &Subspace {
        &self.space
    }

    fn derived(&self) -> Arc<dyn Derived<EdgeKey<I>, E>> {
        Attach::<_, _, AS_ENTRIES>::attached(self)
    }

    fn check<D: Codec<E>>(
        &self,
        reader: &impl Reader,
        edges: &Table<EdgeKey<I>, E, D>,
    ) -> Result<Vec<Inconsistency>> {
        let mut found = Vec::new();
        derived::check(self, edges, reader, |fault| found.push(fault))?;
        Ok(found)
    }

    fn check_in_parallel<S: Store, D: Codec<E>>(
        &self,
        store: &S,
        edges: &Table<EdgeKey<I>, E, D>,
        threads: usize,
        guard: impl Fn(&S::Snapshot<'_>) -> Result<()> + Sync,
    ) -> Result<Vec<Inconsistency>> {
        derived::check_in_parallel(self, edges, store, threads, guard)
    }

    fn repair_with<S: Store, D: Codec<E>>(
        &self,
        store: &S,
        edges: &Table<EdgeKey<I>, E, D>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        derived::repair(self, edges, store, options, progress)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use keyloom::value::Postcard;
    use keyloom::{AnyStore, BoxedError, Order};
    use keyloom_tables::conformance::{Subject, With, check_maintained};

    use super::*;

    struct Edges;

    impl Subject for Edges {
        type Key = EdgeKey<u32>;
        type Value = u32;
        type Kind = Incoming<u32, u32, Postcard>;
        type Answers = Vec<(EdgeKey<u32>, u32)>;

        fn make(&self, space: &Subspace) -> Result<Self::Kind> {
            Ok(Incoming::new(space, true))
        }

        fn record(&self, n: u32, version: u32) -> (EdgeKey<u32>, u32) {
            ((n % 5, if n.is_multiple_of(2) { "a" } else { "a\0" }.to_owned(), n), version / 2)
        }

        fn answers(&self, incoming: &Self::Kind, reader: &impl Reader) -> Result<Self::Answers> {
            let all = reader.range(incoming.space.self_and_children(), Order::Ascending)?;
            let edges = all.map(|entry| {
                let (key, value) = entry?;
                let (target, label, source) = incoming.space.unpack(&key)?;
                let edge = <Postcard as Codec<u32>>::decode(value.get(1..).unwrap_or_default())?;
                Ok(((target, label, source), edge))
            });
            edges.collect()
        }

        fn model(&self, edges: &BTreeMap<EdgeKey<u32>, u32>) -> Self::Answers {
            let mut mirrored: Vec<_> = edges
                .iter()
                .map(|((source, label, target), edge)| ((*target, label.clone(), *source), *edge))
                .collect();
            mirrored.sort();
            mirrored
        }
    }

    #[test]
    fn incoming_edges_keep_the_laws_in_memory() {
        check_maintained(|| Ok::<AnyStore, BoxedError>(keyloom_testing::memory()), &Edges);
    }

    #[test]
    fn incoming_edges_keep_the_laws_beside_others() {
        let make = || Ok::<AnyStore, BoxedError>(keyloom_testing::optimistic_memory().into());
        check_maintained(make, &Edges);
    }

    #[test]
    fn incoming_edges_keep_the_laws_on_lmdb() {
        let make = || {
            let directory = tempfile::tempdir()?;
            let options = keyloom::Lmdb::options();
            let options = options.durability(keyloom::lmdb::Durability::MayLoseStore);
            Ok::<_, BoxedError>(With(options.open(directory.path())?, directory))
        };
        check_maintained(make, &Edges);
    }
}
