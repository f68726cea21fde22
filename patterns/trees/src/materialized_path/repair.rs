//! The repair, in pages of one transaction each.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Error, KeyBuf, Order, Reader, Result, Snapshots, Store, Subspace, Writer};
use keyloom_kit::derived::SortedWrites;
use keyloom_kit::{Progress, RepairOptions, Rule, get_many, in_batches, page_behind};

use super::super::rank;
use super::super::tree::{
    REPLANS, TreeError, fresh_id, named_placeholder, placeholder, unless_newer,
};
use super::super::{NodeId, TreeNode};
use super::MaterializedPath;
use super::change::Rewrite;
use super::check::{CHUNK, Found};
use super::layout::Layout;
use super::path::{Path, by_name, by_rank, is_within, replanted};
use super::steps::Steps;
use crate::tree::{Report, Stages};

/// The number of characters of a name that are kept when its id is appended, so that the key fits.
const SHORT_CHARS: usize = 60;

/// An entry with its value.
type Stored = (KeyBuf, Vec<u8>);

/// A node that a repair moves to another path, or gives another id.
pub(super) struct Replanted {
    pub(super) id: NodeId,
    pub(super) from: Path,
    pub(super) to: Path,
    pub(super) record: Vec<u8>,
    /// The other node with the old id, and its path after the repair.
    pub(super) other: Option<(NodeId, Path)>,
}

impl<V, C: Codec<V>> MaterializedPath<V, C> {
    pub(super) fn repair_all<S: Store>(&self, store: &S, stages: &mut Stages<'_>) -> Result<()> {
        let Layout { paths, nodes, .. } = &self.layout;
        stages.run(|_, report| {
            let written = store.transact(|txn| self.forget_damaged_steps(txn))?;
            self.resume(store, Progress { written, ..Progress::default() }, report)
        })?;
        stages.run(|options, report| {
            let claims = self.claims(&Snapshots::lasting(store))?;
            in_pages(store, options, report, paths, |txn, entries, writes| {
                self.restore_records(txn, entries, &claims, writes)
            })
        })?;
        stages.run(|_, report| self.root_orphans(store, report))?;
        stages.run(|options, report| {
            in_pages(store, options, report, paths, |txn, entries, writes| {
                self.fix_records(txn, entries, writes)
            })
        })?;
        stages.run(|_, report| {
            let doubles = self.all_doubles(&Snapshots::lasting(store))?;
            self.replant_each(store, report, &doubles, |txn, key| self.renumbered(txn, key))
        })?;
        stages.run(|options, report| {
            in_pages(store, options, report, nodes, |txn, entries, writes| {
                self.fix_nodes(txn, entries, writes)
            })
        })
    }

    /// Deletes an unreadable record of work in steps. Without the record, all nodes become visible.
    /// Nodes that were already copied then exist twice, and one of the two gets another id.
    fn forget_damaged_steps(&self, txn: &mut impl Writer) -> Result<u64> {
        let key = &self.layout.steps;
        let steps = txn.get(key)?.map(|bytes| unless_newer(Steps::decode(&bytes))).transpose();
        if steps.map_err(|error| error.at(key))? != Some(None) {
            return Ok(0);
        }
        txn.delete(key)?;
        Ok(1)
    }

    /// The ids that map to a path with no record of that id: the record at the path is missing, has
    /// another id, or has an id that cannot be read.
    fn claims(&self, reader: &impl Reader) -> Result<BTreeMap<Path, NodeId>> {
        let mut claims = BTreeMap::new();
        let mut entries = reader.range(self.layout.nodes.range(), Order::Ascending)?;
        loop {
            let some = entries.by_ref().take(CHUNK).collect::<Result<Vec<_>>>()?;
            if some.is_empty() {
                return Ok(claims);
            }
            let nodes: Vec<Found> = some
                .iter()
                .filter_map(|(key, path)| {
                    Some((self.layout.id_of_node(key)?, Path::from_slice(path)))
                })
                .collect();
            let are_there = self.are_there(reader, &nodes)?;
            let lost = nodes.into_iter().zip(are_there).filter(|(_, (_, is_there))| !is_there);
            claims.extend(lost.map(|((id, path), _)| (path, id)));
        }
    }

