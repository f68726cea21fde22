//! The nested-loop join: one range for each row.

use std::fmt;

use keyloom::Result;

/// Each row with each of the rows that a function finds for it; see
/// [`Joins::nested_loop_join`](super::Joins::nested_loop_join).
pub struct NestedLoopJoin<I, J, T, F> {
    rows: I,
    open: F,
    /// A row, the rest of what was found for it, and whether it was paired with something.
    current: Option<(T, J, bool)>,
    ended: bool,
}

impl<I, J, T, F> NestedLoopJoin<I, J, T, F> {
    pub(super) fn new(rows: I, open: F) -> Self {
        Self { rows, open, current: None, ended: false }
    }
}

impl<I, J, T, U, F> NestedLoopJoin<I, J, T, F>
where
    I: Iterator<Item = Result<T>>,
    J: Iterator<Item = Result<U>>,
    T: Clone,
    F: FnMut(&T) -> Result<J>,
{
    fn step(&mut self) -> Result<Option<(T, Option<U>)>> {
        loop {
            if let Some((row, mut found, was_paired)) = self.current.take() {
                match found.next().transpose()? {
                    Some(right) => {
                        self.current = Some((row.clone(), found, true));
                        return Ok(Some((row, Some(right))));
                    }
                    None if !was_paired => return Ok(Some((row, None))),
                    None => {}
                }
            }
            let Some(row) = self.rows.next().transpose()? else { return Ok(None) };
            let found = (self.open)(&row)?;
            self.current = Some((row, found, false));
        }
    }
}

impl<I, J, T, U, F> Iterator for NestedLoopJoin<I, J, T, F>
where
    I: Iterator<Item = Result<T>>,
    J: Iterator<Item = Result<U>>,
    T: Clone,
    F: FnMut(&T) -> Result<J>,
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

impl<I, J, T, F> fmt::Debug for NestedLoopJoin<I, J, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NestedLoopJoin").field("ended", &self.ended).finish_non_exhaustive()
    }
}
