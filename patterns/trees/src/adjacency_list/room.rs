//! Assigns ranks to new nodes, and new ranks to their siblings if ranks would become long.

use std::iter::Peekable;

use keyloom::{Limits, Order, Reader, Result, Writer};

use super::AdjacencyList;
use super::link::Link;
use super::place::{Gap, Sibling};
use crate::rank::{self, Rank};
use crate::{NodeId, TreeError};

/// Siblings are relabelled if a new rank would be longer than its neighbours and reach a multiple
/// of this length.
// A smaller step relabels siblings more often; a larger step leaves longer ranks.
pub(super) const STEP_BYTES: usize = 16;
/// Enough siblings are relabelled to make the ranks at least this many bytes shorter.
// With a smaller gain, siblings are soon relabelled again; a larger gain needs more siblings.
const WON_BYTES: usize = 8;
/// The number of siblings relabelled on each side: initial and maximum.
// The number doubles until the ranks are short. A lower maximum leaves long ranks among many
// siblings; a higher maximum writes more siblings in one insertion.
const SIBLINGS: (usize, usize) = (16, 512);
/// The maximum length of a rank. To stay below it, more siblings are relabelled.
// A link stores the length in seven bits, and a rank may exceed this maximum by less than
// `STEP_BYTES`.
const LONGEST_BYTES: usize = 100;

/// The number of keys that a new rank of a sibling writes: its record, and the old and the new
/// entry of the child.
const KEYS_PER_SIBLING: usize = 3;

/// What one transaction may write on each side of a gap. Half of the transaction is left for the
/// change itself. Bytes are counted once, but a store may count each several times.
#[derive(Clone, Copy)]
struct Budget {
    siblings: usize,
    bytes: usize,
}

impl Budget {
    fn of(limits: &Limits) -> Self {
        let siblings = limits.max_transaction_operations.unwrap_or(usize::MAX);
        let bytes = limits.max_transaction_bytes.map_or(usize::MAX, |most| most / 4 / 2);
        Self { siblings: (siblings / 2 / KEYS_PER_SIBLING / 2).max(1), bytes }
    }

    /// Counts a sibling, and returns whether it fits. If it does not, no other sibling fits.
    fn takes(&mut self, bytes: usize) -> bool {
        let rest = (self.siblings.checked_sub(1), self.bytes.checked_sub(bytes));
        let (Some(siblings), Some(bytes)) = rest else {
            self.siblings = 0;
            return false;
        };
        *self = Self { siblings, bytes };
        true
    }
}

/// Ranks for the nodes inserted into a gap.
pub(super) struct Room {
    pub(super) ranks: Vec<Rank>,
    /// Siblings with their new ranks and stored bytes.
    moved: Vec<(Sibling, Rank, Vec<u8>)>,
}

impl<V, C> AdjacencyList<V, C> {
    /// Assigns ranks to `count` nodes in a gap. `without` is a child that leaves the parent.
    pub(super) fn room(
        &self,
        reader: &impl Reader,
        gap: &Gap,
        count: usize,
        without: Option<NodeId>,
        limits: &Limits,
    ) -> Result<Room> {
        let ends = [&gap.low, &gap.high].map(|end| end.as_ref().map(|sibling| &*sibling.rank));
        let neighbours = ends.iter().flatten().map(|rank| rank.len()).max().unwrap_or(0);
        let step = (neighbours / STEP_BYTES + 1) * STEP_BYTES;
        let ranks = match count {
            1 => rank::between(ends[0], ends[1]).map(|rank| vec![rank]),
            _ => rank::spread(ends[0], ends[1], count),
        };
        match ranks {
            Some(ranks) if longest(&ranks) < step => Ok(Room { ranks, moved: Vec::new() }),
            _ => {
                let budget = Budget::of(limits);
                self.rank_again(reader, gap, (count, without), step - WON_BYTES, budget)
            }
        }
    }

    /// Gives short ranks to the new nodes and to some siblings around a gap. Doubles the number of
    /// siblings until the ranks are short, or until the budget takes no more.
    fn rank_again(
        &self,
        reader: &impl Reader,
        gap: &Gap,
        (count, without): (usize, Option<NodeId>),
        short: usize,
        budget: Budget,
    ) -> Result<Room> {
        let walk = |from: &Option<Sibling>, order| {
            let walk = match from {
                Some(from) => {
                    Some(self.siblings(reader, gap.parent, Some(from), order, without)?)
                }
                None => None,
            };
            let read = |entry: Result<(Sibling, _)>| {
                entry.map(|(sibling, stored)| (sibling, bytes(stored)))
            };
            Ok::<_, keyloom::Error>(walk.into_iter().flatten().map(read).peekable())
        };
        let bytes_of = |(sibling, stored): &Stored| {
            let link = Link { parent: gap.parent, rank: sibling.rank.clone() };
            let entry = self.child_key(&link, sibling.id).len();
            // Its record, and the new and the old entry of the child.
            self.node_key(sibling.id).len() + 2 * (entry + stored.len())
        };
        let mut below = walk(&gap.low, Order::Descending)?;
        let mut above = walk(&gap.high, Order::Ascending)?;
        let (mut before, mut behind) = (Vec::new(), Vec::new());
        let mut rest = [budget; 2];
        let (mut size, most) = SIBLINGS;
        loop {
            let [down, up] = &mut rest;
            let low = read_up_to(&mut below, &mut before, size, |one| down.takes(bytes_of(one)))?;
            let high = read_up_to(&mut above, &mut behind, size, |one| up.takes(bytes_of(one)))?;
            let is_spent = rest.iter().any(|side| side.siblings == 0);
            let ends = [&low, &high].map(|end| end.as_deref());
            if let Some(ranks) = Ranks::spread(ends, [before.len(), count, behind.len()]) {
                let longest = ranks.longest();
                let is_all = low.is_none() && high.is_none();
                if longest < short
                    || ((is_spent || size >= most) && longest < LONGEST_BYTES)
                    || is_all
                {
                    return Ok(ranks.room(before, behind));
                }
            }
            if is_spent {
                let keys = (before.len() + behind.len()) as u64 * KEYS_PER_SIBLING as u64;
                return Err(TreeError::NoRoom { tree: self.space.named(), keys }.into());
            }
            size *= 2;
        }
    }