    /// Gives unreadable records an id and a name. A record with the id of another node gets its own
    /// id back, if that id is known.
    fn restore_records(
        &self,
        reader: &impl Reader,
        entries: &[Stored],
        claims: &BTreeMap<Path, NodeId>,
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let layout = &self.layout;
        let entries: Vec<&Stored> =
            entries.iter().filter(|(key, _)| layout.is_path(layout.path(key))).collect();
        let mut ids = Vec::with_capacity(entries.len());
        for (key, record) in &entries {
            ids.push(layout.id_at(key, record).ok());
        }
        let doubles = self.doubles(reader, &entries, &ids)?;
        let mut given = HashSet::new();
        for (((key, record), id), is_double) in entries.into_iter().zip(ids).zip(doubles) {
            let path = layout.path(key);
            let claimed = claims.get(path).copied();
            let own = match id {
                Some(id) if is_double && layout.names() => claimed.unwrap_or(id),
                Some(id) => id,
                None => match claimed {
                    Some(id) => id,
                    None => fresh_id(0, |id| {
                        Ok(!given.insert(id) || reader.get(&layout.node(id))?.is_some())
                    })?,
                },
            };
            let stored = match id {
                Some(_) => record.get(layout.header()..).unwrap_or_default(),
                None => record,
            };
            let node = TreeNode::<&[u8], V, C>::new(own, stored, 0);
            let is_named = id.is_some() && node.is_named();
            if id == Some(own) && is_named {
                continue;
            }
            let mut restored = Vec::with_capacity(record.len() + 32);
            layout.put_header(own, &mut restored);
            match (is_named, layout.segments.name(path)) {
                (true, _) => restored.extend_from_slice(stored),
                (false, Some(name)) => restored.extend(named_placeholder(&name, stored)),
                (false, None) => restored.extend(placeholder(own, stored)),
            }
            writes.put(key, &restored)?;
            if id != Some(own) {
                writes.put(&layout.node(own), path)?;
            }
        }
        Ok(())
    }

    /// For each record, whether the index of ids points to a different record of the same id.
    fn doubles(
        &self,
        reader: &impl Reader,
        entries: &[&Stored],
        ids: &[Option<NodeId>],
    ) -> Result<Vec<bool>> {
        let layout = &self.layout;
        let keys: Vec<KeyBuf> = ids.iter().flatten().map(|id| layout.node(*id)).collect();
        let mut stored = get_many(reader, &keys)?.into_iter();
        let mut elsewhere = Vec::new();
        for ((at, (key, _)), id) in entries.iter().enumerate().zip(ids) {
            let Some(id) = id else { continue };
            if let Some(path) = stored.next().flatten()
                && path[..] != *layout.path(key)
            {
                elsewhere.push((at, (*id, Path::from_slice(&path))));
            }
        }
        let (positions, found): (Vec<usize>, Vec<Found>) = elsewhere.into_iter().unzip();
        let mut doubles = vec![false; entries.len()];
        for (at, (_, is_there)) in positions.into_iter().zip(self.are_there(reader, &found)?) {
            if let Some(is_double) = doubles.get_mut(at) {
                *is_double = is_there;
            }
        }
        Ok(doubles)
    }

    /// The records whose id maps to another record: descendants before their ancestors, since a
    /// renumbered node changes the paths below it.
    fn all_doubles(&self, reader: &impl Reader) -> Result<Vec<KeyBuf>> {
        let mut doubles = Vec::new();
        let mut records = reader.range(self.layout.paths.range(), Order::Ascending)?;
        loop {
            let some = records.by_ref().take(CHUNK).collect::<Result<Vec<_>>>()?;
            if some.is_empty() {
                doubles.reverse();
                return Ok(doubles);
            }
            let stored: Vec<Stored> = some
                .iter()
                .map(|(key, record)| (KeyBuf::from_slice(key), record.to_vec()))
                .collect();
            let stored: Vec<&Stored> = stored.iter().collect();
            let ids: Vec<_> =
                stored.iter().map(|(key, record)| self.layout.id_at(key, record).ok()).collect();
            let found = self.doubles(reader, &stored, &ids)?;
            let keys = stored.iter().zip(found).filter(|(_, is_double)| *is_double);
            doubles.extend(keys.map(|((key, _), _)| key.clone()));
        }
    }

