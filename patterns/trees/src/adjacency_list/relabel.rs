//! Gives the siblings around a gap short ranks again, in steps.

use std::ops::{ControlFlow, Deref};

use keyloom::value::Codec;
use keyloom::{Error, KeyRange, Order, Reader, Result, Store, Writer};
use keyloom_kit::{BatchSize, Progress};

use super::AdjacencyList;
use super::link::Link;
use super::place::Sibling;
use super::room::{Ranks, STEP_BYTES};
use crate::rank::{self, Rank};
use crate::tree::REPLANS;
use crate::{InsertAt, NodeId};

/// The number of siblings that one transaction moves, if the store accepts that many. Each takes
/// three keys.
const BATCH: usize = 1_000;

/// Siblings with their new ranks, in the order in which they move.
type Moves = Vec<(Sibling, Rank)>;

impl<V, C: Codec<V>> AdjacencyList<V, C> {
    pub(super) fn make_room_at<S: Store>(
        &self,
        store: &S,
        (name, place, nodes): (&str, InsertAt, u64),
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let (mut size, mut done, mut replans) = (BatchSize::new(BATCH), Progress::default(), 0);
        while let Some((parent, moves)) = self.moves(&store.snapshot()?, name, place, nodes)? {
            let mut rest = &*moves;
            while !rest.is_empty() {
                let moved = size.transact(store, |txn, batch| {
                    self.move_some(txn, parent, rest.get(..batch).unwrap_or(rest))
                })?;
                if moved == 0 {
                    break;
                }
                replans = 0;
                rest = rest.get(moved..).unwrap_or_default();
                done.records += moved as u64;
                done.written += 3 * moved as u64;
                if progress(&done).is_break() {
                    return Ok(done);
                }
            }
            if !rest.is_empty() {
                // Another writer has changed the siblings: plan again.
                replans += 1;
                if replans > REPLANS {
                    return Err(Error::Conflict { what: self.space.named().into() });
                }
            }
        }
        done.finished = true;
        let _ = progress(&done);
        Ok(done)
    }

    /// The new ranks of the siblings around a gap whose ranks are long; `None` if a rank in the gap
    /// is short.
    fn moves(
        &self,
        reader: &impl Reader,
        name: &str,
        place: InsertAt,
        nodes: u64,
    ) -> Result<Option<(Option<NodeId>, Moves)>> {
        let target = place.named();
        let link = match target {
            Some(id) => self.find(reader, id)?.map(|(link, _)| link),
            None => None,
        };
        let link = self.expect_target(target, link)?;
        let gap = self.gap(reader, None, name, place, link.as_ref())?;
        let ends = [&gap.low, &gap.high].map(|end| end.as_ref().map(|sibling| &*sibling.rank));
        if rank::between(ends[0], ends[1]).is_some_and(|rank| rank.len() < STEP_BYTES) {
            return Ok(None);
        }
        let crowd = |from: &Option<Sibling>, order| match from {
            Some(from) => crowded(self.siblings(reader, gap.parent, Some(from), order, None)?),
            None => Ok((Vec::new(), None)),
        };
        let (mut before, low) = crowd(&gap.low, Order::Descending)?;
        let (behind, high) = crowd(&gap.high, Order::Ascending)?;
        before.reverse();
        let count = rank::places(nodes);
        let ranks =
            Ranks::spread([low.as_deref(), high.as_deref()], [before.len(), count, behind.len()]);
        let Some(ranks) = ranks else { return Ok(None) };
        let siblings: Vec<Sibling> = before.into_iter().chain(behind).collect();
        let ranks: Vec<Rank> = ranks.before.into_iter().chain(ranks.behind).collect();
        let both = siblings.iter().zip(&ranks).map(|(old, new)| (&*old.rank, &**new));
        let in_turn = rank::in_turn(both).into_iter();
        let moves = in_turn.filter_map(|n| Some((siblings.get(n)?.clone(), ranks.get(n)?.clone())));
        Ok(Some((gap.parent, moves.collect())))
    }

    /// Moves siblings one after another, up to the first one that another writer has moved, or that
    /// would pass another child. Returns the number of siblings moved.
    fn move_some(
        &self,
        txn: &mut impl Writer,
        parent: Option<NodeId>,
        moves: &[(Sibling, Rank)],
    ) -> Result<usize> {
        txn.guarded(|txn| {
            let keys: Vec<_> = moves.iter().map(|(sibling, _)| self.node_key(sibling.id)).collect();
            let records = txn.get_many(&keys)?;
            let stored: Vec<Option<Vec<u8>>> =
                records.into_iter().map(|record| record.map(|record| record.to_vec())).collect();
            for (n, ((Sibling { rank, id }, new), record)) in moves.iter().zip(stored).enumerate() {
                let (old, new) = [rank, new].map(|rank| Link { parent, rank: rank.clone() }).into();
                let found = record.as_ref().and_then(|record| {
                    let (link, at) = Link::decode(record).ok()?;
                    (link == old).then(|| record.get(at..).unwrap_or_default())
                });
                let Some(stored) = found else { return Ok(n) };
                let [from, to] = [&old, &new].map(|link| self.child_key(link, *id));
                let way = match from < to {
                    true => KeyRange::half_open(&from, &to).after(&from),
                    false => KeyRange::half_open(&to, &from),
                };
                if txn.first(way)?.is_some() {
                    return Ok(n);
                }
                txn.delete(&from)?;
                self.write(txn, *id, &new, stored)?;
            }
            Ok(moves.len())
        })
    }
}

/// The adjacent siblings with long ranks, and the rank of the next sibling.
fn crowded<B: Deref<Target = [u8]>>(
    siblings: impl Iterator<Item = Result<(Sibling, B)>>,
) -> Result<(Vec<Sibling>, Option<Rank>)> {
    let mut crowd = Vec::new();
    for sibling in siblings {
        let (sibling, _) = sibling?;
        if sibling.rank.len() <= rank::SHORT {
            return Ok((crowd, Some(sibling.rank)));
        }
        crowd.push(sibling);
    }
    Ok((crowd, None))
}
