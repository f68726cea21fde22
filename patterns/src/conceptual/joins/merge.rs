//! The merge join: two sides in the same order, each read once.

use std::cmp::Ordering;
use std::fmt;

use keyloom::key::display;
use keyloom::{Error, KeyBuf, Order, Pack, Result, pack};

/// Each row with each of those of the other side that have the same key; see
/// [`Joins::merge_join`](super::Joins::merge_join).
pub struct MergeJoin<I, J, T, U, F, G> {
    left: Side<I, T, F>,
    right: Side<J, U, G>,
    /// The right rows of `group_key`.
    group: Vec<U>,
    group_key: Option<KeyBuf>,
    /// A left row of that key, and how many of the group it has been paired with.
    current: Option<(T, usize)>,
    ended: bool,
}

impl<I, J, T, U, F, G, P> MergeJoin<I, J, T, U, F, G>
where
    I: Iterator<Item = Result<T>>,
    J: Iterator<Item = Result<U>>,
    T: Clone,
    U: Clone,
    P: Pack,
    F: FnMut(&T) -> P,
    G: FnMut(&U) -> P,
{
    pub(super) fn new(left: I, right: J, order: Order, left_key: F, right_key: G) -> Self {
        Self {
            left: Side::new("left", left, left_key, order),
            right: Side::new("right", right, right_key, order),
            group: Vec::new(),
            group_key: None,
            current: None,
            ended: false,
        }
    }

    fn step(&mut self) -> Result<Option<(T, Option<U>)>> {
        if let Some((row, met)) = self.current.take()
            && let Some(found) = self.group.get(met).cloned()
        {
            if met + 1 < self.group.len() {
                self.current = Some((row.clone(), met + 1));
            }
            return Ok(Some((row, Some(found))));
        }
        let Some((key, row)) = self.left.take()? else { return Ok(None) };
        if self.group_key.as_ref() != Some(&key) {
            self.gather(key)?;
        }
        if self.group.is_empty() {
            return Ok(Some((row, None)));
        }
        self.current = Some((row, 0));
        self.step()
    }

    /// Goes to `key` on the right, and takes all that is there.
    fn gather(&mut self, key: KeyBuf) -> Result<()> {
        self.group.clear();
        while let Some(ordering) = self.right.compare_head(&key)?
            && ordering.is_le()
        {
            let row = self.right.take()?.filter(|_| ordering.is_eq());
            self.group.extend(row.map(|(_, row)| row));
        }
        self.group_key = Some(key);
        Ok(())
    }
}

impl<I, J, T, U, F, G, P> Iterator for MergeJoin<I, J, T, U, F, G>
where
    I: Iterator<Item = Result<T>>,
    J: Iterator<Item = Result<U>>,
    T: Clone,
    U: Clone,
    P: Pack,
    F: FnMut(&T) -> P,
    G: FnMut(&U) -> P,
{
    type Item = Result<(T, Option<U>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.step().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

impl<I, J, T, U, F, G> fmt::Debug for MergeJoin<I, J, T, U, F, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MergeJoin").field("group", &self.group.len()).finish_non_exhaustive()
    }
}

/// One of the two inputs: looks one row ahead, and sees to it that they are in order.
struct Side<I, T, F> {
    name: &'static str,
    rows: I,
    key: F,
    order: Order,
    head: Option<(KeyBuf, T)>,
    last: Option<KeyBuf>,
}

impl<I, T, F, P> Side<I, T, F>
where
    I: Iterator<Item = Result<T>>,
    P: Pack,
    F: FnMut(&T) -> P,
{
    fn new(name: &'static str, rows: I, key: F, order: Order) -> Self {
        Self { name, rows, key, order, head: None, last: None }
    }

    /// Where the next row lies from `key`, `None` at the end.
    fn compare_head(&mut self, key: &KeyBuf) -> Result<Option<Ordering>> {
        if self.head.is_none() {
            self.head = self.read()?;
        }
        Ok(self.head.as_ref().map(|(head, _)| compare(self.order, head, key)))
    }

    fn take(&mut self) -> Result<Option<(KeyBuf, T)>> {
        match self.head.take() {
            Some(head) => Ok(Some(head)),
            None => self.read(),
        }
    }

    fn read(&mut self) -> Result<Option<(KeyBuf, T)>> {
        let Some(row) = self.rows.next().transpose()? else { return Ok(None) };
        let key = pack(&(self.key)(&row));
        if let Some(last) = &self.last
            && compare(self.order, &key, last).is_lt()
        {
            return Err(Error::other(OutOfOrder {
                side: self.name,
                key: display(&key).to_string(),
                last: display(last).to_string(),
            }));
        }
        self.last = Some(key.clone());
        Ok(Some((key, row)))
    }
}

fn compare(order: Order, one: &KeyBuf, other: &KeyBuf) -> Ordering {
    match order {
        Order::Ascending => one.cmp(other),
        Order::Descending => other.cmp(one),
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the {side} side of a merge join is not in the order of its key: {key} comes behind {last}; read it by an index in that order, or use a lookup join"
)]
struct OutOfOrder {
    side: &'static str,
    key: String,
    last: String,
}