    /// The record whose id maps to another record, with a new id.
    fn renumbered(&self, reader: &impl Reader, key: &[u8]) -> Result<Option<Replanted>> {
        let layout = &self.layout;
        let Some(record) = reader.get(key)?.map(|record| record.to_vec()) else { return Ok(None) };
        let id = layout.id_at(key, &record)?;
        let entry = (KeyBuf::from_slice(key), record);
        if self.doubles(reader, &[&entry], &[Some(id)])? != [true] {
            return Ok(None);
        }
        let (_, record) = entry;
        let fresh = fresh_id(id, |id| Ok(reader.get(&layout.node(id))?.is_some()))?;
        let from = Path::from_slice(layout.path(key));
        Ok(Some(match layout.segments.rank(&from) {
            // The id is part of the path.
            Some(rank) if !layout.names() => {
                let to = by_rank(layout.segments.parent(&from), &rank, fresh);
                // The id still maps to the other node, which may be a descendant of this one.
                let other = reader.get(&layout.node(id))?.map(|path| Path::from_slice(&path));
                let other = other.map(|path| match is_within(&path, &from) {
                    true => (id, replanted(&path, &from, &to)),
                    false => (id, path),
                });
                Replanted { id: fresh, from, to, record, other }
            }
            _ => {
                let node = record.get(layout.header()..).unwrap_or_default();
                let mut renumbered = Vec::with_capacity(record.len());
                layout.put_header(fresh, &mut renumbered);
                renumbered.extend_from_slice(node);
                Replanted { id: fresh, to: from.clone(), from, record: renumbered, other: None }
            }
        }))
    }

    /// Makes every node without a parent a root, with its descendants. Repeats the search for
    /// orphans, because moving an orphan changes the keys of other orphans below it.
    fn root_orphans<S: Store>(&self, store: &S, report: &mut Report<'_>) -> Result<Progress> {
        let mut all = self.finish_steps(store, report)?;
        while all.finished {
            let mut orphans = Vec::new();
            self.check_all(&Snapshots::lasting(store), |fault| {
                if fault.rule == Rule::NoParent {
                    orphans.push(fault.key);
                }
                ControlFlow::Continue(())
            })?;
            let mut report = |done: &Progress| report(&all.followed_by(done));
            let done =
                self.replant_each(store, &mut report, &orphans, |txn, key| self.rooted(txn, key))?;
            all = all.followed_by(&done);
            if done.changed() == 0 {
                break;
            }
        }
        Ok(all)
    }

    /// Continues the steps in which an earlier repair was stopped, since there can be only one
    /// record of steps.
    fn finish_steps<S: Store>(&self, store: &S, report: &mut Report<'_>) -> Result<Progress> {
        match self.layout.locate(&store.snapshot()?, &[])?.steps {
            Some(_) => self.finish(store, Progress::default(), report),
            None => Ok(Progress::complete()),
        }
    }

    /// The node without a parent, as a root.
    fn rooted(&self, reader: &impl Reader, key: &[u8]) -> Result<Option<Replanted>> {
        let layout = &self.layout;
        let from = Path::from_slice(layout.path(key));
        let parent = layout.key(layout.segments.parent(&from));
        let values = reader.get_many(&[key, &parent])?;
        let [Some(record), None] = &values[..] else { return Ok(None) };
        let id = layout.id_at(key, record)?;
        let record = record.to_vec();
        if !layout.names() {
            let last = layout.beside(reader, &[], None, Order::Descending, Some(&from))?;
            let low = last.and_then(|last| layout.segments.rank(&last));
            let rank = rank::between(low.as_deref(), None).unwrap_or_default();
            let to = by_rank(&[], &rank, id);
            return Ok(Some(Replanted { id, from, to, record, other: None }));
        }
        let name = layout.segments.name(&from).unwrap_or_default();
        let short: String = name.chars().take(SHORT_CHARS).collect();
        let more = (0_u64..).map(|n| format!("lost {id} {n}"));
        for name in [name.clone(), format!("{short} ({id})")].into_iter().chain(more) {
            let to = by_name(&[], &name);
            if reader.get(&layout.key(&to))?.is_none() {
                let record = layout.renamed::<V, C>(id, &record, &name)?;
                return Ok(Some(Replanted { id, from, to, record, other: None }));
            }
        }
        Ok(None)
    }

