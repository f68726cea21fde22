//! Pages of the results of a walk along a curve.

use std::ops::Deref;

use keyloom::{Order, Result, Subspace, Unpack};
use keyloom_kit::{Continuation, Page, RecordKey};

use super::located::Located;

/// A page of at most `limit` results of a query on the entries of `space`, beginning after the
/// continuation `after`.
///
/// The continuation consists of `query`, which names the query, `space`, and the key of the last
/// entry. It is valid only for this query and space. `walk` receives the first `elements` elements
/// of that key, and the key; the walk must begin after this key.
pub(super) fn page<B: Deref<Target = [u8]>, K: RecordKey, P, F: for<'k> Unpack<'k>, I>(
    query: &Subspace,
    (space, elements): (&Subspace, usize),
    limit: usize,
    after: Option<&Continuation>,
    walk: impl FnOnce(Option<(F, &[u8])>) -> Result<I>,
) -> Result<Page<Located<B, K, P>>>
where
    I: Iterator<Item = Result<Located<B, K, P>>>,
{
    let answers = query.child(space.prefix());
    let answer = |found: &Located<B, K, P>| [answers.prefix(), found.entry().entry_key()].concat();
    let whole = answers.self_and_children();
    let last = after.map(|after| after.last_key(&whole, Order::Ascending)).transpose()?;
    let last = last.map(|last| last.get(answers.prefix().len()..).unwrap_or_default());
    let from = match last {
        Some(last) => Some((first_elements(space, elements, last)?, last)),
        None => None,
    };
    let mut walk = walk(from)?;
    let items = walk.by_ref().take(limit).collect::<Result<Vec<_>>>()?;
    let has_more = limit > 0 && walk.next().transpose()?.is_some();
    let next = items
        .last()
        .filter(|_| has_more)
        .map(|last| Continuation::behind(&answer(last), &whole, Order::Ascending));
    Ok(Page { items, next })
}

/// The leading elements of the key of an entry.
fn first_elements<F: for<'k> Unpack<'k>>(
    space: &Subspace,
    elements: usize,
    key: &[u8],
) -> Result<F> {
    let leading = space.leading(key, elements)?.get(space.prefix().len()..);
    Ok(keyloom::unpack(leading.unwrap_or_default())?)
}
