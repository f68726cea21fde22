//! Common code of the checks: an ordered map as the model, and comparisons of a reader with the
//! model.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::ops::Bound;

use super::{Blob, Finding, Outcome};
use keyloom::{Entry, EntryPage, Error, KeyRange, Order, Reader, Result, Store, Writer};

/// The expected contents of the store.
pub(super) type Model = BTreeMap<Blob, Blob>;

pub(super) type Pair = (Blob, Blob);

pub(super) const BOTH_ORDERS: [Order; 2] = [Order::Ascending, Order::Descending];

/// More entries than any check writes. An endless iteration is cut off here.
const MOST_ENTRIES: usize = 50_000;

/// More bytes than any check writes. An endless iteration over values of a megabyte would exhaust
/// the memory before it reaches the limit of entries.
const MOST_BYTES: usize = 200 << 20;

fn bytes_of((key, value): &Pair) -> usize {
    key.len() + value.len()
}

/// The number of keys in a check of many keys, and of writes in a large transaction. It is above
/// 10,000, a power of ten that the other checks do not reach: engines and programs tend to have
/// limits there.
pub(super) const MANY: u32 = 20_000;

/// The largest number of writes in a transaction of the suite, except in checks of large
/// transactions.
const BATCH: usize = 2_000;

/// Returns a finding unless `seen` is equal to `expected`.
pub(super) fn same<T: PartialEq + Debug>(what: &str, seen: &T, expected: &T) -> Outcome {
    if seen == expected {
        return Ok(());
    }
    found(format!("{what}: {}, should be {}", cut(seen), cut(expected)))
}

/// Returns a finding with the first element that differs.
pub(super) fn same_list<T: PartialEq + Debug>(what: &str, seen: &[T], expected: &[T]) -> Outcome {
    let differs = |place: &usize| seen.get(*place) != expected.get(*place);
    let Some(place) = (0..seen.len().max(expected.len())).find(differs) else { return Ok(()) };
    let shown = |one: Option<&T>| one.map_or("none".to_owned(), |one| cut(one));
    found(format!(
        "{what}: number {place} is {}, should be {}; {} in all, should be {}",
        shown(seen.get(place)),
        shown(expected.get(place)),
        seen.len(),
        expected.len(),
    ))
}

/// Returns a finding unless `holds`.
pub(super) fn ensure(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { found(what) }
}

pub(super) fn found<T>(what: impl Into<String>) -> Outcome<T> {
    Err(Finding(what.into()))
}

/// Shortens long lists: their first entries are sufficient.
fn cut(value: &impl Debug) -> String {
    const MOST_CHARS: usize = 400;
    let mut text = format!("{value:?}");
    if let Some((at, _)) = text.char_indices().nth(MOST_CHARS) {
        text.truncate(at);
        text.push('…');
    }
    text
}

/// The innermost error, without the keys that wrap it.
pub(super) fn root(error: &Error) -> &Error {
    match error {
        Error::At { source, .. } => root(source),
        other => other,
    }
}

pub(super) fn blob(bytes: impl AsRef<[u8]>) -> Blob {
    Blob::from(bytes.as_ref())
}

pub(super) fn owned<B: std::ops::Deref<Target = [u8]>>((key, value): Entry<B>) -> Pair {
    (blob(&*key), blob(&*value))
}

/// The entries of a range, as the iterator yields them.
pub(super) fn walk<R: Reader>(reader: &R, range: KeyRange<'_>, order: Order) -> Result<Vec<Pair>> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    for entry in reader.range(range, order)?.take(MOST_ENTRIES) {
        let pair = owned(entry?);
        bytes += bytes_of(&pair);
        all.push(pair);
        if bytes > MOST_BYTES {
            break;
        }
    }
    Ok(all)
}

pub(super) fn get<R: Reader>(reader: &R, key: &[u8]) -> Result<Option<Blob>> {
    Ok(reader.get(key)?.map(|value| blob(&*value)))
}

/// All entries of a range, page by page.
pub(super) fn pages<R: Reader>(
    reader: &R,
    range: &KeyRange<'_>,
    order: Order,
    limit: usize,
) -> Outcome<Vec<Pair>> {
    let (mut all, mut bytes) = (Vec::new(), 0);
    let mut last: Option<keyloom::KeyBuf> = None;
    loop {
        let rest = match &last {
            Some(last) => range.clone().resume(order, last),
            None => range.clone(),
        };
        let page = reader.page(rest, order, limit)?;
        if page.entries.len() > limit {
            return found(format!("a page of {limit} has {} entries", page.entries.len()));
        }
        let entries: Vec<Pair> = page.entries.into_iter().map(owned).collect();
        bytes += entries.iter().map(bytes_of).sum::<usize>();
        let is_empty = entries.is_empty();
        all.extend(entries);
        match page.last {
            None => return Ok(all),
            Some(_) if is_empty => return found("a page without entries has others behind it"),
            Some(_) if all.len() > MOST_ENTRIES || bytes > MOST_BYTES => {
                return found("pages do not come to an end");
            }
            Some(key) => last = Some(key),
        }
    }
}

