//! The nested-loop join: for each row, the rows that a function finds for it.

use keyloom::Result;

use crate::walk::until_error;

/// Each row with each of the rows that `open` finds for it, or with `None`.
pub(super) fn pairs<T: Clone, U, J: Iterator<Item = Result<U>>>(
    mut rows: impl Iterator<Item = Result<T>>,
    mut open: impl FnMut(&T) -> Result<J>,
) -> impl Iterator<Item = Result<(T, Option<U>)>> {
    // A row, the rest of what was found for it, and whether it was paired with something.
    let mut current: Option<(T, J, bool)> = None;
    until_error(move || {
        loop {
            if let Some((row, mut found, was_paired)) = current.take() {
                match found.next().transpose()? {
                    Some(right) => {
                        // The last pair takes the row itself, where the end is known beforehand.
                        if found.size_hint().1 != Some(0) {
                            current = Some((row.clone(), found, true));
                        }
                        return Ok(Some((row, Some(right))));
                    }
                    None if !was_paired => return Ok(Some((row, None))),
                    None => {}
                }
            }
            let Some(row) = rows.next().transpose()? else { return Ok(None) };
            let found = open(&row)?;
            current = Some((row, found, false));
        }
    })
}
