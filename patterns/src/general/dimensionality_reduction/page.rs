//! Pages of what a walk along a curve finds.

use std::ops::Bound;

use keyloom::{KeyRange, Order, Result, Subspace};

use super::cover::Cover;
use crate::continuation::Continuation;

/// At most `limit` of what `walk` finds in a cover, beginning behind `after`, and where the next page begins.
///
/// The continuation belongs to the query that `query` names, and to this `space`: it is the key of the last entry
/// behind these two.
pub(super) fn page<T, I: Iterator<Item = Result<T>>>(
    query: &Subspace,
    (space, mut cover): (&Subspace, Cover),
    limit: usize,
    after: Option<&Continuation>,
    walk: impl FnOnce(Cover) -> I,
    entry_key: impl Fn(&T) -> &[u8],
) -> Result<(Vec<T>, Option<Continuation>)> {
    let answers = query.child(space.prefix());
    let answer = |found: &T| [answers.prefix(), entry_key(found)].concat();
    let whole = answers.self_and_children();
    let rest = Continuation::resume(after, whole.clone(), Order::Ascending)?;
    if after.is_some() {
        cover.skip_to(first_code(&answers, space, &rest)?);
    }
    let is_seen = |found: &Result<T>| found.as_ref().is_ok_and(|one| !rest.contains(&answer(one)));
    let mut walk = walk(cover).skip_while(is_seen);
    let found = walk.by_ref().take(limit).collect::<Result<Vec<_>>>()?;
    let has_more = limit > 0 && walk.next().transpose()?.is_some();
    let next = found
        .last()
        .filter(|_| has_more)
        .map(|last| Continuation::behind(&answer(last), &whole, Order::Ascending));
    Ok((found, next))
}

/// The code at which a range of answers begins.
fn first_code(answers: &Subspace, space: &Subspace, range: &KeyRange<'_>) -> Result<u64> {
    match range.normalized() {
        Some((Bound::Included(key) | Bound::Excluded(key), _)) => {
            let key = key.get(answers.prefix().len()..).unwrap_or_default();
            let code = space.leading(key, 1)?.get(space.prefix().len()..);
            Ok(keyloom::unpack(code.unwrap_or_default())?)
        }
        _ => Ok(0),
    }
}
