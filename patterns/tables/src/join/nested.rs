//! The nested-loop join: for each row, the rows that a function returns for it.

use keyloom::Result;
use keyloom_kit::until_error;

/// Each row paired with each row that `open` returns for it, or with `None`.
pub(super) fn pairs<T: Clone, U, J: Iterator<Item = Result<U>>>(
    mut rows: impl Iterator<Item = Result<T>>,
    mut open: impl FnMut(&T) -> Result<J>,
) -> impl Iterator<Item = Result<(T, Option<U>)>> {
    // A row, the rest of the rows found for it, and whether it has been paired.
    let mut current: Option<(T, J, bool)> = None;
    until_error(move || {
        loop {
            if let Some((row, mut found, was_paired)) = current.take() {
                match found.next().transpose()? {
                    Some(right) => {
                        // If the end is known in advance, the last pair takes the row itself
                        // instead of a clone.
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
