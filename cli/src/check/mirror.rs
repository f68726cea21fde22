//! Incoming edges, and links from their right ends: entries with the elements of a record's key in
//! the opposite order. They are checked completely, because records alone decide them.

use keyloom::{KeyRange, Reader};

use super::Findings;
use crate::catalog::Part;
use crate::failure::Result;
use crate::mirror::Mirror;
use crate::shown;
use crate::work::Work;

/// Checks the entries of `part` against its table.
pub fn check(work: &mut Work<'_>, part: &Part, findings: &mut Findings<'_>) -> Result {
    let Some(mirror) = Mirror::of(work.catalog, part) else { return Ok(()) };
    missing(work, &mirror, findings)?;
    dangling(work, &mirror, findings)
}

/// Each record has its entry.
fn missing(work: &mut Work<'_>, mirror: &Mirror<'_>, findings: &mut Findings<'_>) -> Result {
    work.pages(0, &KeyRange::prefix(mirror.table.space.prefix()), |snapshot, records| {
        let expected: Vec<_> =
            records.iter().filter_map(|record| mirror.entry_of(*record)).collect();
        let keys: Vec<_> = expected.iter().map(|(key, _)| key).collect();
        for ((key, value), found) in expected.iter().zip(snapshot.get_many(&keys)?) {
            match found {
                None => findings.add(mirror.part, key, "the entry is missing")?,
                Some(found) if found[..] != value[..] => {
                    findings.add(mirror.part, key, "the entry has a wrong value")?
                }
                Some(_) => {}
            }
        }
        Ok(findings.faults)
    })
}

/// Each entry has its record.
fn dangling(work: &mut Work<'_>, mirror: &Mirror<'_>, findings: &mut Findings<'_>) -> Result {
    work.pages(1, &KeyRange::prefix(mirror.part.space.prefix()), |snapshot, entries| {
        let records: Vec<_> = entries.iter().map(|(key, _)| mirror.record_of(key)).collect();
        let keys: Vec<_> = records.iter().flatten().collect();
        let mut found = snapshot.get_many(&keys)?.into_iter();
        for ((key, _), record) in entries.iter().zip(&records) {
            let fault = match record {
                None => "it is not such an entry".to_owned(),
                Some(_) if found.next().flatten().is_some() => continue,
                Some(record) => {
                    format!("the entry dangles: there is no record {}", shown::key(record))
                }
            };
            findings.add(mirror.part, key, &fault)?;
        }
        Ok(findings.faults)
    })
}
