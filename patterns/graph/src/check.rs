//! Checks for edges that were written without the methods of the graph.

use std::collections::BTreeMap;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Reader, Result};
use keyloom_kit::{Inconsistency, Rule};

use crate::graph::Graph;
use crate::keys::{EdgeKey, VertexId, shown};

/// The number of edges whose ends are looked up together.
// A lower number adds round trips; a higher one needs more memory.
const TOGETHER: usize = 1_000;

impl<I: VertexId, V: 'static, E, C: Codec<V> + Codec<E>> Graph<I, V, E, C> {
    /// Reports edges that the methods of the graph would not write.
    pub(crate) fn check_edges(&self, reader: &impl Reader) -> Result<Vec<Inconsistency>> {
        let mut found = Vec::new();
        if self.is_directed() && self.allows_missing() {
            return Ok(found);
        }
        let mut some = Vec::with_capacity(TOGETHER);
        for entry in reader.range(self.edges.space().range(), Order::Ascending)? {
            let (key, _) = entry?;
            // The check of the incoming edges reports a key that does not decode.
            let Ok(edge) = self.edges.space().unpack::<EdgeKey<I>>(&key) else { continue };
            if !self.is_directed() && edge.0 > edge.2 {
                let text = "is reversed: the source of an undirected edge is its smaller end; \
                            delete it, and put it again";
                found.push(Inconsistency::new((&*key).into(), Rule::Wrong).with_text(text));
            }
            some.push((KeyBuf::from(&*key), edge));
            if some.len() == TOGETHER {
                self.check_ends(reader, &mut some, &mut found)?;
            }
        }
        self.check_ends(reader, &mut some, &mut found)?;
        Ok(found)
    }

    /// Reports the edges whose ends have no record, and clears the list.
    fn check_ends(
        &self,
        reader: &impl Reader,
        edges: &mut Vec<(KeyBuf, EdgeKey<I>)>,
        found: &mut Vec<Inconsistency>,
    ) -> Result<()> {
        if self.allows_missing() {
            edges.clear();
            return Ok(());
        }
        let ends = edges.iter().flat_map(|(_, (source, _, target))| [source, target]);
        let keys: Vec<KeyBuf> = ends.map(|end| self.vertices.space().pack(end)).collect();
        let mut exists: BTreeMap<&[u8], bool> = keys.iter().map(|key| (&**key, false)).collect();
        let distinct: Vec<&[u8]> = exists.keys().copied().collect();
        let there = reader.get_many(&distinct)?.into_iter().map(|record| record.is_some());
        exists.values_mut().zip(there).for_each(|(exists, there)| *exists = there);
        for ((edge, _), ends) in edges.drain(..).zip(keys.chunks(2)) {
            let missing = ends.iter().find(|end| exists.get(&***end) == Some(&false));
            found.extend(missing.map(|end| {
                let end = shown(end);
                let text = format!("dangles: put the vertex {end}, or delete this edge");
                Inconsistency::new(edge, Rule::Dangling).with_text(text)
            }));
        }
        Ok(())
    }
}
