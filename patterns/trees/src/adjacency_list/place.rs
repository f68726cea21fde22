//! Finding the siblings around a place.

use keyloom::{Order, Reader, Result};

use super::AdjacencyList;
use super::link::Link;
use crate::rank::Rank;
use crate::tree::TreeError;
use crate::{InsertAt, NodeId, TreeNode};

/// A child entry without its parent. Siblings are ordered by rank, then by id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sibling {
    pub(super) rank: Rank,
    pub(super) id: NodeId,
}

/// A gap between two children of a parent; `None` means that there is no child on that side.
#[derive(Debug)]
pub(super) struct Gap {
    pub(super) parent: Option<NodeId>,
    pub(super) low: Option<Sibling>,
    pub(super) high: Option<Sibling>,
}

impl Gap {
    /// Whether a child of the parent is already in this gap.
    pub(super) fn holds(&self, link: &Link, id: NodeId) -> bool {
        let sibling = Sibling { rank: link.rank.clone(), id };
        self.parent == link.parent
            && self.low.as_ref().is_none_or(|low| *low < sibling)
            && self.high.as_ref().is_none_or(|high| sibling < *high)
    }
}

/// The parent of a place. `link` is the link of the node that the place [names](InsertAt::named).
pub(super) fn parent(place: InsertAt, link: Option<&Link>) -> Option<NodeId> {
    match place {
        InsertAt::Before(_) | InsertAt::After(_) => link.and_then(|link| link.parent),
        _ => place.named(),
    }
}

impl<V, C> AdjacencyList<V, C> {
    /// The children of a parent starting with `from`, excluding `without`.
    pub(super) fn siblings<'r, R: Reader>(
        &self,
        reader: &'r R,
        parent: Option<NodeId>,
        from: Option<&Sibling>,
        order: Order,
        without: Option<NodeId>,
    ) -> Result<impl Iterator<Item = Result<(Sibling, R::Bytes<'r>)>> + use<'r, V, C, R>> {
        let mut range = self.entries_of(parent);
        if let Some(Sibling { rank, id }) = from {
            let key = self.child_key(&Link { parent, rank: rank.clone() }, *id);
            let back = match order {
                Order::Ascending => Order::Descending,
                Order::Descending => Order::Ascending,
            };
            range = range.up_to(back, &key).into_owned();
        }
        let children = self.children.child(&(parent,));
        let entries = reader.range(range, order)?.map(move |entry| {
            let (key, stored) = entry?;
            let (rank, id): (std::borrow::Cow<'_, [u8]>, _) =
                children.unpack(&key).map_err(|error| keyloom::Error::from(error).at(&key))?;
            Ok((Sibling { rank: Rank::from_slice(&rank), id }, stored))
        });
        Ok(entries.filter(move |entry| match entry {
            Ok((sibling, _)) => Some(sibling.id) != without,
            Err(_) => true,
        }))
    }

    /// The gap that a place stands for, ignoring the child `without`. `link` is the link of the
    /// node that the place [names](InsertAt::named).
    pub(super) fn gap(
        &self,
        reader: &impl Reader,
        without: Option<NodeId>,
        name: &str,
        place: InsertAt,
        link: Option<&Link>,
    ) -> Result<Gap> {
        let parent = parent(place, link);
        let mut gap = Gap { parent, low: None, high: None };
        let walk =
            |from: Option<&Sibling>, order| self.siblings(reader, parent, from, order, without);
        match (place, link) {
            (InsertAt::Before(id) | InsertAt::After(id), Some(link)) => {
                let beside = Sibling { rank: link.rank.clone(), id };
                let order = match place {
                    InsertAt::Before(_) => Order::Descending,
                    _ => Order::Ascending,
                };
                // The first entry is the sibling itself.
                let mut from_it = walk(Some(&beside), order)?;
                from_it.next().transpose()?;
                let next = from_it.next().transpose()?.map(|(sibling, _)| sibling);
                drop(from_it);
                let ends = (Some(beside), next);
                (gap.high, gap.low) = match place {
                    InsertAt::Before(_) => ends,
                    _ => (ends.1, ends.0),
                };
            }
            (InsertAt::Last(_), _) => {
                let last = walk(None, Order::Descending)?.next().transpose()?;
                gap.low = last.map(|(sibling, _)| sibling);
            }
            (InsertAt::At(_, position), _) => {
                let mut others = walk(None, Order::Ascending)?;
                for children in 0..position {
                    let Some(other) = others.next() else {
                        return Err(TreeError::NoSuchPosition { parent, position, children }.into());
                    };
                    gap.low = Some(other?.0);
                }
                gap.high = others.next().transpose()?.map(|(sibling, _)| sibling);
            }
            (InsertAt::Sorted(_), _) => {
                for other in walk(None, Order::Ascending)? {
                    let (sibling, stored) = other?;
                    let node = TreeNode::<_, V, C>::new(sibling.id, stored, 0);
                    if node.name()? > name {
                        gap.high = Some(sibling);
                        break;
                    }
                    gap.low = Some(sibling);
                }
            }
            _ => {
                let first = walk(None, Order::Ascending)?.next().transpose()?;
                gap.high = first.map(|(sibling, _)| sibling);
            }
        }
        Ok(gap)
    }
}
