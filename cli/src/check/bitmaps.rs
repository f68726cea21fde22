//! Bitmaps of an inverted index: their containers, their ids, and the keys of the ids. Only the
//! program knows which values a record has.

use keyloom::key::{Element, List, elements, pack};
use keyloom::{AnySnapshot, KeyRange, Order, Reader, Store, Subspace};
use keyloom_bitmaps::{BitSliced, Bitmap, BitmapExpr};
use keyloom_kit::Inconsistency;
use roaring::RoaringTreemap;

use super::Findings;
use crate::catalog::Part;
use crate::failure::Result;
use crate::indexed::{Entry, keys_of};
use crate::shown;
use crate::work::{Step, Work};

/// The stages of this check.
pub const STAGES: usize = 8;

/// The largest number of bitmaps of values that one expression unites. Each of them costs a walk.
const UNITED: usize = 64;

/// Checks the inverted index in `space`, in stages from `first` on.
pub fn check(
    work: &mut Work<'_>,
    part: &Part,
    space: &Subspace,
    first: u32,
    findings: &mut Findings<'_>,
) -> Result {
    let Some(table) = work.catalog.table_of(part) else { return Ok(()) };
    let ids = space.child("ids");
    let [ids, keys] = ["id", "key"].map(|name| ids.child(name));
    let all = Bitmap::new(&space.child("all"));
    // Ids cannot be compared with a bitmap that is not readable, which is a fault of its own.
    let is_readable = all.check(&work.store.snapshot()?)?.is_empty();
    let index = Bitmaps { part, table, space, all, is_readable, ids, keys };
    let checks: [_; STAGES] = [
        Bitmaps::in_use,
        Bitmaps::records,
        Bitmaps::ids,
        Bitmaps::keys,
        Bitmaps::values,
        Bitmaps::integers,
        Bitmaps::counters,
        Bitmaps::fields,
    ];
    (first..).zip(checks).try_for_each(|(stage, check)| check(&index, work, stage, findings))
}

struct Bitmaps<'i> {
    part: &'i Part,
    table: &'i Part,
    space: &'i Subspace,
    /// All ids in use.
    all: Bitmap,
    is_readable: bool,
    /// The ids by key, and the keys by id. Empty if keys are ids.
    ids: Subspace,
    keys: Subspace,
}

