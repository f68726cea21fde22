//! Pages of the results of a walk along a curve.

use std::ops::{Bound, Deref};

use keyloom::{KeyRange, Order, Result, Subspace, Unpack};

use super::located::Located;
use keyloom_tables::table::RecordKey;
use keyloom_tables::{Continuation, Page};

/// At most `limit` results of a query on the entries of `space`, beginning after `after`.
///
/// The continuation belongs to the query named by `query` and to this `space`: these two, followed
/// by the key of the last entry. `walk` receives the first `elements` elements of that key, and may
/// skip everything before them.
pub(super) fn page<B: Deref<Target = [u8]>, K: RecordKey, P, F: for<'k> Unpack<'k>, I>(
    query: &Subspace,
    (space, elements): (&Subspace, usize),
    limit: usize,
    after: Option<&Continuation>,
    walk: impl FnOnce(Option<F>) -> Result<I>,
) -> Result<Page<Located<B, K, P>>>
where
    I: Iterator<Item = Result<Located<B, K, P>>>,
{
    let answers = query.child(space.prefix());
    let answer = |found: &Located<B, K, P>| [answers.prefix(), found.entry().entry_key()].concat();
    let whole = answers.self_and_children();
    let rest = Continuation::resume(after, whole.clone(), Order::Ascending)?;
    let from = match after {
        Some(_) => first_elements(&answers, space, elements, &rest)?,
        None => None,
    };
    let is_seen = |found: &Result<Located<B, K, P>>| {
        found.as_ref().is_ok_and(|one| !rest.contains(&answer(one)))
    };
    let mut walk = walk(from)?.skip_while(is_seen);
    let items = walk.by_ref().take(limit).collect::<Result<Vec<_>>>()?;
    let has_more = limit > 0 && walk.next().transpose()?.is_some();
    let next = items
        .last()
        .filter(|_| has_more)
        .map(|last| Continuation::behind(&answer(last), &whole, Order::Ascending));
    Ok(Page { items, next })
}

/// The leading elements of the first key in a range of results.
fn first_elements<F: for<'k> Unpack<'k>>(
    answers: &Subspace,
    space: &Subspace,
    elements: usize,
    range: &KeyRange<'_>,
) -> Result<Option<F>> {
    let Some((Bound::Included(key) | Bound::Excluded(key), _)) = range.normalized() else {
        return Ok(None);
    };
    let key = key.get(answers.prefix().len()..).unwrap_or_default();
    let leading = space.leading(key, elements)?.get(space.prefix().len()..);
    Ok(Some(keyloom::unpack(leading.unwrap_or_default())?))
}