/// The entries of a page, and its last key if there are more.
pub(super) type FirstPage = (Vec<Pair>, Option<Blob>);

/// The result of `range_many`.
pub(super) fn range_many<R: Reader>(
    reader: &R,
    ranges: &[KeyRange<'_>],
    limit: usize,
) -> Result<Vec<FirstPage>> {
    let pages = reader.range_many(ranges, limit)?.into_iter();
    let page = |EntryPage { entries, last }: EntryPage<_>| {
        (entries.into_iter().map(owned).collect(), last.map(|last| blob(&last)))
    };
    Ok(pages.map(page).collect())
}

/// The expected page of `range_many` for a range.
pub(super) fn first_page(
    model: &Model,
    is_inside: impl Fn(&[u8]) -> bool,
    limit: usize,
) -> FirstPage {
    let mut entries = expected(model, is_inside, Order::Ascending);
    let has_more = entries.len() > limit.max(1);
    entries.truncate(limit.max(1));
    let last = entries.last().filter(|_| has_more).map(|(key, _)| key.clone());
    (entries, last)
}

/// The part of `model` in the range, in `order`.
pub(super) fn expected(
    model: &Model,
    is_inside: impl Fn(&[u8]) -> bool,
    order: Order,
) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = model
        .iter()
        .filter(|(key, _)| is_inside(key))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    if order == Order::Descending {
        pairs.reverse();
    }
    pairs
}

/// Compares ranges, pages, the first and last entry, the count, and gets of every key with `model`.
pub(super) fn agree<R: Reader>(what: &str, reader: &R, model: &Model) -> Outcome {
    agree_within(what, reader, model, &KeyRange::all(), |_| true)?;
    for (key, value) in model {
        let name = format!("{what}, get {key:?}");
        same(&name, &get(reader, key)?.as_ref(), &Some(value))?;
    }
    let keys: Vec<&Blob> = model.keys().collect();
    let values: Vec<Option<&Blob>> = model.values().map(Some).collect();
    let many = reader.get_many(&keys)?;
    let many: Vec<Option<Blob>> =
        many.into_iter().map(|value| value.map(|value| blob(&*value))).collect();
    let many: Vec<Option<&Blob>> = many.iter().map(Option::as_ref).collect();
    same_list(&format!("{what}, get_many of every key"), &many, &values)
}

/// Compares gets of possibly absent keys with `model`: ranges can be right while gets are wrong.
pub(super) fn agree_on_gets<R: Reader, K: AsRef<[u8]>>(
    what: &str,
    reader: &R,
    model: &Model,
    keys: &[K],
) -> Outcome {
    let right: Vec<Option<Blob>> =
        keys.iter().map(|key| model.get(key.as_ref()).cloned()).collect();
    let each = keys.iter().map(|key| get(reader, key.as_ref())).collect::<Result<Vec<_>>>()?;
    same_list(&format!("{what}, get of each key"), &each, &right)?;
    let many = reader.get_many(keys)?;
    let many: Vec<_> = many.into_iter().map(|value| value.map(|value| blob(&*value))).collect();
    same_list(&format!("{what}, get_many"), &many, &right)
}

/// Compares the reads of a reader with many keys to `model`, in few round trips.
pub(super) fn agree_on_many<R: Reader>(what: &str, reader: &R, model: &Model) -> Outcome {
    for order in BOTH_ORDERS {
        let seen = walk(reader, KeyRange::all(), order)?;
        same_list(&format!("{what}, {order:?}"), &seen, &expected(model, |_| true, order))?;
    }
    let count = model.len() as u64;
    same(&format!("{what}, count"), &reader.count(KeyRange::all())?, &count)
}

