//! Merges the changes that a program made to a decoded entity into the stored entity.

use std::collections::{BTreeMap, HashMap, VecDeque};

use ciborium::Value;
use keyloom::{Error, Result};

use super::path::Step;
use super::position::ListPosition;
use super::tree::{Kind, Node, encode, step_of};

/// The new stored form of a part. A program has decoded `stored` as `before` and changed it to
/// `after`. Parts that the program did not change, and parts that its type does not have, stay as
/// they are.
pub(super) fn merge(stored: &Node, before: &Value, after: &Value) -> Result<Node> {
    if is_same(before, after) {
        return Ok(stored.clone());
    }
    match (Kind::of(&stored.value), before, after) {
        (Some(Kind::Map), Value::Map(before), Value::Map(after)) => maps(stored, before, after),
        // If the program keeps the items in another order, as a set does, they cannot be matched
        // with the stored items.
        (Some(Kind::List), Value::Array(before), Value::Array(after))
            if are_views(stored.children.values(), before) =>
        {
            lists(stored, before, after)
        }
        (None, Value::Array(_), Value::Array(_)) | (None, Value::Map(_), Value::Map(_)) => {
            Ok(Node::leaf(after.clone()))
        }
        _ => Node::divide(after.clone()),
    }
}

/// Whether two values are equal, with floats compared by their bits: 0.0 and -0.0 differ, and a NaN
/// is equal to itself.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Float(one), Value::Float(other)) => one.to_bits() == other.to_bits(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Map(one), Value::Map(other)) => {
            let is_same_entry = |((key, one), (other_key, other)): (&(Value, Value), _)| {
                let (other_key, other): (&Value, &Value) = (other_key, other);
                is_same(key, other_key) && is_same(one, other)
            };
            let others = other.iter().map(|(key, value)| (key, value));
            one.len() == other.len() && one.iter().zip(others).all(is_same_entry)
        }
        (Value::Tag(one, of_one), Value::Tag(other, of_other)) => {
            one == other && is_same(of_one, of_other)
        }
        _ => one == other,
    }
}

/// Whether each of `views` can be the decoded form of the item at the same index.
fn are_views<'n>(stored: impl ExactSizeIterator<Item = &'n Node>, views: &[Value]) -> bool {
    stored.len() == views.len() && stored.zip(views).all(|(stored, view)| is_view(stored, view))
}

/// Whether `view` can be the decoded form of `stored`: equal, except for fields that the program's
/// type does not have, and missing fields that the type fills with a default.
fn is_view(stored: &Node, view: &Value) -> bool {
    match (Kind::of(&stored.value), view) {
        (Some(Kind::List), Value::Array(items)) => are_views(stored.children.values(), items),
        (Some(Kind::Map), Value::Map(entries)) => entries.iter().all(|(key, view)| {
            let step = step_of(key).ok();
            let stored = step.and_then(|step| stored.children.get(&step));
            stored.is_none_or(|stored| is_view(stored, view))
        }),
        _ => stored.value == *view,
    }
}

type Entries<'v> = &'v [(Value, Value)];

fn maps(stored: &Node, before: Entries<'_>, after: Entries<'_>) -> Result<Node> {
    let entry = |(key, value): &'_ (Value, Value)| Ok((step_of(key)?, value.clone()));
    let known: BTreeMap<Step, Value> = before.iter().map(entry).collect::<Result<_>>()?;
    let unknown = stored.children.iter().filter(|(step, _)| !known.contains_key(step));
    let mut children: BTreeMap<Step, Node> =
        unknown.map(|(step, child)| (step.clone(), child.clone())).collect();
    for (key, value) in after {
        let step = step_of(key)?;
        let child = match (stored.children.get(&step), known.get(&step)) {
            (Some(stored), Some(before)) => merge(stored, before, value)?,
            // The field is not stored and the value is unchanged, so the value is the default of a
            // missing field.
            (None, Some(before)) if is_same(before, value) => continue,
            _ => Node::divide(value.clone())?,
        };
        children.insert(step, child);
    }
    Ok(Node { value: stored.value.clone(), children })
}

