//! Computes the path of a node from its place among siblings.

use keyloom::{Error, KeyBuf, KeyRange, Limits, Order, Reader, Result};

use super::super::rank;
use super::super::tree::TreeError;
use super::super::{InsertAt, NodeId, TreeNode};
use super::layout::{Layout, Located, foreign};
use super::path::{Path, by_name, by_rank, is_within};
use super::steps::{Phase, Steps};
use super::walk::{BoundedWalk, Origin};

/// The maximum length of a rank; a longer rank relabels the siblings around it.
// The keys of all descendants contain the rank. A higher limit allows longer keys; a lower limit
// rewrites subtrees more often.
const LONGEST_RANK: usize = 16;
/// The maximum length of a rank beside siblings that cannot be relabelled in one transaction.
// A longer rank leaves fewer levels to the descendants. A lower limit refuses inserts earlier: each
// byte takes about 8 inserts at one place.
const MOST_RANK: usize = 64;
/// The number of siblings that are relabelled on each side, and the maximum length of their new
/// ranks. If the ranks would be longer, the next entry is tried.
// Few siblings with short ranks cost the fewest writes. More siblings or longer ranks are tried
// only if there is no room for the previous entry.
const SPREAD: [(usize, usize); 4] = [(32, 8), (128, 8), (512, 8), (1_000, 12)];
/// The maximum number of nodes that a relabelling rewrites. Beyond that, ranks keep growing.
// Bounds the writes of an insertion. With a lower limit, ranks beside large subtrees get longer.
const MOST_SPREAD: u64 = 1_000;
/// The number of keys that a relabelled node takes: its record, the entry of its id, and the
/// deleted range if it is a sibling.
const KEYS_PER_NODE: u64 = 3;
/// If not all long ranks can be relabelled, relabelling must make the new rank shorter by this many
/// bytes.
// With a smaller gain, siblings are soon relabelled again; a larger gain needs more siblings.
const WON_BYTES: usize = 8;

/// The number of nodes and of bytes that a relabelling may still rewrite.
#[derive(Clone, Copy)]
struct Budget {
    nodes: u64,
    bytes: usize,
}

impl Budget {
    /// Half of a transaction, since the other half is left for the change itself. Bytes are counted
    /// once, but a store may count each several times.
    fn of(limits: &Limits) -> Self {
        let keys = limits.max_transaction_operations.map_or(u64::MAX, |most| most as u64 / 2);
        let bytes = limits.max_transaction_bytes.map_or(usize::MAX, |most| most / 4);
        Self { nodes: MOST_SPREAD.min(keys / KEYS_PER_NODE), bytes }
    }

    /// Counts a node, and returns whether it fits.
    fn takes(&mut self, bytes: usize) -> bool {
        let rest = (self.nodes.checked_sub(1), self.bytes.checked_sub(bytes));
        let (Some(nodes), Some(bytes)) = rest else { return false };
        (self.nodes, self.bytes) = (nodes, bytes);
        true
    }
}

/// A node to be placed.
pub(super) struct Placing<'p> {
    pub(super) id: NodeId,
    pub(super) name: &'p str,
    pub(super) place: InsertAt,
    /// The current path of the node, if the node is being moved.
    pub(super) moved: Option<&'p Path>,
}

/// The new path of a node, and the siblings that get new ranks.
pub(super) struct Placed {
    /// `None` if the node keeps its path.
    pub(super) path: Option<Path>,
    pub(super) spread: Vec<(Path, Path)>,
}

/// A position among siblings.
enum Slot {
    First,
    Last,
    Before(Path),
    After(Path),
}

/// The path and the record of the next child, if there is one.
type Child<B> = Option<(Path, B)>;
/// Adjacent siblings, and the rank of the next sibling after them.
type Crowd = (Vec<Path>, Option<Vec<u8>>);