    /// Writes the new ranks of siblings.
    pub(super) fn write_again(
        &self,
        txn: &mut impl Writer,
        parent: Option<NodeId>,
        room: &Room,
    ) -> Result<()> {
        for (Sibling { rank, id }, new, stored) in &room.moved {
            let [old, new] = [rank, new].map(|rank| Link { parent, rank: rank.clone() });
            txn.delete(&self.child_key(&old, *id))?;
            self.write(txn, *id, &new, stored)?;
        }
        Ok(())
    }

    /// Writes the record of a node and its child entry.
    pub(super) fn write(
        &self,
        txn: &mut impl Writer,
        id: NodeId,
        link: &Link,
        stored: &[u8],
    ) -> Result<()> {
        txn.put(&self.node_key(id), &link.record(stored))?;
        txn.put(&self.child_key(link, id), stored)
    }
}

fn bytes(stored: impl std::ops::Deref<Target = [u8]>) -> Vec<u8> {
    stored.to_vec()
}

type Stored = (Sibling, Vec<u8>);

/// Reads until there are `count` siblings, or one does not fit; returns the rank of the next
/// sibling.
fn read_up_to(
    walk: &mut Peekable<impl Iterator<Item = Result<Stored>>>,
    siblings: &mut Vec<Stored>,
    count: usize,
    mut takes: impl FnMut(&Stored) -> bool,
) -> Result<Option<Rank>> {
    loop {
        let next = match walk.peek() {
            None => return Ok(None),
            Some(Ok(next)) => next,
            // Return the error.
            Some(Err(_)) => return walk.next().transpose().map(|_| None),
        };
        if siblings.len() == count || !takes(next) {
            return Ok(Some(next.0.rank.clone()));
        }
        siblings.extend(walk.next().transpose()?);
    }
}

fn longest(ranks: &[Rank]) -> usize {
    ranks.iter().map(|rank| rank.len()).max().unwrap_or(0)
}

/// Ranks for the siblings before a gap, for the new nodes, and for the siblings after it.
pub(super) struct Ranks {
    pub(super) before: Vec<Rank>,
    within: Vec<Rank>,
    pub(super) behind: Vec<Rank>,
}

impl Ranks {
    /// Spreads ranks between two ranks. More inserts at the same place are likely, so the gap
    /// itself keeps half of the room.
    pub(super) fn spread(
        [low, high]: [Option<&[u8]>; 2],
        [before, count, behind]: [usize; 3],
    ) -> Option<Self> {
        if low.is_none() || high.is_none() {
            let mut ranks = rank::spread(low, high, before + count + behind)?;
            let behind = ranks.split_off(before + count);
            let within = ranks.split_off(before);
            return Some(Self { before: ranks, within, behind });
        }
        let middle = rank::between(low, high)?;
        let first = rank::between(low, Some(&middle))?;
        let last = rank::between(Some(&middle), high)?;
        Some(Self {
            before: rank::spread(low, Some(&first), before)?,
            within: rank::spread(Some(&first), Some(&last), count)?,
            behind: rank::spread(Some(&last), high, behind)?,
        })
    }

    fn longest(&self) -> usize {
        [&self.before, &self.within, &self.behind]
            .map(|ranks| longest(ranks))
            .into_iter()
            .fold(0, usize::max)
    }

    /// Both `before` and `behind` start at the gap, so `before` is in reverse order.
    fn room(self, before: Vec<Stored>, behind: Vec<Stored>) -> Room {
        let siblings = before.into_iter().rev().chain(behind);
        let ranks = self.before.into_iter().chain(self.behind);
        let moved = siblings.zip(ranks).map(|((sibling, stored), rank)| (sibling, rank, stored));
        let moved = moved.filter(|(sibling, rank, _)| sibling.rank != *rank).collect();
        Room { ranks: self.within, moved }
    }
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_BYTES, STEP_BYTES};

    #[test]
    fn the_length_of_a_rank_fits_its_byte() {
        const { assert!(LONGEST_BYTES + STEP_BYTES < 0x80) };
    }
}
