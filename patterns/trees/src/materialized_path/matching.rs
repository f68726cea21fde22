//! Nodes whose paths of names match a pattern.

use keyloom::value::Codec;
use keyloom::{Error, Reader, Result};
use keyloom_kit::{InOrder, Scan, scan};

use super::path::is_within;
use super::steps::Steps;
use super::{MaterializedPath, NodeOf};
use crate::TreeNode;
use crate::path::{PathPattern, Paths};

impl<V: 'static, C: Codec<V>> MaterializedPath<V, C> {
    /// Returns the nodes whose paths of names match `pattern`, in the requested order of the paths.
    /// The tree must have [paths of names](MaterializedPath::of_names). During a move or a deletion
    /// in steps, each node is found at one place, as in every other query.
    ///
    /// Costs 1 get, and the skip scan of [`Paths::matching`] over the keys of the tree: 1 range,
    /// the matches, and for each gap at most 16 steps and 1 range.
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store, Subspace};
    /// use keyloom_trees::path::Lquery;
    /// use keyloom_trees::{MaterializedPath, NestedNode, Tree};
    /// let parts = MaterializedPath::<u32>::new(&Subspace::new("parts")).of_names();
    /// let wheel = |id| NestedNode::new(id, "wheel", 0).with(NestedNode::new(id + 1, "rim", 36));
    /// let bikes = [
    ///     NestedNode::new(1, "tandem", 0).with(wheel(10)),
    ///     NestedNode::new(2, "tricycle", 0).with(wheel(20)),
    /// ];
    /// let store = Memory::new();
    /// store.transact(|txn| parts.import(txn, None, &bikes))?;
    /// let snapshot = store.snapshot()?;
    /// let rims = "*.wheel.rim".parse::<Lquery>()?.into();
    /// let rims = parts.matching(&snapshot, &rims)?.map(|node| Ok(node?.id()));
    /// assert_eq!(rims.collect::<Result<Vec<u64>>>()?, [11, 21]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a tree with paths of ids; any error of the store. The
    /// iterator also returns an error if a key is not a path.
    pub fn matching<'r, 'p, R: Reader, N: Into<InOrder<&'p PathPattern>>>(
        &self,
        reader: &'r R,
        pattern: N,
    ) -> Result<impl Scan<Item = Result<NodeOf<'r, Self, R>>> + use<'r, 'p, R, N, V, C>> {
        if !self.layout.names() {
            return Err(Error::InvalidArgument {
                what: "the tree",
                value: self.layout.space.to_string(),
                why: "a pattern matches names, but the paths of this tree consist of ids; use `of_names`",
            });
        }
        let layout = self.layout.clone();
        let steps = layout.locate(reader, &[])?.steps;
        let hidden = steps.as_ref().and_then(Steps::hidden).cloned();
        let matches = Paths::new(&layout.paths).matching(reader, pattern)?;
        Ok(scan(matches, move |matches| {
            while let Some(found) = matches.next().transpose()? {
                let (key, record) = found.into_entry();
                let is_hidden = |hidden: &_| is_within(layout.path(&key), hidden);
                if !hidden.as_deref().is_some_and(is_hidden) {
                    let id = layout.id_at(&key, &record)?;
                    return Ok(Some(TreeNode::new(id, record, layout.header())));
                }
            }
            Ok(None)
        }))
    }
}
