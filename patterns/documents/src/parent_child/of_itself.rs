//! A relation of a table with itself, such as replies to replies.

use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{DynWriter, KeyBuf, Reader, Result, Store};
use keyloom_kit::RecordKey;
use keyloom_tables::Schema;
use keyloom_text::TextIndex;

use super::{Children, Link, MAX_DEPTH, OnParentDelete, record, shown, with_parent};
use crate::documents::{Documents, Part, WeakDocuments};
use crate::error::DocumentError;

impl<K, V, C> Children<K, V, K, V, C>
where
    K: RecordKey + Clone + Send + Sync,
    V: Clone,
    C: Codec<V> + 'static,
{
    /// Declares a table whose records have a parent in the same table, or no parent: replies to
    /// replies, or parts of parts. A record has at most [`MAX_DEPTH`] ancestors.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_documents::parent_child::{Children, Link, OnParentDelete};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let schema = Schema::open(&store, "forum")?;
    /// type Reply = (Option<u32>, String);
    /// let link = Link::new(
    ///     |_: &u32, (to, _): &Reply| *to,
    ///     |id, (_, text), to: &u32| (*id, (Some(*to), text)),
    /// );
    /// type Replies = Children<u32, Reply, u32, Reply>;
    /// let rule = OnParentDelete::Delete;
    /// let replies = Replies::of_itself(&schema, "replies", 1, link, rule, |index| index)?;
    /// store.transact(|txn| {
    ///     replies.put(txn, &1, &(None, "question".into()))?;
    ///     replies.put(txn, &2, &(Some(1), "answer".into()))
    /// })?;
    /// let circular = store.transact(|txn| replies.move_to(txn, &1, &2));
    /// assert!(circular.unwrap_err().to_string().contains("its own ancestor"));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Schema::table_with`] and [`Schema::derive`].
    pub fn of_itself<S: Store>(
        schema: &Schema<'_, S>,
        name: &str,
        version: u32,
        link: Link<K, K, V>,
        on_delete: OnParentDelete<K>,
        index: impl Fn(TextIndex<K, V>) -> TextIndex<K, V>,
    ) -> Result<Self> {
        let records = Documents::declare(schema, name, version, |space| {
            index(with_parent(space, &link.parent_of))
        })?;
        let (link, rule) = (link, on_delete);
        let part =
            OfItself { records: records.downgrade(), link: link.clone(), on_delete: rule.clone() };
        let options = rule.shown();
        records.declare_part(schema, ("children", name), version, &options, Arc::new(part))?;
        Ok(Self::of(records.text().clone(), records, link, rule))
    }
}

/// The `Part` of documents that are children of documents in the same table. It holds a weak
/// reference to the documents, because the documents own it.
struct OfItself<K: RecordKey, V: 'static, C> {
    records: WeakDocuments<K, V, C>,
    link: Link<K, K, V>,
    on_delete: OnParentDelete<K>,
}

impl<K: RecordKey + Clone, V, C> OfItself<K, V, C> {
    fn children(&self) -> Children<K, V, K, V, C> {
        let records = self.records.upgrade();
        let (link, on_delete) = (self.link.clone(), self.on_delete.clone());
        Children::of(records.text().clone(), records, link, on_delete)
    }
}

impl<K, V, C> Part<K, V> for OfItself<K, V, C>
where
    K: RecordKey + Clone + Send + Sync,
    V: Clone,
    C: Codec<V> + 'static,
{
    fn removed(&self, txn: &mut DynWriter<'_>, keys: &[K], depth: usize) -> Result<()> {
        Part::removed(&self.children(), txn, keys, depth)
    }

    fn moved(&self, txn: &mut DynWriter<'_>, from: &K, to: &K, depth: usize) -> Result<()> {
        Part::moved(&self.children(), txn, from, to, depth)
    }
}

impl<P, D, K, V, C> Children<P, D, K, V, C>
where
    P: RecordKey + Clone + Send + Sync,
    K: RecordKey + Clone,
    V: Clone,
    C: Codec<D> + Codec<V> + 'static,
{
    /// Whether parents and children are in one table.
    pub(super) fn is_of_itself(&self) -> bool {
        self.relation.parents.table().space() == self.records.table().space()
    }

    /// The number of ancestors of a child of the record at `parent`.
    ///
    /// # Errors
    /// [`DocumentError::NoDocument`] if there is no record at `parent`;
    /// [`DocumentError::OwnAncestor`] if an ancestor is at one of `keys`, the old and the new key
    /// of the child; [`DocumentError::TooDeep`].
    pub(super) fn depth_below(
        &self,
        txn: &impl Reader,
        keys: [&K; 2],
        parent: &[u8],
    ) -> Result<usize> {
        let space = self.records.table().space();
        let (own, mut at) = (keys.map(|key| space.pack(key)), KeyBuf::from_slice(parent));
        for depth in 1..=MAX_DEPTH {
            if own.contains(&at) {
                return Err(DocumentError::OwnAncestor { key: shown(&at) }.into());
            }
            let next = match txn.get(&at)? {
                None if depth == 1 => return Err(self.no_parent(parent)),
                None => None,
                Some(bytes) => {
                    let (key, value) = record::<_, K, V, C>(space, (&*at, &*bytes))?;
                    (self.link.parent_of)(&key, &value)
                }
            };
            match next {
                None => return Ok(depth),
                Some(next) => at = self.packed(&next),
            }
        }
        let [old, _] = keys;
        Err(self.too_deep(old))
    }

    /// Refuses to move a record to a depth at which its descendants would have too many ancestors.
    pub(super) fn refuse_height(
        &self,
        txn: &impl Reader,
        key: &K,
        parent: &[u8],
        mut depth: usize,
    ) -> Result<()> {
        let Some(old) = self.records.table().get(txn, key)? else { return Ok(()) };
        let before = (self.link.parent_of)(key, &old).map(|before| self.packed(&before));
        if before.as_deref() == Some(parent) {
            return Ok(());
        }
        let space = self.records.table().space();
        let mut level = vec![key.clone()];
        loop {
            let mut below = Vec::new();
            for key in &level {
                // In a relation of a table with itself, the types of both keys are the same.
                let parent = keyloom::unpack::<P>(&keyloom::pack(key))?;
                below.extend(self.keys_of(txn, &parent)?);
            }
            if below.is_empty() {
                return Ok(());
            }
            depth += 1;
            if depth > MAX_DEPTH {
                return Err(self.too_deep(key));
            }
            let own = space.pack(key);
            below.retain(|key| space.pack(key) != own);
            level = below;
        }
    }

    #[cold]
    fn too_deep(&self, key: &K) -> keyloom::Error {
        let what = format!("the chain of parents of {}", self.records.shown(key));
        DocumentError::TooDeep { what, limit: MAX_DEPTH }.into()
    }
}
