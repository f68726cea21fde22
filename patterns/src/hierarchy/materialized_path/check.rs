//! What is not as it should be, and making it so.
//!
//! The records at the paths are the truth; where a node is found by its id is derived from them.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Reader, Result, Store, Subspace, Writer};

use super::super::rank;
use super::super::tree::{Findings, unless_newer};
use super::super::{NodeId, TreeInconsistency, TreeNode, TreeRule};
use super::MaterializedPath;
use super::change::Rewrite;
use super::layout::Layout;
use super::path::{Path, by_name, by_rank, is_within};
use super::steps::Steps;
use crate::batch::BatchSize;
use crate::derived::{SortedWrites, page_behind};
use crate::table::get_many;

/// How many keys are looked at together.
const CHUNK: usize = 1_000;

/// A record that can be read: its node and its path.
type Found = (NodeId, Path);
/// An entry, with its bytes.
type Stored = (KeyBuf, Vec<u8>);

/// The nodes from the last record up to its root, as far as they are there.
#[derive(Default)]
struct Open {
    last: Path,
    /// How much of it the path of each of them is.
    lengths: Vec<usize>,
}

impl Open {
    /// Goes on to a record, and tells whether its parent is there.
    fn enter(&mut self, layout: &Layout, path: &[u8]) -> bool {
        let is_above = |length: &usize| {
            let above = self.last.get(..*length).unwrap_or_default();
            is_within(path, above)
        };
        let kept = self.lengths.iter().take_while(|length| is_above(length)).count();
        self.lengths.truncate(kept);
        let parent = layout.segments.parent(path).len();
        let has_parent = parent == 0 || self.lengths.last() == Some(&parent);
        self.last = path.into();
        self.lengths.push(path.len());
        has_parent
    }
}

impl<V, C: Codec<V>> MaterializedPath<V, C> {
    /// What a record is, if it is one, and whether it has the name that its path says.
    fn examine(&self, key: &[u8], record: &[u8]) -> Result<Option<(Found, bool)>> {
        let layout = &self.layout;
        let Some(id) = unless_newer(layout.id_at(key, record))? else { return Ok(None) };
        let node = TreeNode::<&[u8], V, C>::new(id, record, layout.header());
        let Some(name) = unless_newer(node.name())? else { return Ok(None) };
        let path = layout.path(key);
        let has_its_name = !layout.names() || layout.segments.name(path).as_deref() == Some(name);
        Ok(Some(((id, path.into()), has_its_name)))
    }

    pub(super) fn check_all(
        &self,
        reader: &impl Reader,
        found: impl FnMut(TreeInconsistency) -> ControlFlow<()>,
    ) -> Result<u64> {
        let layout = &self.layout;
        let mut findings = Findings::new(found);
        let steps = reader.get(&layout.steps)?.map(|bytes| unless_newer(Steps::decode(&bytes)));
        let steps = steps.transpose().map_err(|error| error.at(&layout.steps))?;
        if steps == Some(None) {
            findings.tell(&layout.steps, TreeRule::Foreign);
        }
        let steps = steps.flatten();
        let mut looked_at = 0;
        let (mut nodes, mut records) = (Vec::new(), Vec::new());
        let mut open = Open::default();
        for entry in reader.range(layout.space.range(), Order::Ascending)? {
            let (key, value) = entry?;
            looked_at += 1;
            if layout.paths.contains(&key) {
                let record =
                    self.check_record((&key, &value), steps.as_ref(), &mut open, &mut findings)?;
                records.extend(record);
            } else if let Some(id) = layout.id_of_node(&key) {
                nodes.push((id, Path::from_slice(&value)));
            } else if key[..] != layout.steps[..] {
                findings.tell(&key, TreeRule::Foreign);
            }
            if nodes.len() >= CHUNK {
                self.check_nodes(reader, steps.as_ref(), &mut nodes, &mut findings)?;
            }
            if records.len() >= CHUNK {
                self.check_ids(reader, steps.as_ref(), &mut records, &mut findings)?;
            }
            if findings.has_stopped() {
                return Ok(looked_at);
            }
        }
        self.check_nodes(reader, steps.as_ref(), &mut nodes, &mut findings)?;
        self.check_ids(reader, steps.as_ref(), &mut records, &mut findings)?;
        Ok(looked_at)
    }