/// Compares the reads of a range with the part of `model` for which `is_inside` holds.
pub(super) fn agree_within<R: Reader>(
    what: &str,
    reader: &R,
    model: &Model,
    range: &KeyRange<'_>,
    is_inside: impl Fn(&[u8]) -> bool,
) -> Outcome {
    // The page size grows with the model, so that even a large range takes about 16 pages at most.
    let limit = 3 + model.len() / 16;
    for order in BOTH_ORDERS {
        let right = expected(model, &is_inside, order);
        let seen = walk(reader, range.clone(), order)?;
        same_list(&format!("{what}, {order:?}"), &seen, &right)?;
        let paged = pages(reader, range, order, limit)?;
        same_list(&format!("{what}, {order:?} in pages of {limit}"), &paged, &right)?;
        let (name, end) = match order {
            Order::Ascending => ("first", reader.first(range.clone())?),
            Order::Descending => ("last", reader.last(range.clone())?),
        };
        same(&format!("{what}, {name}"), &end.map(owned).as_ref(), &right.first())?;
    }
    let count = model.keys().filter(|key| is_inside(key)).count() as u64;
    same(&format!("{what}, count"), &reader.count(range.clone())?, &count)
}

/// Keys of four bytes, in ascending order.
pub(super) fn many_keys(count: u32) -> Vec<[u8; 4]> {
    (0..count).map(u32::to_be_bytes).collect()
}

/// The number of writes of a large transaction, within the limits of the store.
pub(super) fn many_writes<S: Store>(store: &S) -> u32 {
    // More than the size of a short key and value, including the store's overhead.
    const BYTES_OF_A_WRITE: usize = 100;
    let limits = store.limits();
    let of_bytes = limits.max_transaction_bytes.map(|bytes| bytes / BYTES_OF_A_WRITE);
    let limit = [limits.max_transaction_operations, of_bytes].into_iter().flatten().min();
    u32::try_from(limit.unwrap_or(usize::MAX)).unwrap_or(u32::MAX).min(MANY)
}

/// Commits `pairs`, in transactions of at most 2,000 writes, or of the store's limit if that is
/// lower.
pub(super) fn fill<S: Store>(store: &S, pairs: &[Pair]) -> Result<()> {
    let batch = store.limits().max_transaction_operations.unwrap_or(BATCH).min(BATCH);
    pairs.chunks(batch.max(1)).try_for_each(|batch| {
        store.transact(|txn| batch.iter().try_for_each(|(key, value)| txn.put(key, value)))
    })
}

/// Commits each of `keys` with a value that is derived from the key. Returns the committed entries.
pub(super) fn plant<S: Store, K: AsRef<[u8]>>(store: &S, keys: &[K]) -> Result<Model> {
    let pair = |key: &K| (blob(key), value_of(key.as_ref()));
    let pairs: Vec<Pair> = keys.iter().map(pair).collect();
    fill(store, &pairs)?;
    Ok(pairs.into_iter().collect())
}

/// A value for a key: the key itself, or the end of a long key and a digest. Several of the longest
/// keys end with the same run of one byte.
fn value_of(key: &[u8]) -> Blob {
    let Some((start, end)) = key.split_last_chunk::<12>() else {
        return Blob([b"v", key].concat());
    };
    let digest = start.iter().fold(start.len() as u32, |digest, byte| {
        digest.wrapping_mul(31).wrapping_add(u32::from(*byte))
    });
    Blob([b"v", &end[..], &digest.to_be_bytes()].concat())
}

/// Keys at which programs make mistakes: `a`, its neighbours, its continuations with `00` and `FF`,
/// and keys of the maximum length.
pub(super) fn awkward_keys() -> Vec<Blob> {
    let short: [&[u8]; 20] = [
        b"\x00",
        b"\x00\x00",
        b"\x00\xFF",
        b"\x01",
        b"a",
        b"a\x00",
        b"a\x00\x00",
        b"aa",
        b"a\x7F",
        b"a\x80",
        b"a\xFF",
        b"a\xFF\x00",
        b"a\xFF\xFF",
        b"b",
        b"b\x00",
        b"\x7F",
        b"\x80",
        b"\xFE\xFF",
        b"\xFF",
        b"\xFF\xFF",
    ];
    let long = [
        padded(b"a", 0x00, 511),
        padded(b"a", 0xFF, 510),
        padded(b"a", 0xFF, 511),
        padded(b"", 0xFF, 511),
    ];
    short.iter().map(blob).chain(long).collect()
}

/// `start`, extended to `length` bytes with `byte`.
pub(super) fn padded(start: &[u8], byte: u8, length: usize) -> Blob {
    let mut bytes = start.to_vec();
    bytes.resize(length, byte);
    Blob(bytes)
}

/// Whether a key lies between two bounds: the definition with which the results of the engines are
/// compared.
pub(super) fn lies_between(key: &[u8], start: Bound<&[u8]>, end: Bound<&[u8]>) -> bool {
    let behind_start = match start {
        Bound::Included(start) => key >= start,
        Bound::Excluded(start) => key > start,
        Bound::Unbounded => true,
    };
    behind_start
        && match end {
            Bound::Included(end) => key <= end,
            Bound::Excluded(end) => key < end,
            Bound::Unbounded => true,
        }
}
