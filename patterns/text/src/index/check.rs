//! The comparison of an index with its table, byte for byte.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use keyloom::value::Codec;
use keyloom::{Entry, KeyBuf, KeyRange, Order, Reader, Result, Subspace, prefix_end};
use keyloom_kit::{Inconsistency, RecordKey, Rule};
use keyloom_tables::Maintained;
use keyloom_tables::table::Table;

use super::TextIndex;
use super::edit::divide;
use super::expected::{Expected, ExpectedList};
use super::gather::LENGTHS;
use super::keys::{Scope, Spaces, split_group};
use super::summaries;
use crate::postings::{Block, Detail, IdRange, Postings, Unit, decode_summary, encode};

/// About how many postings a comparison keeps in memory.
// With a lower limit, a large table is read in more passes; with a higher limit, a check takes more
// memory.
pub(super) const KEPT: usize = 4_000_000;

/// A fault, and how it is repaired.
pub(super) struct Fault {
    pub(super) what: Inconsistency,
    pub(super) remedy: Remedy,
}

/// The repair of a fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Remedy {
    /// Write the list again.
    List(Scope, Arc<str>),
    /// Add to the counter.
    Add(i64),
    /// Delete the malformed counter, and add to it.
    Replace(i64),
    /// Delete the entry.
    Delete,
}

/// The faults of an index.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) all: Vec<Fault>,
    /// The documents that each faulty list should contain.
    pub(super) docs: BTreeMap<(Scope, Arc<str>), Vec<u32>>,
}

/// The entries of a posting list: its blocks, separately stored occurrences, and summaries.
pub(super) type ListEntries = [Vec<(KeyBuf, Vec<u8>)>; 3];

/// A subspace of the entries of posting lists.
#[derive(Clone, Copy)]
enum Part {
    Blocks,
    Occurrences,
    Summaries,
}

pub(super) fn check<K: RecordKey, V: 'static, G, C: Codec<V>>(
    index: &TextIndex<K, V, G>,
    reader: &impl Reader,
    table: &Table<K, V, C>,
) -> Result<Vec<Inconsistency>> {
    index.check_groups()?;
    table.refuse_unless_attached(index.space())?;
    let mut found = index.records().check(reader, table)?;
    found.extend(faults(index, reader, table, KEPT)?.all.into_iter().map(|fault| fault.what));
    Ok(found)
}

/// All faults except those of the ids.
///
/// Reads and analyzes all records once per part of the dictionary. A part has about `most`
/// postings, or a single list that is longer. The entries of the index are read once.
pub(super) fn faults<K: RecordKey, V, G, C: Codec<V>>(
    index: &TextIndex<K, V, G>,
    reader: &impl Reader,
    table: &Table<K, V, C>,
    most: usize,
) -> Result<Faults> {
    let (mut found, mut from) = (Faults::default(), None);
    loop {
        let part = index.expected(reader, table, from.as_ref(), most)?;
        compare_part(index, reader, &part, from.as_ref(), &mut found)?;
        if part.next.is_none() {
            let spaces = index.spaces();
            compare(
                reader,
                spaces.totals.self_and_children(),
                totals(spaces, &part),
                &mut |pair| {
                    found.all.extend(counter_fault(pair));
                },
            )?;
            break;
        }
        from = part.next;
    }
    strays(index, reader, &mut found.all)?;
    Ok(found)
}

fn totals(spaces: &Spaces, part: &Expected) -> Vec<(KeyBuf, Vec<u8>)> {
    let of_scope = |(scope, [documents, tokens]): (&Scope, &[i64; 2])| {
        [(spaces.documents(scope), *documents), (spaces.tokens(scope), *tokens)]
    };
    let all = part.totals.iter().flat_map(of_scope);
    all.map(|(key, count)| (key, count.to_le_bytes().to_vec())).collect()
}

