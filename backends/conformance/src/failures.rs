//! A failed read returns an error.

use super::compare::{
    BOTH_ORDERS, Model, Pair, agree, blob, ensure, expected, first_page, found, get, owned, plant,
    range_many, same_list,
};
use super::{Fixture, Outcome};
use keyloom::{KeyRange, Order, Reader, Result, Store};

/// The numbers of reads before the failure, so that the first part of a range fails, or a later
/// part.
const READS: [usize; 7] = [0, 1, 2, 7, 100, 150, 299];

fn keys() -> Vec<[u8; 2]> {
    (0..300_u16).map(u16::to_be_bytes).collect()
}

pub(super) fn after_an_error_an_iterator_returns_no_more<F: Fixture>(fixture: F) -> Outcome {
    let model = plant(fixture.store(), &keys())?;
    for order in BOTH_ORDERS {
        for reads in READS {
            let what = format!("{order:?}, with an error after {reads} reads");
            fail_in_a_range(&what, &fixture, &fixture.store().snapshot()?, &model, order, reads)?;
            let what = format!("{what} of a transaction");
            fail_in_a_range(&what, &fixture, &fixture.store().begin()?, &model, order, reads)?;
            agree(&format!("{what}, afterwards"), &fixture.store().snapshot()?, &model)?;
        }
    }
    Ok(())
}

fn fail_in_a_range<F: Fixture, R: Reader>(
    what: &str,
    fixture: &F,
    reader: &R,
    model: &Model,
    order: Order,
    reads: usize,
) -> Outcome {
    let right = expected(model, |_| true, order);
    if !fixture.fail_read_after(Some(reads)) {
        return Ok(());
    }
    let walked = walk_to_the_error(reader, order);
    fixture.fail_read_after(None);
    let (seen, has_failed) = walked?;
    match has_failed {
        true => ensure(right.starts_with(&seen), &format!("{what}: other entries")),
        false if reads == 0 => found(format!("{what}: there was none")),
        false => same_list(&format!("{what}, which none was"), &seen, &right),
    }
}

/// The entries before an error, and whether an error occurred.
fn walk_to_the_error<R: Reader>(reader: &R, order: Order) -> Outcome<(Vec<Pair>, bool)> {
    let mut seen = Vec::new();
    let Ok(mut entries) = reader.range(KeyRange::all(), order) else { return Ok((seen, true)) };
    // A limit above the number of keys, for a store whose iterator never ends.
    while let Some(entry) = entries.next().filter(|_| seen.len() < 10_000) {
        match entry {
            Ok(entry) => seen.push(owned(entry)),
            Err(_) => {
                let more = entries.by_ref().take(3).count();
                ensure(more == 0, "after an error the iterator went on")?;
                return Ok((seen, true));
            }
        }
    }
    Ok((seen, false))
}

/// A kind of read, and whether its result is that of a store without errors.
type Read<R> = (&'static str, fn(&R, &Model) -> Result<bool>);

fn all_reads<R: Reader>() -> [Read<R>; 8] {
    fn all(model: &Model) -> Vec<Pair> {
        expected(model, |_| true, Order::Ascending)
    }
    [
        ("get", |reader, model| Ok(get(reader, &[0, 7])?.as_ref() == model.get(&[0, 7][..]))),
        ("get_many", |reader, model| {
            let values = reader.get_many(&keys())?;
            let values = values.iter().flatten().map(|value| blob(&**value));
            Ok(values.eq(model.values().cloned()))
        }),
        ("count", |reader, model| Ok(reader.count(KeyRange::all())? == model.len() as u64)),
        ("first", |reader, model| {
            Ok(reader.first(KeyRange::all())?.map(owned).as_ref() == all(model).first())
        }),
        ("last", |reader, model| {
            Ok(reader.last(KeyRange::all())?.map(owned).as_ref() == all(model).last())
        }),
        ("page", |reader, model| {
            let page = reader.page(KeyRange::all(), Order::Ascending, 1_000)?;
            Ok(page.last.is_none() && page.entries.into_iter().map(owned).eq(all(model)))
        }),
        ("a page of the last entries", |reader, model| {
            let page = reader.page(KeyRange::all(), Order::Descending, 200)?;
            Ok(page.entries.into_iter().map(owned).eq(all(model).into_iter().rev().take(200)))
        }),
        ("range_many", |reader, model| {
            let right = first_page(model, |_| true, 250);
            Ok(range_many(reader, &[KeyRange::all(), KeyRange::all()], 250)?
                == [right.clone(), right])
        }),
    ]
}

pub(super) fn a_read_that_fails_is_not_cut_short<F: Fixture>(fixture: F) -> Outcome {
    let model = plant(fixture.store(), &keys())?;
    for reads in READS {
        fail_in_each_read("a snapshot", &fixture, &model, reads, || fixture.store().snapshot())?;
        fail_in_each_read("a transaction", &fixture, &model, reads, || fixture.store().begin())?;
        agree("afterwards", &fixture.store().snapshot()?, &model)?;
    }
    Ok(())
}

fn fail_in_each_read<F: Fixture, R: Reader>(
    of: &str,
    fixture: &F,
    model: &Model,
    reads: usize,
    reader: impl Fn() -> Result<R>,
) -> Outcome {
    for (name, read) in all_reads() {
        let reader = reader()?;
        if !fixture.fail_read_after(Some(reads)) {
            return Ok(());
        }
        let answer = read(&reader, model);
        fixture.fail_read_after(None);
        let what = format!("{name} of {of}, with an error after {reads} reads");
        ensure(reads > 0 || answer.is_err(), &format!("{what}: there was none"))?;
        ensure(answer.unwrap_or(true), &format!("{what}: another answer, and no error"))?;
    }
    Ok(())
}