    /// Replants the nodes at `keys`, one after another, and reports each transaction that changed
    /// something.
    fn replant_each<S: Store>(
        &self,
        store: &S,
        report: &mut Report<'_>,
        keys: &[KeyBuf],
        place: impl Fn(&S::Transaction<'_>, &[u8]) -> Result<Option<Replanted>>,
    ) -> Result<Progress> {
        let mut all = self.finish_steps(store, report)?;
        if !all.finished {
            return Ok(all);
        }
        let (mut keys, mut others) = (keys.iter(), 0);
        let mut next = keys.next();
        while let Some(key) = next {
            let mut report = |done: &Progress| match done.changed() {
                0 => ControlFlow::Continue(()),
                _ => report(&all.followed_by(done)),
            };
            let done = match self.replant_one(store, &mut report, |txn| place(txn, key)) {
                // Another program has begun work in steps. The node is replanted after that.
                Err(error) if is_in_steps(&error) && others < REPLANS => {
                    others += 1;
                    self.finish_steps(store, &mut report)?
                }
                done => {
                    (next, others) = (keys.next(), 0);
                    done?
                }
            };
            all = all.followed_by(&done);
            if !done.finished {
                break;
            }
        }
        Ok(all)
    }

    /// Replants a node with its descendants: in one transaction, or in steps if there are too many.
    pub(super) fn replant_one<S: Store>(
        &self,
        store: &S,
        report: &mut Report<'_>,
        place: impl Fn(&S::Transaction<'_>) -> Result<Option<Replanted>>,
    ) -> Result<Progress> {
        let whole = store.transact(|txn| {
            let Some(replanted) = place(txn)? else { return Ok(0) };
            let steps = self.layout.locate(txn, &[])?.steps;
            self.layout.refuse_in_steps(steps.as_ref(), |steps| {
                steps.stands_on(&replanted.from) || steps.stands_on(&replanted.to)
            })?;
            self.replant(txn, &replanted)
        });
        match whole {
            Err(error) if error.is_batch_too_large() => {}
            written => {
                let written = written?;
                let mut done = Progress { written, ..Progress::complete() };
                done.finished = report(&done).is_continue();
                return Ok(done);
            }
        }
        let begun = store.transact(|txn| {
            self.refuse_unfinished(txn)?;
            let Some(Replanted { id, from, to, record, .. }) = place(txn)? else {
                return Ok(false);
            };
            self.refuse_too_long(txn, &from, &to)?;
            self.begin_with(txn, id, (from, to), &record)?;
            Ok(true)
        })?;
        match begun {
            true => self.finish(store, Progress { written: 2, ..Progress::default() }, report),
            false => Ok(Progress::complete()),
        }
    }

    /// [`resume`](Self::resume) as a part of longer work: not finished if `report` ever breaks.
    pub(super) fn finish<S: Store>(
        &self,
        store: &S,
        done: Progress,
        report: &mut Report<'_>,
    ) -> Result<Progress> {
        let mut is_stopped = false;
        let mut done = self.resume(store, done, |done| {
            let flow = report(done);
            is_stopped |= flow.is_break();
            flow
        })?;
        done.finished &= !is_stopped;
        Ok(done)
    }

    fn replant(&self, txn: &mut impl Writer, replanted: &Replanted) -> Result<u64> {
        let Replanted { id, from, to, record, .. } = replanted;
        let mut rewrite = Rewrite::default();
        if from != to {
            rewrite.replant(&self.layout, txn, from, to)?;
        }
        rewrite.put(&self.layout, *id, to, record)?;
        let written = rewrite.apply(txn)?.changed();
        // The root had the id of the other node, so its entry was written.
        if let Some((id, path)) = &replanted.other {
            txn.put(&self.layout.node(*id), path)?;
        }
        Ok(written)
    }

    /// Rewrites missing or wrong id entries of records, and names that differ from the name in the
    /// path.
    fn fix_records(
        &self,
        reader: &impl Reader,
        entries: &[Stored],
        writes: &mut SortedWrites,
    ) -> Result<()> {
        let layout = &self.layout;
        let mut found = Vec::new();
        for (key, record) in entries {
            let Some(((id, path), has_its_name)) = self.examine(key, record) else { continue };
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
        // If two records have the same id, the record that the id maps to keeps the id.
        let others = self.are_there(reader, &stored)?;
        for (((id, path), (_, stored)), (_, is_there)) in found.iter().zip(&stored).zip(others) {
            if path != stored && !is_there {
                writes.put(&layout.node(*id), path)?;
            }
        }
        Ok(())
    }

    /// Removes id entries whose path has no record of that id.
    fn fix_nodes(
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

fn is_in_steps(error: &Error) -> bool {
    matches!(error.downcast_ref(), Some(TreeError::InSteps { .. }))
}

/// Processes all entries of a subspace page by page, one transaction per page; `fix` collects the
/// writes.
fn in_pages<S: Store>(
    store: &S,
    options: &RepairOptions,
    report: &mut Report<'_>,
    space: &Subspace,
    fix: impl Fn(&S::Transaction<'_>, &[Stored], &mut SortedWrites) -> Result<()>,
) -> Result<Progress> {
    in_batches(store, options, report, |txn, nodes, done| {
        let page = page_behind(done.position.last.as_deref(), txn, space, nodes)?;
        let entries = page.entries.iter();
        let entries: Vec<Stored> =
            entries.map(|(key, value)| (KeyBuf::from_slice(key), value.to_vec())).collect();
        done.finished = page.last.is_none();
        done.position.last = page.last.clone();
        drop(page);
        let mut writes = SortedWrites::default();
        fix(txn, &entries, &mut writes)?;
        done.written += writes.len() as u64;
        writes.apply(txn).map(drop)
    })
}