/// Compares the stored postings of a part of the dictionary with the expected ones.
fn compare_part<K: RecordKey, V, G>(
    index: &TextIndex<K, V, G>,
    reader: &impl Reader,
    part: &Expected,
    from: Option<&KeyBuf>,
    found: &mut Faults,
) -> Result<()> {
    let (spaces, next) = (index.spaces(), part.next.as_ref());
    let (mut terms, mut lists) = (Vec::new(), ListEntries::default());
    for list in part.lists.values() {
        if *list.term != *LENGTHS {
            let count = list.postings.len() as i64;
            terms.push((spaces.term(&list.scope, &list.term), count.to_le_bytes().to_vec()));
        }
        for (all, mut some) in lists.iter_mut().zip(entries(index, list)?) {
            all.append(&mut some);
        }
    }
    compare(reader, within(&spaces.terms, from, next), terms, &mut |pair| {
        found.all.extend(counter_fault(pair));
    })?;
    let parts = [
        (Part::Blocks, &spaces.blocks),
        (Part::Occurrences, &spaces.occurrences),
        (Part::Summaries, &spaces.summaries),
    ];
    for ((kind, space), expected) in parts.into_iter().zip(lists) {
        compare(reader, within(space, from, next), expected, &mut |pair| {
            let fault = list_fault(space, kind, pair);
            if let Remedy::List(scope, term) = &fault.remedy {
                let list = part.lists.get(&scope.place(term));
                let docs = list.map(|list| list.postings.docs().to_vec()).unwrap_or_default();
                found.docs.insert((scope.clone(), Arc::clone(term)), docs);
            }
            found.all.push(fault);
        })?;
    }
    Ok(())
}

/// The entries of a list.
pub(super) fn entries<K: RecordKey, V, G>(
    index: &TextIndex<K, V, G>,
    list: &ExpectedList,
) -> Result<ListEntries> {
    let detail = index.detail(list.scope.field(), &list.term);
    entries_of(index.spaces(), &list.scope, &list.term, &list.postings, detail)
}

pub(super) fn entries_of(
    spaces: &Spaces,
    scope: &Scope,
    term: &str,
    postings: &Postings,
    detail: Detail,
) -> Result<ListEntries> {
    let keys = spaces.list(scope, term);
    let ([mut blocks, mut occurrences], mut units) = ([Vec::new(), Vec::new()], Vec::new());
    divide(IdRange::ALL, postings.as_slice(), &mut |range, postings| {
        let encoded = encode(range, &postings, detail);
        blocks.push((keys.block(range.last()), encoded.block));
        units.push(Unit { last: range.last(), bounds: encoded.bounds });
        if !encoded.occurrences.is_empty() {
            occurrences.push((keys.of_occurrences(range.last()), encoded.occurrences));
        }
        Ok(())
    })?;
    Ok([blocks, occurrences, summaries::all(&keys, units)])
}

/// The keys of a subspace between two places in the dictionary.
fn within(space: &Subspace, from: Option<&KeyBuf>, next: Option<&KeyBuf>) -> KeyRange<'static> {
    let at = |key: &KeyBuf| space.prefix().iter().chain(key).copied().collect::<KeyBuf>();
    let mut range = space.self_and_children();
    if let Some(from) = from {
        range = range.intersect(KeyRange::starting_at(&at(from))).into_owned();
    }
    match next {
        Some(next) => range.intersect(KeyRange::half_open(&[0], &at(next))).into_owned(),
        None => range.into_owned(),
    }
}

/// A key with its expected and its stored value, which differ.
type Pair<'p> = (KeyBuf, Option<&'p [u8]>, Option<&'p [u8]>);

