//! Entries that lead to records: those of indexes, places, extents, curves and paths.

use keyloom::{KeyRange, Subspace};

use super::Findings;
use crate::catalog::Part;
use crate::failure::Result;
use crate::indexed::Joined;
use crate::shown;
use crate::work::Work;

/// Checks the entries in `space`, the subspace of the entries of `part`.
pub fn check(
    work: &mut Work<'_>,
    part: &Part,
    space: &Subspace,
    findings: &mut Findings<'_>,
) -> Result {
    let catalog = work.catalog;
    let Some(table) = catalog.table_of(part) else { return Ok(()) };
    work.pages(0, &KeyRange::prefix(space.prefix()), |snapshot, entries| {
        let is_behind = catalog.is_behind(snapshot, part)?;
        for joined in Joined::read(snapshot, space, table, entries)? {
            match joined {
                Joined::NoEntry { key } => {
                    findings.add(part, key, "it is not an entry of an index")?
                }
                Joined::Dangling { key, record } if !is_behind => {
                    let fault =
                        format!("the entry dangles: there is no record {}", shown::key(&record));
                    findings.add(part, key, &fault)?;
                }
                Joined::Dangling { .. } | Joined::Record { .. } => {}
            }
        }
        Ok(findings.faults)
    })
}