    /// Looks at what a record itself tells, and at the one above it.
    fn check_record(
        &self,
        (key, record): (&[u8], &[u8]),
        steps: Option<&Steps>,
        open: &mut Open,
        findings: &mut Findings<impl FnMut(TreeInconsistency) -> ControlFlow<()>>,
    ) -> Result<Option<Found>> {
        let Some(((id, path), has_its_name)) = self.examine(key, record)? else {
            findings.tell(key, TreeRule::Foreign);
            return Ok(None);
        };
        if steps.and_then(Steps::hidden).is_some_and(|hidden| is_within(&path, hidden)) {
            return Ok(None);
        }
        if !open.enter(&self.layout, &path) {
            findings.tell(key, TreeRule::NoParent);
        }
        if !has_its_name {
            findings.tell(key, TreeRule::Wrong);
        }
        if !TreeNode::<_, V, C>::new(id, record, self.layout.header()).is_readable()? {
            findings.tell(key, TreeRule::Foreign);
        }
        Ok(Some((id, path)))
    }

    /// Whether each node is found by its id.
    fn check_ids(
        &self,
        reader: &impl Reader,
        steps: Option<&Steps>,
        records: &mut Vec<Found>,
        findings: &mut Findings<impl FnMut(TreeInconsistency) -> ControlFlow<()>>,
    ) -> Result<()> {
        let keys: Vec<KeyBuf> = records.iter().map(|(id, _)| self.layout.node(*id)).collect();
        for ((key, (_, path)), stored) in
            keys.iter().zip(records.iter()).zip(get_many(reader, &keys)?)
        {
            let stored = stored.map(|stored| Path::from_slice(&stored));
            let is_missing = stored.is_none();
            let seen = stored.and_then(|stored| match steps {
                Some(steps) => steps.resolve(stored),
                None => Some(stored),
            });
            if is_missing {
                findings.tell(key, TreeRule::Missing);
            } else if seen.as_ref() != Some(path) {
                findings.tell(key, TreeRule::Wrong);
            }
        }
        records.clear();
        Ok(())
    }

    /// Whether what is found by its id is there.
    fn check_nodes(
        &self,
        reader: &impl Reader,
        steps: Option<&Steps>,
        nodes: &mut Vec<Found>,
        findings: &mut Findings<impl FnMut(TreeInconsistency) -> ControlFlow<()>>,
    ) -> Result<()> {
        nodes.retain(|(_, path)| {
            // What is being deleted is gone already for readers.
            steps.is_none_or(|steps| steps.resolve(path.clone()).is_some())
        });
        for (_, path) in nodes.iter_mut() {
            if let Some(seen) = steps.and_then(|steps| steps.resolve(path.clone())) {
                *path = seen;
            }
        }
        for (id, is_there) in self.are_there(reader, nodes)? {
            if !is_there {
                findings.tell(&self.layout.node(id), TreeRule::Dangling);
            }
        }
        nodes.clear();
        Ok(())
    }

    /// Whether each of these nodes has a record at this path.
    fn are_there(&self, reader: &impl Reader, nodes: &[Found]) -> Result<Vec<(NodeId, bool)>> {
        let layout = &self.layout;
        // A path that is too long for a key is none that could be there.
        let key =
            |path: &Path| Some(layout.key(path)).filter(|key| keyloom::check_key(key).is_ok());
        let keys: Vec<KeyBuf> =
            nodes.iter().map(|(_, path)| key(path).unwrap_or(layout.steps.clone())).collect();
        let mut are_there = Vec::with_capacity(nodes.len());
        for (((id, _), key), record) in nodes.iter().zip(&keys).zip(get_many(reader, &keys)?) {
            let found = match record {
                Some(record) if layout.paths.contains(key) => {
                    unless_newer(layout.id_at(key, &record))?
                }
                _ => None,
            };
            are_there.push((*id, found == Some(*id)));
        }
        Ok(are_there)
    }

    // ---- repair ---------------------------------------------------------------------------------------------

    pub(super) fn repair_all<S: Store>(&self, store: &S) -> Result<u64> {
        let mut keys = self.finish(store, |_| ControlFlow::Continue(()))?.keys;
        loop {
            let rooted = self.root_orphans(store)?;
            keys += rooted;
            // Below an orphan there may be others, whose keys have changed with it.
            if rooted == 0 {
                break;
            }
        }
        keys += in_pages(store, &self.layout.paths, |txn, entries, writes| {
            self.mend_records(txn, entries, writes)
        })?;
        keys += in_pages(store, &self.layout.nodes, |txn, entries, writes| {
            self.mend_nodes(txn, entries, writes)
        })?;
        Ok(keys)
    }

    /// Makes roots of all nodes without a parent, with what lies below them, each in a transaction.
    fn root_orphans<S: Store>(&self, store: &S) -> Result<u64> {
        let mut orphans = Vec::new();
        self.check_all(&store.snapshot()?, |fault| {
            if fault.rule == TreeRule::NoParent {
                orphans.push(fault.key);
            }
            ControlFlow::Continue(())
        })?;
        orphans.iter().map(|key| store.transact(|txn| self.root_orphan(txn, key))).sum()
    }