impl Layout {
    /// Computes the path of a node. `named` is the path of the node that the place names.
    pub(super) fn placed(
        &self,
        reader: &impl Reader,
        node: &Placing<'_>,
        named: &Path,
        steps: Option<&Steps>,
        limits: &Limits,
    ) -> Result<Placed> {
        if node.moved.is_some() && node.place.is_beside(node.id) {
            return match self.names() {
                true => Err(self.ordered_by_name()),
                false => Ok(Placed { path: None, spread: Vec::new() }),
            };
        }
        if let Some(moved) = node.moved
            && let Some(target) = node.place.named()
            && is_within(named, moved)
        {
            return Err(TreeError::BelowItself { node: node.id, target }.into());
        }
        let parent = match node.place {
            InsertAt::Before(_) | InsertAt::After(_) => self.segments.parent(named).into(),
            _ => named.clone(),
        };
        if let Some(steps) = steps.filter(|steps| steps.holds(&parent)) {
            return Err(self.in_steps(steps));
        }
        let placed = match self.names() {
            true => self.by_name(reader, node, &parent, steps)?,
            false => self.by_rank(reader, node, (&parent, named), steps, limits)?,
        };
        if let Some(path) = &placed.path {
            self.checked_key(node.id, path)?;
        }
        Ok(placed)
    }

    fn by_name(
        &self,
        reader: &impl Reader,
        node: &Placing<'_>,
        parent: &Path,
        steps: Option<&Steps>,
    ) -> Result<Placed> {
        let InsertAt::Sorted(below) = node.place else { return Err(self.ordered_by_name()) };
        let path = self.free_name(reader, (below, parent), node, steps)?;
        Ok(Placed { path: Some(path).filter(|path| Some(path) != node.moved), spread: Vec::new() })
    }

    /// Returns the path of a name below a parent, or an error if another node has the name.
    pub(super) fn free_name(
        &self,
        reader: &impl Reader,
        (parent, path): (Option<NodeId>, &[u8]),
        node: &Placing<'_>,
        steps: Option<&Steps>,
    ) -> Result<Path> {
        let path = by_name(path, node.name);
        if Some(&path) == node.moved {
            return Ok(path);
        }
        if let Some(steps) = steps.filter(|steps| steps.hidden() == Some(&path)) {
            return Err(self.in_steps(steps));
        }
        let key = self.checked_key(node.id, &path)?;
        self.refuse_taken(parent, node.name, &key, reader.get(&key)?.as_deref())?;
        Ok(path)
    }

    /// Refuses a name whose path already has a record.
    pub(super) fn refuse_taken(
        &self,
        parent: Option<NodeId>,
        name: &str,
        key: &[u8],
        record: Option<&[u8]>,
    ) -> Result<()> {
        let Some(record) = record else { return Ok(()) };
        let taken_by = self.id_at(key, record)?;
        Err(TreeError::NameTaken { parent, name: name.into(), taken_by }.into())
    }

    fn by_rank(
        &self,
        reader: &impl Reader,
        node: &Placing<'_>,
        (parent, named): (&Path, &Path),
        steps: Option<&Steps>,
        limits: &Limits,
    ) -> Result<Placed> {
        let hidden = steps.and_then(Steps::hidden);
        let slot = self.slot(reader, node, (parent, named), hidden)?;
        let (low, high) = self.neighbours(reader, parent, &slot, node.moved)?;
        let (low, high) = self.beside_copy(reader, (parent, node.moved), (low, high), steps)?;
        let stays = node.moved.is_some_and(|moved| {
            self.segments.parent(moved) == &parent[..]
                && low.as_ref().is_none_or(|low| low < moved)
                && high.as_ref().is_none_or(|high| moved < high)
        });
        if stays {
            return Ok(Placed { path: None, spread: Vec::new() });
        }
        let rank = rank::between(
            self.rank(low.as_ref())?.as_deref(),
            self.rank(high.as_ref())?.as_deref(),
        );
        let rank = rank.ok_or_else(|| foreign(&self.key(low.as_ref().unwrap_or(parent))))?;
        if rank.len() > LONGEST_RANK {
            let (budget, longest) = (Budget::of(limits), rank.len());
            let around = (parent, low, high);
            if let Some(spread) = self.spread(reader, node, around, steps, budget, longest)? {
                return Ok(spread);
            }
            if longest > MOST_RANK {
                let keys = budget.nodes * KEYS_PER_NODE;
                return Err(TreeError::NoRoom { tree: self.space.named(), keys }.into());
            }
        }
        Ok(Placed { path: Some(by_rank(parent, &rank, node.id)), spread: Vec::new() })
    }

    fn rank(&self, path: Option<&Path>) -> Result<Option<Vec<u8>>> {
        let rank = |path: &Path| self.segments.rank(path).ok_or_else(|| foreign(&self.key(path)));
        path.map(rank).transpose()
    }