/// Visits the differences between stored and expected entries, in key order.
fn compare(
    reader: &impl Reader,
    range: KeyRange<'static>,
    expected: Vec<(KeyBuf, Vec<u8>)>,
    visit: &mut impl FnMut(Pair<'_>),
) -> Result<()> {
    let mut expected = expected.into_iter().peekable();
    for entry in reader.range(range, Order::Ascending)? {
        let (key, value): Entry<_> = entry?;
        while let Some((key, value)) = expected.next_if(|(other, _)| other[..] < *key) {
            visit((key, Some(&value), None));
        }
        let due = expected.next_if(|(other, _)| other[..] == *key);
        let due = due.as_ref().map(|(_, value)| value.deref());
        if due != Some(&*value) {
            visit((KeyBuf::from_slice(&key), due, Some(&value)));
        }
    }
    expected.for_each(|(key, value)| visit((key, Some(&value), None)));
    Ok(())
}

fn rule(expected: Option<&[u8]>, stored: Option<&[u8]>) -> Rule {
    match (expected, stored) {
        (_, None) => Rule::Missing,
        (None, Some(_)) => Rule::Dangling,
        (Some(_), Some(_)) => Rule::Wrong,
    }
}

fn counter_fault((key, expected, stored): Pair<'_>) -> Option<Fault> {
    let count = |bytes: &[u8]| bytes.try_into().ok().map(i64::from_le_bytes);
    let due = expected.and_then(count).unwrap_or(0);
    let has = stored.map(count);
    let remedy = match has {
        None => Remedy::Add(due),
        Some(Some(has)) => Remedy::Add(due.wrapping_sub(has)),
        Some(None) => Remedy::Replace(due),
    };
    // A counter of 0 may exist or not.
    let what = Inconsistency::new(key, rule(expected, stored));
    (remedy != Remedy::Add(0)).then_some(Fault { what, remedy })
}

fn list_fault(space: &Subspace, part: Part, (key, due, stored): Pair<'_>) -> Fault {
    let place = match part {
        Part::Blocks | Part::Occurrences => split_group::<(u32, &str, u32)>(space, &key, 3),
        Part::Summaries => split_group::<(u32, &str, u8, u32)>(space, &key, 4)
            .map(|(group, (field, term, _, last))| (group, (field, term, last))),
    };
    let place = place.map(|(group, (field, term, last))| {
        (Scope::new(group, field), Arc::<str>::from(term), last)
    });
    let Ok((scope, term, last)) = place else {
        let what = Inconsistency::new(key, Rule::Dangling);
        return Fault { what, remedy: Remedy::Delete };
    };
    let parsed = match (part, stored) {
        (Part::Blocks, Some(stored)) => Block::parse(stored, last).map(drop),
        (Part::Summaries, Some(stored)) => decode_summary(stored, last).map(drop),
        _ => Ok(()),
    };
    let what = match parsed {
        Err(malformed) => Inconsistency::foreign(key, malformed.into()),
        Ok(()) => Inconsistency::new(key, rule(due, stored)),
    };
    Fault { what, remedy: Remedy::List(scope, term) }
}

/// Finds keys that belong to none of the subspaces of the index.
fn strays<K: RecordKey, V, G>(
    index: &TextIndex<K, V, G>,
    reader: &impl Reader,
    faults: &mut Vec<Fault>,
) -> Result<()> {
    let spaces = index.spaces();
    let parts = [
        index.records().space(),
        &spaces.terms,
        &spaces.blocks,
        &spaces.occurrences,
        &spaces.totals,
        &spaces.summaries,
    ];
    let mut from = KeyBuf::from_slice(index.space().prefix());
    let end = prefix_end(index.space().prefix());
    let ends = parts.iter().map(|part| Some(KeyBuf::from_slice(part.prefix()))).chain([end]);
    let mut after = parts.iter().map(|part| prefix_end(part.prefix()));
    for to in ends {
        let range = match &to {
            Some(to) => KeyRange::half_open(&from, to),
            None => KeyRange::starting_at(&from),
        };
        for entry in reader.range(range, Order::Ascending)? {
            let what = Inconsistency::new(KeyBuf::from_slice(&entry?.0), Rule::Foreign);
            faults.push(Fault { what, remedy: Remedy::Delete });
        }
        match after.next().flatten() {
            Some(next) => from = next,
            None => break,
        }
    }
    Ok(())
}
