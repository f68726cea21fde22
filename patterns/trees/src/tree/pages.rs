//! Pages of children and of descendants. A continuation holds the id of the last node of a page.

use keyloom::{Order, Reader, Result, Subspace};
use keyloom_kit::{Continuation, InOrder, Page};

use super::node::NodeId;
use super::{NodeOf, Tree, VisitOf};

/// The pages of one walk. Continuations of other walks are refused.
struct Pages {
    space: Subspace,
    order: Order,
}

impl Pages {
    /// The pages of the children or the descendants of a node; `of` names the kind of walk.
    fn new(tree: &Subspace, of: &str, from: Option<NodeId>, order: Order) -> Self {
        Self { space: tree.child(&(of, from)), order }
    }

    /// The last node of the previous page.
    fn last(&self, after: Option<&Continuation>) -> Result<Option<NodeId>> {
        let Some(after) = after else { return Ok(None) };
        let key = after.last_key(&self.space.range(), self.order)?;
        Ok(Some(self.space.unpack(key)?))
    }

    /// Returns the first `limit` nodes (at least one), and a continuation if more nodes follow.
    fn page<T>(
        &self,
        nodes: impl Iterator<Item = Result<T>>,
        limit: usize,
        id: impl Fn(&T) -> NodeId,
    ) -> Result<Page<T>> {
        let limit = limit.max(1);
        let mut items = nodes.take(limit.saturating_add(1)).collect::<Result<Vec<T>>>()?;
        let has_more = items.len() > limit;
        items.truncate(limit);
        let last = items.last().filter(|_| has_more).map(id);
        let next = last
            .map(|id| Continuation::behind(&self.space.pack(&id), &self.space.range(), self.order));
        Ok(Page { items, next })
    }
}

pub(super) fn children<'r, T: Tree, R: Reader>(
    tree: &T,
    reader: &'r R,
    parent: InOrder<Option<NodeId>>,
    limit: usize,
    after: Option<&Continuation>,
) -> Result<Page<NodeOf<'r, T, R>>> {
    let pages = Pages::new(tree.space(), "children", parent.of, parent.order);
    match pages.last(after)? {
        None => pages.page(tree.children(reader, parent)?, limit, |node| node.id()),
        Some(last) => {
            let rest = tree.children_after(reader, parent, last)?;
            pages.page(rest, limit, |node| node.id())
        }
    }
}

pub(super) fn descendants<'r, T: Tree, R: Reader>(
    tree: &T,
    reader: &'r R,
    from: Option<NodeId>,
    depths: impl std::ops::RangeBounds<u32>,
    limit: usize,
    after: Option<&Continuation>,
) -> Result<Page<VisitOf<'r, T, R>>> {
    let pages = Pages::new(tree.space(), "descendants", from, Order::Ascending);
    match pages.last(after)? {
        None => pages.page(tree.descendants(reader, from, depths)?, limit, |visit| visit.node.id()),
        Some(last) => {
            let rest = tree.descendants_after(reader, from, last, depths)?;
            pages.page(rest, limit, |visit| visit.node.id())
        }
    }
}