    fn slot(
        &self,
        reader: &impl Reader,
        node: &Placing<'_>,
        (parent, named): (&Path, &Path),
        hidden: Option<&Path>,
    ) -> Result<Slot> {
        Ok(match node.place {
            InsertAt::First(_) | InsertAt::At(_, 0) => Slot::First,
            InsertAt::Last(_) => Slot::Last,
            InsertAt::Before(_) => Slot::Before(named.clone()),
            InsertAt::After(_) => Slot::After(named.clone()),
            InsertAt::At(below, position) => {
                let mut others = self.others(reader, parent, node.moved, hidden)?;
                let mut children = 0;
                while let Some((child, _)) = others()? {
                    children += 1;
                    if children == position {
                        return Ok(Slot::After(child));
                    }
                }
                return Err(TreeError::NoSuchPosition { parent: below, position, children }.into());
            }
            InsertAt::Sorted(_) => {
                let mut others = self.others(reader, parent, node.moved, hidden)?;
                while let Some((child, record)) = others()? {
                    let other = TreeNode::<_, (), ()>::new(0, record, self.header());
                    if other.name()? > node.name {
                        return Ok(Slot::Before(child));
                    }
                }
                Slot::Last
            }
        })
    }

    /// The children of a parent without the node being moved.
    fn others<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: &Path,
        moved: Option<&Path>,
        hidden: Option<&Path>,
    ) -> Result<impl FnMut() -> Result<Child<R::Bytes<'r>>> + use<'r, R>> {
        let origin = Origin::new(self, (None, parent), &(1..=1));
        let range = origin.range();
        let hidden = hidden.map(|hidden| &hidden[..]);
        let mut walk = BoundedWalk::open(reader, origin, range, Order::Ascending, hidden)?;
        let (layout, moved) = (self.clone(), moved.cloned());
        Ok(move || {
            while let Some((key, record)) = walk.entry()? {
                let child = layout.path(&key);
                if moved.as_ref().is_none_or(|moved| child != &moved[..]) {
                    return Ok(Some((child.into(), record)));
                }
            }
            Ok(None)
        })
    }

    /// The siblings on both sides of a slot. Includes hidden siblings, because their ranks are
    /// taken too.
    fn neighbours(
        &self,
        reader: &impl Reader,
        parent: &Path,
        slot: &Slot,
        moved: Option<&Path>,
    ) -> Result<(Option<Path>, Option<Path>)> {
        let next = |from| self.beside(reader, parent, from, Order::Ascending, moved);
        let previous = |from| self.beside(reader, parent, from, Order::Descending, moved);
        Ok(match slot {
            Slot::First => (None, next(None)?),
            Slot::Last => (previous(None)?, None),
            Slot::Before(sibling) => (previous(Some(sibling))?, Some(sibling.clone())),
            Slot::After(sibling) => (Some(sibling.clone()), next(Some(sibling))?),
        })
    }

    /// The neighbours of a new node. If they are the two places of a sibling that gets another rank
    /// in steps, the new node would be on the other side of the sibling after the steps. So both
    /// places must be on the same side of it.
    fn beside_copy(
        &self,
        reader: &impl Reader,
        (parent, moved): (&Path, Option<&Path>),
        (low, high): (Option<Path>, Option<Path>),
        steps: Option<&Steps>,
    ) -> Result<(Option<Path>, Option<Path>)> {
        let copying = steps.filter(|steps| steps.phase == Phase::Copying);
        let Some(Steps { from, to: Some(to), .. }) = copying else { return Ok((low, high)) };
        let beside = |order| self.beside(reader, parent, Some(to), order, moved);
        Ok(match (low.as_ref() == Some(from), high.as_ref() == Some(from)) {
            // Behind the sibling.
            (true, _) if high.as_ref() == Some(to) => (high, beside(Order::Ascending)?),
            // Before the sibling.
            (_, true) if low.as_ref() == Some(to) => (beside(Order::Descending)?, low),
            _ => (low, high),
        })
    }

    /// The next child after `from` in `order`; without `from`, the first child in `order`. Skips
    /// the node being moved.
    pub(super) fn beside(
        &self,
        reader: &impl Reader,
        parent: &[u8],
        from: Option<&Path>,
        order: Order,
        moved: Option<&Path>,
    ) -> Result<Option<Path>> {
        let mut from = from.cloned();
        loop {
            let range = self.rest(parent, from.as_deref(), order);
            let entry = match order {
                Order::Ascending => reader.first(range)?,
                Order::Descending => reader.last(range)?,
            };
            let Some((key, _)) = entry else { return Ok(None) };
            let below = self.path(&key).get(parent.len()..).unwrap_or_default();
            let segment = self.segments.cut(below, 1).ok_or_else(|| foreign(&key))?;
            let child = super::path::joined(parent, segment);
            if Some(&child) != moved {
                return Ok(Some(child));
            }
            from = Some(child);
        }
    }

    /// The range of the children of a parent, with their descendants, that follow the child `from`
    /// in `order`.
    pub(super) fn rest(
        &self,
        parent: &[u8],
        from: Option<&[u8]>,
        order: Order,
    ) -> KeyRange<'static> {
        let all = self.below(parent);
        match (from, order) {
            (None, _) => all,
            (Some(from), Order::Ascending) => all.intersect(self.behind(from)),
            (Some(from), Order::Descending) => all.before(&self.key(from)).into_owned(),
        }
    }

    /// Relabels the siblings around a slot whose ranks grew long; `longest` is the length of the
    /// new rank without that. Returns `None` if the relabelling would rewrite too many nodes. Also
    /// returns `None` if the node being placed moves from below one of these siblings, or if a move
    /// in steps affects one of them.
    fn spread(
        &self,
        reader: &impl Reader,
        node: &Placing<'_>,
        (parent, low, high): (&Path, Option<Path>, Option<Path>),
        steps: Option<&Steps>,
        budget: Budget,
        longest: usize,
    ) -> Result<Option<Placed>> {
        // The last attempt: as many siblings on each side as the budget takes.
        let each = usize::try_from(budget.nodes / 2).unwrap_or(usize::MAX);
        for (most, longest) in SPREAD.into_iter().chain([(each, longest - WON_BYTES)]) {
            let mut rest = budget;
            let mut crowd = |from: &Option<Path>, order| {
                let takes = |bytes| rest.takes(bytes);
                self.crowd(reader, (parent, node.moved), (from.clone(), most), order, takes)
            };
            let (Some((mut before, low)), Some((after, high))) =
                (crowd(&low, Order::Descending)?, crowd(&high, Order::Ascending)?)
            else {
                continue;
            };
            before.reverse();
            let place = before.len();
            let siblings = [before, after].concat();
            let moves = |path: &Path| {
                steps.is_some_and(|steps| steps.stands_on(path))
                    || node.moved.is_some_and(|moved| is_within(moved, path))
            };
            if siblings.iter().any(moves) {
                return Ok(None);
            }
            let ranks = rank::spread(low.as_deref(), high.as_deref(), siblings.len() + 1);
            let is_short = |rank: &rank::Rank| rank.len() <= longest;
            if let Some(ranks) = ranks.filter(|ranks| ranks.iter().all(is_short)) {
                return self.ranked(node, parent, siblings, ranks, place).map(Some);
            }
        }
        Ok(None)
    }

    /// Siblings with new ranks, and a node between them.
    fn ranked(
        &self,
        node: &Placing<'_>,
        parent: &Path,
        siblings: Vec<Path>,
        mut ranks: Vec<rank::Rank>,
        place: usize,
    ) -> Result<Placed> {
        let own = by_rank(parent, &ranks.remove(place), node.id);
        let mut spread = Vec::with_capacity(siblings.len());
        for (path, rank) in siblings.into_iter().zip(ranks) {
            let measured = self.segments.measure(&path);
            let id = measured.and_then(|found| found.id(&path));
            let id = id.ok_or_else(|| foreign(&self.key(&path)))?;
            spread.push((path, by_rank(parent, &rank, id)));
        }
        Ok(Placed { path: Some(own), spread })
    }

    /// Returns up to `most` adjacent siblings with long ranks, starting with `from`, and the rank
    /// of the next sibling. Passes the bytes of each node in their subtrees to `takes`, and returns
    /// `None` if it refuses one.
    fn crowd(
        &self,
        reader: &impl Reader,
        (parent, moved): (&Path, Option<&Path>),
        (from, most): (Option<Path>, usize),
        order: Order,
        mut takes: impl FnMut(usize) -> bool,
    ) -> Result<Option<Crowd>> {
        let (mut crowd, mut next) = (Vec::new(), from);
        while let Some(path) = next {
            let rank = self.segments.rank(&path).ok_or_else(|| foreign(&self.key(&path)))?;
            if rank.len() <= rank::SHORT || crowd.len() == most {
                return Ok(Some((crowd, Some(rank))));
            }
            for entry in reader.range(self.subtree(&path), Order::Ascending)? {
                let (key, record) = entry?;
                if !takes(key.len() + record.len()) {
                    return Ok(None);
                }
            }
            next = self.beside(reader, parent, Some(&path), order, moved)?;
            crowd.push(path);
        }
        Ok(Some((crowd, None)))
    }

    /// The parent of a slot, and the siblings around the slot whose ranks grew long with their new
    /// paths, in an order in which none passes another; `None` if a rank in the slot is short.
    pub(super) fn crowded(
        &self,
        reader: &impl Reader,
        node: &Placing<'_>,
        named: &Path,
        steps: Option<&Steps>,
        nodes: usize,
    ) -> Result<Option<Vec<(Path, Path)>>> {
        let parent: Path = match node.place {
            InsertAt::Before(_) | InsertAt::After(_) => self.segments.parent(named).into(),
            _ => named.clone(),
        };
        let slot = self.slot(reader, node, (&parent, named), steps.and_then(Steps::hidden))?;
        let (low, high) = self.neighbours(reader, &parent, &slot, None)?;
        let ends = (self.rank(low.as_ref())?, self.rank(high.as_ref())?);
        let rank = rank::between(ends.0.as_deref(), ends.1.as_deref());
        if rank.is_some_and(|rank| rank.len() <= LONGEST_RANK) {
            return Ok(None);
        }
        let side = |from, order| self.long_ranks(reader, &parent, from, order);
        let (mut siblings, low) = side(low, Order::Descending)?;
        siblings.reverse();
        let place = siblings.len();
        let (after, high) = side(high, Order::Ascending)?;
        siblings.extend(after);
        let count = siblings.len() + nodes;
        let Some(mut ranks) = rank::spread(low.as_deref(), high.as_deref(), count) else {
            return Ok(None);
        };
        ranks.drain(place..place + nodes);
        let mut paths = Vec::with_capacity(siblings.len());
        for ((path, _), rank) in siblings.iter().zip(&ranks) {
            let id = self.segments.measure(path).and_then(|found| found.id(path));
            let id = id.ok_or_else(|| foreign(&self.key(path)))?;
            paths.push((path.clone(), by_rank(&parent, rank, id)));
        }
        let both = siblings.iter().zip(&ranks).map(|((_, old), new)| (&**old, &**new));
        let in_turn = rank::in_turn(both).into_iter();
        Ok(Some(in_turn.filter_map(|n| paths.get(n).cloned()).collect()))
    }

    /// All adjacent siblings with long ranks, starting with `from`, and the rank of the next one.
    fn long_ranks(
        &self,
        reader: &impl Reader,
        parent: &Path,
        from: Option<Path>,
        order: Order,
    ) -> Result<(Vec<(Path, Vec<u8>)>, Option<Vec<u8>>)> {
        let (mut siblings, mut next) = (Vec::new(), from);
        while let Some(path) = next {
            let rank = self.segments.rank(&path).ok_or_else(|| foreign(&self.key(&path)))?;
            if rank.len() <= rank::SHORT {
                return Ok((siblings, Some(rank)));
            }
            next = self.beside(reader, parent, Some(&path), order, None)?;
            siblings.push((path, rank));
        }
        Ok((siblings, None))
    }

    /// The path of the node that a place names, which must exist; empty for the roots.
    pub(super) fn named(&self, located: &Located, n: usize, place: InsertAt) -> Result<Path> {
        place.named().map_or(Ok(KeyBuf::new()), |id| self.there(located, n, id))
    }

    /// Refuses to change nodes that are moved or deleted in steps.
    pub(super) fn refuse_in_steps(
        &self,
        steps: Option<&Steps>,
        meets: impl Fn(&Steps) -> bool,
    ) -> Result<(), Error> {
        match steps.filter(|steps| meets(steps)) {
            Some(steps) => Err(self.in_steps(steps)),
            None => Ok(()),
        }
    }
}