impl Bitmaps<'_> {
    /// Each record has an id in use.
    fn records(&self, work: &mut Work<'_>, stage: u32, findings: &mut Findings<'_>) -> Result {
        let catalog = work.catalog;
        work.pages(stage, &self.table.space.self_and_children(), |snapshot, records| {
            if !self.is_readable || catalog.is_behind(snapshot, self.part)? {
                return Ok(findings.faults);
            }
            let ids = self.ids_of(snapshot, records)?;
            let own: RoaringTreemap = ids.iter().flatten().copied().collect();
            let unused = (BitmapExpr::from(own) - &self.all).to_treemap(snapshot)?;
            for ((key, _), id) in records.iter().zip(ids) {
                if id.is_none_or(|id| unused.contains(id)) {
                    findings.add(self.part, key, "the record has no id in use")?;
                }
            }
            Ok(findings.faults)
        })
    }

    /// The ids of records, from the entries of ids, or from the keys of the records if keys are
    /// ids.
    fn ids_of(
        &self,
        snapshot: &AnySnapshot<'_>,
        records: &[Entry<'_>],
    ) -> Result<Vec<Option<u64>>> {
        let own =
            |key: &[u8]| key.get(self.table.space.prefix().len()..).unwrap_or_default().to_vec();
        if snapshot.first(self.keys.self_and_children())?.is_none() {
            return Ok(records
                .iter()
                .map(|(key, _)| keyloom::key::unpack(&own(key)).ok())
                .collect());
        }
        // An entry of an id contains the elements of a record's key, or the key as one element.
        let keys: Vec<Vec<u8>> = records
            .iter()
            .flat_map(|(key, _)| {
                let own = own(key);
                let one = elements(&own).map(|all| pack(&Element::Tuple(all)).to_vec());
                [own.clone(), one.unwrap_or(own)].map(|own| [self.ids.prefix(), &own].concat())
            })
            .collect();
        let values: Vec<Option<u64>> = snapshot
            .get_many(&keys)?
            .iter()
            .map(|value| keyloom::key::unpack(value.as_deref()?).ok())
            .collect();
        let (pairs, _) = values.as_chunks();
        Ok(pairs.iter().map(|[plain, one]| plain.or(*one)).collect())
    }

    /// Each key with an id has a record, and its id leads back to it.
    fn ids(&self, work: &mut Work<'_>, stage: u32, findings: &mut Findings<'_>) -> Result {
        let (ids, keys, catalog, table) = (&self.ids, &self.keys, work.catalog, self.table);
        work.pages(stage, &ids.self_and_children(), |snapshot, entries| {
            let is_behind = catalog.is_behind(snapshot, self.part)?;
            self.each_way(snapshot, (ids, keys), entries, findings)?;
            let records: Vec<Vec<Vec<u8>>> = entries
                .iter()
                .map(|(key, _)| {
                    records_of(table, key.get(ids.prefix().len()..).unwrap_or_default())
                })
                .collect();
            let all: Vec<&[u8]> = records.iter().flatten().map(Vec::as_slice).collect();
            let mut found = snapshot.get_many(&all)?.into_iter();
            for ((key, _), records) in entries.iter().zip(&records) {
                let exists = found.by_ref().take(records.len()).filter(Option::is_some).count() > 0;
                if !exists && !is_behind {
                    let record = records.first().map(|key| shown::key(key)).unwrap_or_default();
                    findings.add(self.part, key, &format!("the id has no record {record}"))?;
                }
            }
            Ok(findings.faults)
        })
    }

    /// Each id leads to a key, and back.
    fn keys(&self, work: &mut Work<'_>, stage: u32, findings: &mut Findings<'_>) -> Result {
        work.pages(stage, &self.keys.self_and_children(), |snapshot, entries| {
            self.each_way(snapshot, (&self.keys, &self.ids), entries, findings)?;
            Ok(findings.faults)
        })
    }

    /// The value of each entry of one side is the key of an entry of the other side, whose value is
    /// the key of the first.
    fn each_way(
        &self,
        snapshot: &AnySnapshot<'_>,
        (here, there): (&Subspace, &Subspace),
        entries: &[Entry<'_>],
        findings: &mut Findings<'_>,
    ) -> Result {
        let keys: Vec<_> =
            entries.iter().map(|(_, value)| [there.prefix(), value].concat()).collect();
        for ((key, _), back) in entries.iter().zip(snapshot.get_many(&keys)?) {
            let own = key.strip_prefix(here.prefix()).unwrap_or_default();
            if back.is_none_or(|back| back[..] != *own) {
                findings.add(self.part, key, "the id and the key do not lead to each other")?;
            }
        }
        Ok(())
    }

    /// Checks the containers of the ids in use. Each id in use must lead to a key or, if keys are
    /// ids, to a record.
    fn in_use(&self, work: &mut Work<'_>, stage: u32, findings: &mut Findings<'_>) -> Result {
        let catalog = work.catalog;
        work.steps(stage, |store, _| {
            let snapshot = store.snapshot()?;
            let faults = self.all.check(&snapshot)?;
            self.report(faults, findings)?;
            let entries = snapshot.count(self.all.space().self_and_children())?;
            if self.is_readable && !catalog.is_behind(&snapshot, self.part)? {
                let has_ids = snapshot.first(self.keys.self_and_children())?.is_some();
                let owner = if has_ids { &self.keys } else { &self.table.space };
                let used = BitmapExpr::from(&self.all);
                let mut all = used.ids(&snapshot, ..)?;
                loop {
                    let ids = all.by_ref().take(1_000).collect::<keyloom::Result<Vec<u64>>>()?;
                    let keys: Vec<_> = ids.iter().map(|id| owner.pack(id)).collect();
                    if keys.is_empty() {
                        break;
                    }
                    for (key, found) in keys.iter().zip(snapshot.get_many(&keys)?) {
                        if found.is_none() {
                            findings.add(self.part, key, "an id in use has no record")?;
                        }
                    }
                }
            }
            Ok(step(entries, findings, None))
        })
    }

    /// Checks the bitmaps of the values, one after the other. Their ids must be in use.
    fn values(&self, work: &mut Work<'_>, stage: u32, findings: &mut Findings<'_>) -> Result {
        let terms = self.space.child("terms");
        let depth = elements(terms.prefix()).map_or(0, |all| all.len()) + 1;
        work.steps(stage, |store, last| {
            let snapshot = store.snapshot()?;
            let Some((key, _)) = first_after(&snapshot, &terms, last)? else {
                return Ok(step(0, findings, None));
            };
            // The key must contain the name of the field and at least one part of the value.
            let value = without_last(&terms, &key)
                .filter(|value| elements(value.prefix()).is_ok_and(|all| all.len() > depth));
            let Some(value) = value else {
                findings.add(self.part, &key, "it is not the key of a container")?;
                return Ok(step(1, findings, Some(key)));
            };
            let bitmap = Bitmap::new(&value);
            let faults = bitmap.check(&snapshot)?;
            let is_comparable = faults.is_empty() && self.is_readable;
            self.report(faults, findings)?;
            if is_comparable {
                let strays = (BitmapExpr::from(&bitmap) - &self.all).first(&snapshot)?;
                if let Some(id) = strays {
                    findings.add(self.part, &key, &format!("no record has the id {id}"))?;
                }
            }
            let entries = snapshot.count(value.self_and_children())?;
            Ok(step(entries, findings, Some(value.prefix().to_vec())))
        })
    }

    /// Checks the slices of the fields of integers, one field after the other.
    fn integers(&self, work: &mut Work<'_>, stage: u32, findings: &mut Findings<'_>) -> Result {
        let integers = self.space.child("integers");
        work.steps(stage, |store, last| {
            let snapshot = store.snapshot()?;
            let Some((key, _)) = first_after(&snapshot, &integers, last)? else {
                return Ok(step(0, findings, None));
            };
            let field = elements(key.get(integers.prefix().len()..).unwrap_or_default());
            let Some(Element::Str(name)) = field.ok().and_then(|all| all.into_iter().next()) else {
                findings.add(self.part, &key, "it is not the key of a slice")?;
                return Ok(step(1, findings, Some(key)));
            };
            let field = integers.child(&name);
            self.report(BitSliced::new(&field).check(&snapshot)?, findings)?;
            let entries = snapshot.count(field.self_and_children())?;
            Ok(step(entries, findings, Some(field.prefix().to_vec())))
        })
    }

    /// Checks that the counter of each field is the number of its containers.
    fn counters(&self, work: &mut Work<'_>, stage: u32, findings: &mut Findings<'_>) -> Result {
        let (counters, terms) = (self.space.child("containers"), self.space.child("terms"));
        work.pages(stage, &counters.self_and_children(), |snapshot, entries| {
            for (key, value) in entries {
                let own = key.strip_prefix(counters.prefix()).unwrap_or_default();
                let field = Subspace::from_bytes(&[terms.prefix(), own].concat());
                let counted = snapshot.count(field.self_and_children())?;
                let stored = <[u8; 8]>::try_from(*value).map(u64::from_le_bytes).ok();
                if stored != Some(counted) {
                    let fault = format!("the field has {counted} containers");
                    findings.add(self.part, key, &fault)?;
                }
            }
            Ok(findings.faults)
        })
    }

    /// Each id in use is in a bitmap of the field, and the field has a counter.
    fn fields(&self, work: &mut Work<'_>, stage: u32, findings: &mut Findings<'_>) -> Result {
        let (counters, terms) = (self.space.child("containers"), self.space.child("terms"));
        work.steps(stage, |store, last| {
            let snapshot = store.snapshot()?;
            let Some((key, _)) = first_after(&snapshot, &terms, last)? else {
                return Ok(step(0, findings, None));
            };
            let name = elements(key.get(terms.prefix().len()..).unwrap_or_default());
            let Some(name) = name.ok().and_then(|all| all.into_iter().next()) else {
                return Ok(step(1, findings, Some(key)));
            };
            let (field, counter) = (terms.child(&name), counters.pack(&name));
            if snapshot.get(&counter)?.is_none() {
                findings.add(self.part, &counter, "the counter is missing")?;
            }
            if let Some(id) = self.without_value(&snapshot, &field)? {
                let fault = format!("the id {id} is in no bitmap of the field");
                findings.add(self.part, field.prefix(), &fault)?;
            }
            let entries = snapshot.count(field.self_and_children())?;
            Ok(step(entries, findings, Some(field.prefix().to_vec())))
        })
    }

    /// The first id in use that no bitmap of a field has. `None` if one of them is not readable.
    fn without_value(&self, snapshot: &AnySnapshot<'_>, field: &Subspace) -> Result<Option<u64>> {
        if !self.is_readable {
            return Ok(None);
        }
        let (mut rest, mut some) = (BitmapExpr::from(&self.all), Vec::new());
        let mut last: Option<Vec<u8>> = None;
        while let Some((key, _)) = first_after(snapshot, field, last.as_deref())? {
            let Some(value) = without_last(field, &key) else { return Ok(None) };
            let bitmap = Bitmap::new(&value);
            if !bitmap.check(snapshot)?.is_empty() {
                return Ok(None);
            }
            some.push(bitmap);
            if some.len() == UNITED {
                rest = (rest - BitmapExpr::any_of(some.drain(..))).hold(snapshot)?;
            }
            last = Some(value.prefix().to_vec());
        }
        Ok((rest - BitmapExpr::any_of(some)).first(snapshot)?)
    }

    fn report(&self, faults: Vec<Inconsistency>, findings: &mut Findings<'_>) -> Result {
        faults.iter().try_for_each(|fault| findings.add(self.part, &fault.key, &fault.text))
    }
}

/// The keys that the record with the key `own` may have in the table. The table stores a key of
/// several elements as it is in `own`.
fn records_of(table: &Part, own: &[u8]) -> Vec<Vec<u8>> {
    match keys_of(table, own) {
        none if none.is_empty() => vec![[table.space.prefix(), own].concat()],
        some => some,
    }
}

fn step(entries: u64, findings: &Findings<'_>, last: Option<Vec<u8>>) -> Step {
    let entries = usize::try_from(entries).unwrap_or(usize::MAX);
    Step { entries, bytes: 0, counted: findings.faults, last }
}

/// The first entry of `space` that is neither `last` nor below it.
fn first_after(
    snapshot: &AnySnapshot<'_>,
    space: &Subspace,
    last: Option<&[u8]>,
) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let all = space.self_and_children();
    let rest = match last {
        None => all,
        Some(last) => all.intersect(KeyRange::behind(last).into_owned()),
    };
    let page = snapshot.page(rest, Order::Ascending, 1)?;
    let first = page.entries.first().map(|(key, value)| (key.to_vec(), value.to_vec()));
    Ok(first)
}

/// The subspace of all elements of a key but the last.
fn without_last(space: &Subspace, key: &[u8]) -> Option<Subspace> {
    let parts = elements(key.strip_prefix(space.prefix())?).ok()?;
    let (_, own) = parts.split_last().filter(|(_, own)| !own.is_empty())?;
    Some(Subspace::from_bytes(&[space.prefix(), &pack(&List(own))].concat()))
}
