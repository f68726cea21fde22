//! Many audiences in one pass.

use std::ops::ControlFlow;

use keyloom::{Metered, Store, Subspace, unpack};
use keyloom_bitmaps::{BitmapExpr, CHUNK_IDS, InvertedIndex, one};
use keyloom_tables::Table;
use proptest::collection::vec;

use super::fixture::{Ask, Fixture, User, ask, crowd, users};
use keyloom_testing::laws::{counts, very_long_property};

pub fn a_batch_gives_what_each_audience_gives_by_itself(store: &impl Store) {
    very_long_property((users(), vec(ask(), 0..8)), |(users, asks)| {
        let fixture = Fixture::holding(store, &users);
        let snapshot = store.snapshot().unwrap();
        let audiences: Vec<BitmapExpr> = asks.iter().map(|ask| ask.expr(&fixture.index)).collect();
        let batch = fixture.index.batch(&audiences).unwrap();
        let counts = batch.counts(&snapshot, |_| ControlFlow::Continue(())).unwrap();
        let bitmaps = batch.bitmaps(&snapshot, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!([counts.len(), bitmaps.len()], [asks.len(); 2]);
        for (n, ask) in asks.iter().enumerate() {
            let of_records = &audiences[n] & fixture.index.all();
            assert_eq!(counts[n], of_records.count(&snapshot).unwrap(), "{ask:?}");
            assert_eq!(bitmaps[n], of_records.to_treemap(&snapshot).unwrap(), "{ask:?}");
            assert!(bitmaps[n].iter().eq(ask.of(&users).map(|(id, _)| u64::from(id))), "{ask:?}");
        }
    });
}

/// Combinations of audiences with more ids of a chunk than a list of marks can have, and with
/// fewer.
pub fn a_batch_over_full_chunks_gives_the_same(store: &impl Store) {
    let users = crowd(2, 2_500);
    let fixture = Fixture::holding(store, &users);
    let snapshot = store.snapshot().unwrap();
    let leaves = [Ask::City(0), Ask::City(1), Ask::Tag("tag 1"), Ask::Cents(9, 9), Ask::NoCity];
    let two = |(a, b): (&Ask, &Ask)| {
        let two = || (Box::new(a.clone()), Box::new(b.clone()));
        let of = |combine: fn(Box<Ask>, Box<Ask>) -> Ask| {
            let (a, b) = two();
            combine(a, b)
        };
        [of(Ask::And), of(Ask::Or), of(Ask::Minus), of(Ask::Xor)]
    };
    let pairs = leaves.iter().flat_map(|a| leaves.iter().map(move |b| (a, b)));
    let asks: Vec<Ask> = pairs.flat_map(two).collect();
    let batch = fixture.index.batch(asks.iter().map(|ask| ask.expr(&fixture.index))).unwrap();
    let counts = batch.counts(&snapshot, |_| ControlFlow::Continue(())).unwrap();
    let expected: Vec<u64> = asks.iter().map(|ask| ask.of(&users).count() as u64).collect();
    assert_eq!(counts, expected);
}

pub fn a_batch_is_one_pass_and_can_be_stopped(store: &(impl Store + Clone)) {
    let user = User { city: Some(1), tags: vec!["a".into()], cents: Some(3) };
    let chunk = CHUNK_IDS as u32;
    let ids = [0, 1, chunk, chunk + 1, chunk + 2, 7 * chunk];
    let users = ids.map(|id| (id, user.clone())).into();
    let fixture = Fixture::holding(store, &users);
    let store = Metered::new(store.clone());
    let snapshot = store.snapshot().unwrap();
    let asks = [Ask::City(1), Ask::Tag("a"), Ask::Cents(3, 3), Ask::NoCity, Ask::Everybody];
    let batch = fixture.index.batch(asks.iter().map(|ask| ask.expr(&fixture.index))).unwrap();
    let mut told = Vec::new();
    let (found, cost) = store.measure(|_| {
        batch.counts(&snapshot, |progress| {
            let last = progress.position.last.as_deref().map(|id| unpack::<u32>(id).unwrap());
            told.push((progress.records, last.unwrap(), progress.finished));
            ControlFlow::Continue(())
        })
    });
    assert_eq!(found.unwrap(), [6, 6, 6, 0, 6]);
    assert_eq!(counts(cost), [0, 1 + 3, 3 + 3 * 3, 0], "one range over all ids, one per field");
    let wanted = [(2, 1), (5, chunk + 2), (6, 7 * chunk)];
    let wanted = wanted.map(|(records, last)| (records, last, false));
    assert_eq!(told[..3], wanted);
    assert_eq!(told[3..], [(6, 7 * chunk, true)]);

    let stop = |after: u64| {
        batch.counts(&snapshot, |progress| match progress.records >= after {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        })
    };
    assert_eq!(stop(0).unwrap(), [2, 2, 2, 0, 2]);
    assert_eq!(stop(3).unwrap(), [5, 5, 5, 0, 5]);
    assert_eq!(stop(6).unwrap(), [6, 6, 6, 0, 6]);
}

/// A name that continues another one with a NUL is another field.
#[test]
fn a_batch_separates_names_that_continue_with_a_nul() {
    let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
        .field("a", |_: &u32, number: &u32| one(number % 2))
        .field("a\0b", |_, number| (number % 3 > 0).then(|| number % 3).into_iter().collect());
    let table = Table::<u32, u32>::new(&Subspace::new("numbers")).with(&index);
    let store = keyloom::Memory::new();
    store.transact(|txn| table.put_many(txn, (0..600).map(|n| (n, n)))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let audiences = [
        index.term("a\0b", 1_u32),
        index.absent("a\0b"),
        index.has("a\0b"),
        index.term("a", 1_u32),
    ];
    let audiences = audiences.map(Result::unwrap);
    let batch = index.batch(&audiences).unwrap();
    let counts = batch.counts(&snapshot, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(counts, [200, 200, 400, 300]);
}