    fn root_orphan(&self, txn: &mut impl Writer, key: &[u8]) -> Result<u64> {
        let layout = &self.layout;
        let path = Path::from_slice(layout.path(key));
        let parent = layout.key(layout.segments.parent(&path));
        let values = txn.get_many(&[key, &parent])?;
        let [Some(record), None] = &values[..] else { return Ok(0) };
        let id = layout.id_at(key, record)?;
        let record = record.to_vec();
        drop(values);
        let mut rewrite = Rewrite::default();
        if layout.names() {
            let name = layout.segments.name(&path).unwrap_or_default();
            let names = [name.clone(), format!("{name} ({id})")];
            let free =
                names.into_iter().map(|name| (by_name(&[], &name), name)).find_map(|(to, name)| {
                    let taken = txn.get(&layout.key(&to)).map(|record| record.is_some());
                    match taken {
                        Ok(true) => None,
                        Ok(false) => Some(Ok((to, name))),
                        Err(error) => Some(Err(error)),
                    }
                });
            let Some((to, name)) = free.transpose()? else { return Ok(0) };
            rewrite.replant(layout, txn, &path, &to)?;
            rewrite.put(layout, id, &to, &layout.renamed::<V, C>(id, &record, &name)?)?;
        } else {
            let last = layout.beside(txn, &[], None, Order::Descending, Some(&path))?;
            let low = last.and_then(|last| layout.segments.rank(&last));
            let rank = rank::between(low.as_deref(), None).unwrap_or_default();
            rewrite.replant(layout, txn, &path, &by_rank(&[], &rank, id))?;
        }
        let keys = rewrite.len();
        rewrite.apply(txn)?;
        Ok(keys)
    }

    /// Writes where the nodes of some records are found, and the names that their paths say.
    fn mend_records(
        &self,
        reader: &impl Reader,
        entries: &[Stored],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let layout = &self.layout;
        let mut found = Vec::new();
        for (key, record) in entries {
            let Some(((id, path), has_its_name)) = self.examine(key, record)? else { continue };
            if let Some(name) = layout.segments.name(&path).filter(|_| !has_its_name) {
                writes.put(key, &layout.renamed::<V, C>(id, record, &name)?)?;
            }
            found.push((id, path));
        }
        let keys: Vec<KeyBuf> = found.iter().map(|(id, _)| layout.node(*id)).collect();
        let stored = get_many(reader, &keys)?.into_iter();
        let stored: Vec<Found> = found
            .iter()
            .zip(stored)
            .map(|((id, _), path)| {
                (*id, path.map(|path| Path::from_slice(&path)).unwrap_or_default())
            })
            .collect();
        // Where two records have one id, the one that is found by it stays so.
        let others = self.are_there(reader, &stored)?;
        for (((id, path), (_, stored)), (_, is_there)) in found.iter().zip(&stored).zip(others) {
            if path != stored && !is_there {
                writes.put(&layout.node(*id), path)?;
            }
        }
        Ok(())
    }

    /// Removes what says of some nodes where they are, when they are not there.
    fn mend_nodes(
        &self,
        reader: &impl Reader,
        entries: &[Stored],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let layout = &self.layout;
        let found: Vec<Found> = entries
            .iter()
            .filter_map(|(key, path)| Some((layout.id_of_node(key)?, Path::from_slice(path))))
            .collect();
        for (id, is_there) in self.are_there(reader, &found)? {
            if !is_there {
                writes.delete(&layout.node(id))?;
            }
        }
        Ok(())
    }
}

/// Runs over all that lies in a space, page by page, each in a transaction in which `mend` says what to write. Tells
/// how many keys were written.
fn in_pages<S: Store>(
    store: &S,
    space: &Subspace,
    mend: impl Fn(&S::Transaction<'_>, &[Stored], &mut SortedWrites) -> Result<()>,
) -> Result<u64> {
    let mut size = BatchSize::new(CHUNK);
    let (mut keys, mut last) = (0, None::<KeyBuf>);
    loop {
        let (written, next) = size.transact(store, |txn, nodes| {
            let page = page_behind(last.as_deref(), txn, space, nodes)?;
            let entries = page.entries.iter();
            let entries: Vec<Stored> =
                entries.map(|(key, value)| (KeyBuf::from_slice(key), value.to_vec())).collect();
            let last = page.last.clone();
            drop(page);
            let mut writes = SortedWrites::default();
            mend(txn, &entries, &mut writes)?;
            let written = writes.len() as u64;
            writes.apply(txn)?;
            Ok((written, last))
        })?;
        keys += written;
        if next.is_none() {
            return Ok(keys);
        }
        last = next;
    }
}
