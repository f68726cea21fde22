//! Bounded selections of values of all types, with common prefixes and suffixes.

use std::fmt::Debug;
use std::ops::Bound;

use keyloom::{Desc, Result, Store, Subspace, pack};
use keyloom_bitmaps::{InvertedIndex, one};
use keyloom_tables::parts::{KeyShape, PackAs, Parts, PrefixOf};
use keyloom_tables::{Index, Table, entry, within};
use keyloom_testing::laws::clear;
use uuid::Uuid;

/// For all pairs of bounds among the values, the bitmaps contain the same ids as a filter and an
/// index.
fn agrees<T>(store: &impl Store, values: Vec<T>)
where
    T: Parts<Owned = T>
        + PackAs<T>
        + PrefixOf<T>
        + KeyShape
        + Clone
        + Debug
        + Send
        + Sync
        + 'static,
    T: for<'k> keyloom::Unpack<'k>,
{
    clear(store);
    let (all, of_index) = (values.clone(), values.clone());
    let bitmaps = InvertedIndex::new(&Subspace::new("bitmaps"))
        .field("f", move |id: &u32, _: &()| one(all[*id as usize].clone()));
    let index = Index::new(&Subspace::new("index"), move |id: &u32, _: &()| {
        entry(of_index[*id as usize].clone())
    });
    let table = Table::<u32, ()>::new(&Subspace::new("t")).with(&bitmaps).with(&index);
    let ids = 0..values.len() as u32;
    store.transact(|txn| table.put_many(txn, ids.clone().map(|id| (id, ())))).unwrap();
    let snapshot = store.snapshot().unwrap();

    // The packed bytes have the order of the values.
    let is_in = |value: &T, bounds: &(Bound<T>, Bound<T>)| {
        let value = pack(&(value,));
        let from = match &bounds.0 {
            Bound::Included(bound) => value >= pack(&(bound,)),
            Bound::Excluded(bound) => value > pack(&(bound,)),
            Bound::Unbounded => true,
        };
        from && match &bounds.1 {
            Bound::Included(bound) => value <= pack(&(bound,)),
            Bound::Excluded(bound) => value < pack(&(bound,)),
            Bound::Unbounded => true,
        }
    };
    let every = |value: &T| [Bound::Included(value.clone()), Bound::Excluded(value.clone())];
    let mut bounds: Vec<Bound<T>> = values.iter().flat_map(every).collect();
    bounds.push(Bound::Unbounded);
    for start in &bounds {
        for end in &bounds {
            let both = (start.clone(), end.clone());
            let expected: Vec<u32> =
                ids.clone().filter(|id| is_in(&values[*id as usize], &both)).collect();
            let what = format!("{start:?} {end:?}");
            let any = bitmaps.any_term(&snapshot, "f", within(both.clone())).unwrap();
            assert_eq!(any.count(&snapshot).unwrap(), expected.len() as u64, "{what}");
            let distinct = bitmaps.distinct(&snapshot, "f", within(both.clone())).unwrap();
            assert_eq!(distinct, expected.len() as u64, "{what}");
            let found = bitmaps
                .values::<_, T, _>(&snapshot, "f", within(both.clone()))
                .unwrap()
                .map(|value| value.map(|value| pack(&(value,))));
            let mut sorted: Vec<_> =
                expected.iter().map(|id| pack(&(&values[*id as usize],))).collect();
            sorted.sort();
            assert_eq!(found.collect::<Result<Vec<_>>>().unwrap(), sorted, "{what}");
            let of_index = index.count(&snapshot, within(both)).unwrap();
            assert_eq!(of_index, expected.len() as u64, "{what}");
        }
    }
}

pub fn bounds_of_any_type_find_what_an_index_finds(store: &impl Store) {
    let bytes = || {
        let all =
            [&[][..], &[0], &[0, 0xFF], &[1], &[0xFE, 0xFF], &[0xFF], &[0xFF, 0], &[0xFF, 0xFF]];
        all.map(<[u8]>::to_vec).to_vec()
    };
    let texts = ["", "\0", "a", "a\0", "a\0b", "aa", "\u{ff}", "\u{10ffff}"].map(str::to_owned);
    let floats =
        [f64::NEG_INFINITY, f64::MIN, -1.0, -0.0, 0.0, 1.0, 6e303, f64::MAX, f64::INFINITY];
    let integers = [i128::MIN, -256, -1, 0, 1, 0xFF, 0xFF00, i64::MAX.into(), i128::MAX];
    let uuid = |byte| Uuid::from_bytes([byte; 16]);
    agrees(store, bytes());
    agrees(store, texts.to_vec());
    agrees(store, floats.to_vec());
    agrees(store, vec![f32::NEG_INFINITY, f32::MIN, -1.0, 0.0, 1.0, f32::MAX, f32::INFINITY]);
    agrees(store, integers.to_vec());
    agrees(store, vec![false, true]);
    agrees(store, [0, 1, 0x40, 0xBF, 0xFE, 0xFF].map(uuid).to_vec());
    agrees(store, vec![[0_u8, 0], [0, 0xFF], [0xFF, 0], [0xFF, 0xFF]]);
    agrees(store, vec![Desc(None), Desc(Some(0_u32)), Desc(Some(0xFF)), Desc(Some(u32::MAX))]);
    agrees(store, bytes().into_iter().map(Desc).collect());
    agrees(store, floats.map(Desc).to_vec());
    agrees(store, bytes().into_iter().flat_map(|one| [(one.clone(), 0_u8), (one, 0xFF)]).collect());
    agrees(
        store,
        vec![(Uuid::max(), Some(1.0)), (Uuid::max(), Some(f64::MAX)), (uuid(0xFE), None)],
    );
}