fn lists(stored: &Node, before: &[Value], after: &[Value]) -> Result<Node> {
    let old: Vec<(&Step, &Node)> = stored.children.iter().collect();
    let same = same_items(before, after)?;
    let item = |(new, value): (usize, &Value)| match same.get(new).copied().flatten() {
        Some(at) => match (old.get(at), before.get(at)) {
            (Some((_, stored)), Some(before)) => merge(stored, before, value),
            _ => Node::divide(value.clone()),
        },
        None => Node::divide(value.clone()),
    };
    let items = after.iter().enumerate().map(item).collect::<Result<Vec<Node>>>()?;
    // The items of a longest ascending subsequence keep their positions. Other items get new
    // positions between them.
    let mut stay = longest_ascending(&same).into_iter().peekable();
    let place_of = |new: usize| {
        let at = same.get(new).copied().flatten();
        match at.and_then(|at| old.get(at)) {
            Some((Step::Item(position), _)) => Some(position),
            _ => None,
        }
    };
    let mut children = BTreeMap::new();
    let mut last: Option<ListPosition> = None;
    for (new, node) in items.into_iter().enumerate() {
        let position = match stay.next_if_eq(&new).and_then(place_of) {
            Some(position) => position.clone(),
            None => {
                let high = stay.peek().copied().and_then(place_of);
                ListPosition::between(last.as_ref(), high).ok_or_else(|| Error::other(NoRoom))?
            }
        };
        last = Some(position.clone());
        children.insert(Step::Item(position), node);
    }
    Ok(Node { value: stored.value.clone(), children })
}

#[derive(Debug, thiserror::Error)]
#[error("there is no free number between two items of a list; renumber it")]
pub(super) struct NoRoom;

/// For each item of `after`, the index of the same item in `before`.
fn same_items(before: &[Value], after: &[Value]) -> Result<Vec<Option<usize>>> {
    let front = before.iter().zip(after).take_while(|(a, b)| is_same(a, b)).count();
    let rest = |items: &'_ [Value]| items.len() - front;
    let back =
        before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| is_same(a, b)).count();
    let back = back.min(rest(before)).min(rest(after));
    let (old, new) = (front..before.len() - back, front..after.len() - back);

    // Equal values have equal bytes, which can be hashed.
    let mut by_bytes: HashMap<Vec<u8>, VecDeque<usize>> = HashMap::new();
    for (at, value) in before.iter().enumerate().take(old.end).skip(front) {
        by_bytes.entry(encode(value)?).or_default().push_back(at);
    }
    let mut find = |value| Ok(by_bytes.get_mut(&encode(value)?).and_then(VecDeque::pop_front));
    let changed = after.iter().take(new.end).skip(front);
    let mut middle = changed.map(&mut find).collect::<Result<Vec<Option<usize>>>>()?;
    if old.len() == new.len() && middle.iter().all(Option::is_none) {
        middle = old.clone().map(Some).collect();
    }
    let (front, back) = ((0..front).map(Some), (old.end..before.len()).map(Some));
    Ok(front.chain(middle).chain(back).collect())
}

/// The indexes of a longest ascending subsequence. `None` entries are left out.
fn longest_ascending(numbers: &[Option<usize>]) -> Vec<usize> {
    // For each length, the smallest last number of an ascending subsequence of this length, and the
    // index of this number.
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; numbers.len()];
    for (index, number) in numbers.iter().enumerate() {
        let Some(number) = *number else { continue };
        let length = ends.partition_point(|(end, _)| *end < number);
        if let (Some(slot), Some((_, previous))) =
            (before.get_mut(index), length.checked_sub(1).and_then(|at| ends.get(at)))
        {
            *slot = Some(*previous);
        }
        ends.truncate(ends.len().max(length));
        match ends.get_mut(length) {
            Some(end) => *end = (number, index),
            None => ends.push((number, index)),
        }
    }
    let mut found = Vec::new();
    let mut next = ends.last().map(|(_, index)| *index);
    while let Some(index) = next {
        found.push(index);
        next = before.get(index).copied().flatten();
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::longest_ascending;

    #[test]
    fn as_many_items_as_possible_keep_their_place() {
        let longest = |numbers: &[usize]| {
            longest_ascending(&numbers.iter().copied().map(Some).collect::<Vec<_>>()).len()
        };
        assert_eq!(longest(&[]), 0);
        assert_eq!(longest(&[3, 0, 1, 2]), 3, "the last one moved to the front");
        assert_eq!(longest(&[1, 2, 3, 0]), 3, "the first one moved to the end");
        assert_eq!(longest(&[3, 2, 1, 0]), 1);
        assert_eq!(longest(&[0, 4, 1, 5, 2, 3]), 4);
        assert_eq!(longest_ascending(&[None, Some(7), None, Some(2)]).len(), 1);
    }
}
