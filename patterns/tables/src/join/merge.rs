//! The merge join of two sides in the same order. Each side is read once.

use std::iter::Peekable;
use std::sync::Arc;

use keyloom::key::display;
use keyloom::{Error, KeyBuf, Pack, Result, pack};

use super::nested::pairs;

/// Pairs each row with each row of `right` that has the same key, or with `None`.
pub(super) fn merge_join<T: Clone, U: Clone, P: Pack>(
    left: impl Iterator<Item = Result<T>>,
    right: impl Iterator<Item = Result<U>>,
    mut left_key: impl FnMut(&T) -> P,
    mut right_key: impl FnMut(&U) -> P,
) -> impl Iterator<Item = Result<(T, Option<U>)>> {
    let mut left_keys = Keys { side: "left", last: None };
    let mut right_keys = Keys { side: "right", last: None };
    let keyed = move |row: Result<U>| {
        let row = row?;
        Ok((right_keys.next(pack(&right_key(&row)))?, row))
    };
    let mut right = right.map(keyed).peekable();
    // `group` holds the right rows with the key `group_key`.
    let (mut group_key, mut group) = (None, Arc::new(Vec::new()));
    pairs(left, move |row| {
        let key = left_keys.next(pack(&left_key(row)))?;
        if group_key.as_ref() != Some(&key) {
            gather(&mut right, &key, Arc::make_mut(&mut group))?;
            group_key = Some(key);
        }
        let group = Arc::clone(&group);
        Ok((0..group.len()).filter_map(move |place| group.get(place).cloned().map(Ok)))
    })
}

/// Skips the rows with keys before `key`, and moves the rows with this key to `group`.
fn gather<U>(
    rows: &mut Peekable<impl Iterator<Item = Result<(KeyBuf, U)>>>,
    key: &KeyBuf,
    group: &mut Vec<U>,
) -> Result<()> {
    group.clear();
    let is_due = |row: &Result<(KeyBuf, U)>| match row {
        Ok((next, _)) => next <= key,
        Err(_) => true,
    };
    while let Some((next, row)) = rows.next_if(is_due).transpose()? {
        if next == *key {
            group.push(row);
        }
    }
    Ok(())
}

/// Checks that the keys of a side are in order.
struct Keys {
    side: &'static str,
    last: Option<KeyBuf>,
}

impl Keys {
    fn next(&mut self, key: KeyBuf) -> Result<KeyBuf> {
        if let Some(last) = &self.last
            && key < *last
        {
            return Err(Error::other(OutOfOrder {
                side: self.side,
                key: display(&key).to_string(),
                last: display(last).to_string(),
            }));
        }
        self.last = Some(key.clone());
        Ok(key)
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the {side} side of a merge join is not in the order of its key: {key} comes after {last}; read it by an index in that order, or use a lookup join"
)]
struct OutOfOrder {
    side: &'static str,
    key: String,
    last: String,
}
