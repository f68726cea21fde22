//! The check.
//!
//! The records at the paths are authoritative; the entries that map ids to paths are derived from
//! them.

use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{KeyBuf, Order, Reader, Result};
use keyloom_kit::{Inconsistency, Rule, get_many};

use super::super::tree::{Findings, unless_newer};
use super::super::{NodeId, TreeNode};
use super::MaterializedPath;
use super::layout::Layout;
use super::path::{Path, is_within};
use super::steps::Steps;

/// The number of keys that are read together.
pub(super) const CHUNK: usize = 1_000;

/// A readable record: its node and its path.
pub(super) type Found = (NodeId, Path);

/// The existing ancestors of the last record.
#[derive(Default)]
struct Open {
    last: Path,
    /// The path length of each ancestor; each path is a prefix of `last`.
    lengths: Vec<usize>,
}

impl Open {
    /// Advances to a record, and returns whether its parent exists.
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
    /// The node of a record, if it can be read, and whether its name is the name in its path.
    pub(super) fn examine(&self, key: &[u8], record: &[u8]) -> Option<(Found, bool)> {
        let layout = &self.layout;
        let id = layout.id_at(key, record).ok()?;
        let node = TreeNode::<&[u8], V, C>::new(id, record, layout.header());
        let name = node.name().ok()?;
        let path = layout.path(key);
        let has_its_name = !layout.names() || layout.segments.name(path).as_deref() == Some(name);
        Some(((id, path.into()), has_its_name))
    }

    pub(super) fn check_all(
        &self,
        reader: &impl Reader,
        found: impl FnMut(Inconsistency) -> ControlFlow<()>,
    ) -> Result<u64> {
        let layout = &self.layout;
        let mut findings = Findings::new(found);
        let steps = reader.get(&layout.steps)?.map(|bytes| unless_newer(Steps::decode(&bytes)));
        let steps = steps.transpose().map_err(|error| error.at(&layout.steps))?;
        if steps == Some(None) {
            findings.report(&layout.steps, Rule::Foreign);
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
                findings.report(&key, Rule::Foreign);
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

    /// Checks a record on its own and against its parent.
    fn check_record(
        &self,
        (key, record): (&[u8], &[u8]),
        steps: Option<&Steps>,
        open: &mut Open,
        findings: &mut Findings<impl FnMut(Inconsistency) -> ControlFlow<()>>,
    ) -> Result<Option<Found>> {
        let path = self.layout.path(key);
        if steps.and_then(Steps::hidden).is_some_and(|hidden| is_within(path, hidden)) {
            return Ok(None);
        }
        // An unreadable record is still the parent of the records below it.
        if self.layout.is_path(path) && !open.enter(&self.layout, path) {
            findings.report(key, Rule::NoParent);
        }
        let Ok(id) = self.layout.id_at(key, record) else {
            findings.report(key, Rule::Foreign);
            return Ok(None);
        };
        let node = TreeNode::<_, V, C>::new(id, record, self.layout.header());
        if let Some(rule) = node.fault() {
            findings.report(key, rule);
        }
        if self.examine(key, record).is_some_and(|(_, has_its_name)| !has_its_name) {
            findings.report(key, Rule::Wrong);
        }
        Ok(Some((id, path.into())))
    }

    /// Checks that each node can be found by its id.
    fn check_ids(
        &self,
        reader: &impl Reader,
        steps: Option<&Steps>,
        records: &mut Vec<Found>,
        findings: &mut Findings<impl FnMut(Inconsistency) -> ControlFlow<()>>,
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
                findings.report(key, Rule::Missing);
            } else if seen.as_ref() != Some(path) {
                findings.report(key, Rule::Wrong);
            }
        }
        records.clear();
        Ok(())
    }

    /// Checks that each id leads to an existing record.
    fn check_nodes(
        &self,
        reader: &impl Reader,
        steps: Option<&Steps>,
        nodes: &mut Vec<Found>,
        findings: &mut Findings<impl FnMut(Inconsistency) -> ControlFlow<()>>,
    ) -> Result<()> {
        nodes.retain(|(_, path)| {
            // Readers no longer see nodes that are being deleted.
            steps.is_none_or(|steps| steps.resolve(path.clone()).is_some())
        });
        for (_, path) in nodes.iter_mut() {
            if let Some(seen) = steps.and_then(|steps| steps.resolve(path.clone())) {
                *path = seen;
            }
        }
        for (id, is_there) in self.are_there(reader, nodes)? {
            if !is_there {
                findings.report(&self.layout.node(id), Rule::Dangling);
            }
        }
        nodes.clear();
        Ok(())
    }

    /// Whether each of these nodes has a record at its path.
    pub(super) fn are_there(
        &self,
        reader: &impl Reader,
        nodes: &[Found],
    ) -> Result<Vec<(NodeId, bool)>> {
        let layout = &self.layout;
        // A path too long for a key cannot have a record.
        let key =
            |path: &Path| Some(layout.key(path)).filter(|key| keyloom::check_key(key).is_ok());
        let keys: Vec<KeyBuf> =
            nodes.iter().map(|(_, path)| key(path).unwrap_or(layout.steps.clone())).collect();
        let mut are_there = Vec::with_capacity(nodes.len());
        for (((id, _), key), record) in nodes.iter().zip(&keys).zip(get_many(reader, &keys)?) {
            let found = match record {
                Some(record) if layout.paths.contains(key) => layout.id_at(key, &record).ok(),
                _ => None,
            };
            are_there.push((*id, found == Some(*id)));
        }
        Ok(are_there)
    }
}
