//! The results and the costs of queries.

use std::collections::{BTreeMap, BTreeSet};

use keyloom::key::{Subspace, pack};
use keyloom::{
    Cost, Desc, DynWriter, Error, KeyRange, Metered, Order, Reader, Store, Transaction, Writer,
};
use keyloom_tables::{
    AnyParts, Continuation, Index, IndexQuery, Maintained, Select, Table, descending, entry,
    in_order, starting_with, within,
};

use crate::index::fixture::{Cities, City, apply, fill, history, sample};
use keyloom_testing::laws::{clear, property};

pub fn every_query_finds_what_a_filter_over_all_records_finds(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    property(history(), |history| {
        clear(store);
        let oracle = apply(&cities, store, history);
        let snapshot = store.snapshot().unwrap();
        let ids = |found: &mut dyn Iterator<Item = keyloom::Result<u16>>| -> Vec<u16> {
            found.map(Result::unwrap).collect()
        };

        // The whole table, in both orders, and record by record.
        let mut records: Vec<_> =
            cities.table.range(&snapshot, ..).unwrap().map(Result::unwrap).collect();
        assert_eq!(records, oracle.clone().into_iter().collect::<Vec<_>>());
        records.reverse();
        let reversed = cities.table.range(&snapshot, descending(..)).unwrap();
        assert_eq!(reversed.map(Result::unwrap).collect::<Vec<_>>(), records);
        let some: Vec<u16> = (0..14).rev().collect();
        let expected: Vec<_> = some.iter().map(|id| oracle.get(id).cloned()).collect();
        assert_eq!(cities.table.get_many(&snapshot, &some).unwrap(), expected);

        // A leading part; entries are in index order.
        let mut expected: Vec<_> = oracle
            .iter()
            .filter(|(_, c)| c.country == "FR")
            .map(|(id, c)| (c.name.clone(), *id))
            .collect();
        expected.sort();
        let expected: Vec<u16> = expected.into_iter().map(|(_, id)| id).collect();
        let mut found =
            cities.by_name.range(&snapshot, "FR").unwrap().map(|found| found?.record_key());
        assert_eq!(ids(&mut found), expected);
        assert_eq!(cities.by_name.count(&snapshot, "FR").unwrap(), expected.len() as u64);
        let mut found = cities
            .by_name
            .range(&snapshot, descending("FR"))
            .unwrap()
            .map(|found| found?.record_key());
        assert_eq!(ids(&mut found), expected.iter().rev().copied().collect::<Vec<_>>());

        // A prefix of a string.
        let expected: BTreeSet<u16> = oracle
            .iter()
            .filter(|(_, c)| c.country == "US" && c.name.starts_with('a'))
            .map(|(id, _)| *id)
            .collect();
        let mut found = cities
            .by_name
            .range(&snapshot, starting_with(("US", "a")))
            .unwrap()
            .map(|found| found?.record_key());
        assert_eq!(ids(&mut found).into_iter().collect::<BTreeSet<_>>(), expected);

        // Descending parts; only some records have an entry.
        let mut expected: Vec<_> = oracle
            .iter()
            .filter(|(_, c)| c.country == "US" && c.population > 0)
            .map(|(id, c)| (std::cmp::Reverse(c.population), *id))
            .collect();
        expected.sort();
        for (found, (population, id)) in
            cities.by_size.range(&snapshot, "US").unwrap().zip(&expected)
        {
            let found = found.unwrap();
            let (country, Desc(size)) = found.parts().unwrap();
            assert_eq!((country, size, found.record_key().unwrap()), ("US", population.0, *id));
        }
        assert_eq!(cities.by_size.count(&snapshot, "US").unwrap(), expected.len() as u64);

        first_and_last_of_each_group_are_right(&cities, &snapshot, &oracle);

        // A half-open range of parts: populations above 1 and up to 3.
        let between = cities
            .by_size
            .range(&snapshot, within(("US", Desc(3u64))..("US", Desc(1))))
            .unwrap()
            .count();
        assert_eq!(between, expected.iter().filter(|(p, _)| p.0 > 1 && p.0 <= 3).count());

        // All kinds of ranges of record keys, compared with the same ranges of numbers.
        let keys = |select: keyloom_tables::Within<u16>| {
            let records = cities.table.range(&snapshot, select).unwrap();
            records.map(|record| record.unwrap().0).collect::<Vec<_>>()
        };
        let expected = |range: &dyn Fn(u16) -> bool| {
            oracle.keys().copied().filter(|id| range(*id)).collect::<Vec<_>>()
        };
        assert_eq!(keys(within(1..255)), expected(&|id| (1..255).contains(&id)));
        assert_eq!(keys(within(1..=255)), expected(&|id| (1..=255).contains(&id)));
        assert_eq!(keys(within(1..)), expected(&|id| id >= 1));
        assert_eq!(keys(within(..255)), expected(&|id| id < 255));
        assert_eq!(keys(within(..=255)), expected(&|id| id <= 255));
        assert_eq!(keys(within::<u16>(..)), expected(&|_| true));
        let behind = (std::ops::Bound::Excluded(1), std::ops::Bound::Unbounded);
        assert_eq!(keys(within(behind)), expected(&|id| id > 1));
        // Bounds with only the first of two parts include, or exclude, all continuations.
        let counted = |select: keyloom_tables::Within<&str>| {
            cities.by_name.count(&snapshot, select).unwrap() as usize
        };
        let of = |is_in: &dyn Fn(&str) -> bool| {
            oracle.values().filter(|city| is_in(&city.country)).count()
        };
        assert_eq!(cities.by_name.count(&snapshot, "FR").unwrap() as usize, of(&|c| c == "FR"));
        assert_eq!(counted(within(.."US")), of(&|c| c < "US"));
        assert_eq!(counted(within(..="FR")), of(&|c| c <= "FR"));
        assert_eq!(counted(within("US"..)), of(&|c| c >= "US"));
        let behind = (std::ops::Bound::Excluded("FR"), std::ops::Bound::<&str>::Unbounded);
        assert_eq!(counted(within(behind)), of(&|c| c > "FR"));

        // One entry per distinct value.
        for tag in ["", "x", "x\0", "xx", "w"] {
            let expected: Vec<u16> = oracle
                .iter()
                .filter(|(_, c)| c.tags.iter().any(|t| t == tag))
                .map(|(id, _)| *id)
                .collect();
            let mut found =
                cities.by_tag.range(&snapshot, tag).unwrap().map(|found| found?.record_key());
            assert_eq!(ids(&mut found), expected);
        }
    });
}

pub fn clauses_of_a_query_select_what_filters_select(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    property(history(), |history| {
        clear(store);
        let oracle = apply(&cities, store, history);
        let snapshot = store.snapshot().unwrap();
        let mut sorted: Vec<_> =
            oracle.iter().map(|(id, c)| (c.country.as_str(), c.name.as_str(), *id)).collect();
        sorted.sort_unstable();
        let all = cities.by_name.query();
        type IsIn = fn(&(&str, &str, u16)) -> bool;
        let queries: [(_, IsIn); 6] = [
            (all.clone(), |_| true),
            (all.clone().prefix("FR"), |c| c.0 == "FR"),
            (all.clone().starting_with(("US", "a")), |c| c.0 == "US" && c.1.starts_with('a')),
            (all.clone().range(("FR", "ab")..("US", "b")), |c| {
                ("FR", "ab") <= (c.0, c.1) && (c.0, c.1) < ("US", "b")
            }),
            (all.clone().range(..="FR"), |c| c.0 <= "FR"),
            // Clauses narrow the query.
            (all.clone().prefix("US").range(..=("US", "b")), |c| c.0 == "US" && c.1 <= "b"),
        ];
        for (n, (query, is_in)) in queries.into_iter().enumerate() {
            let mut wanted: Vec<u16> =
                sorted.iter().filter(|city| is_in(city)).map(|city| city.2).collect();
            clauses_are_right(&cities, &snapshot, &query, &wanted, n);
            wanted.reverse();
            clauses_are_right(&cities, &snapshot, &query.reverse(), &wanted, n);
        }
        // A bound without the prefix was probably meant for the part after it.
        for strays in [
            all.clone().prefix("US").range(.."b"),
            all.clone().prefix("US").range(("FR", "b")..=("US", "b")),
            all.clone().range("b"..).prefix("US"),
        ] {
            let query = strays.clone().limit(1);
            let refused = [
                query.entries(&snapshot).map(drop),
                query.page(&snapshot).map(drop),
                query.keys(&snapshot).map(drop),
                query.count(&snapshot).map(drop),
                query.explain(&snapshot).map(drop),
                query.records(&snapshot, &cities.table).map(drop),
            ];
            for refused in refused {
                let refused = refused.unwrap_err().to_string();
                assert!(refused.contains("the prefix of the query"), "{refused}");
            }
        }
    });
}

fn clauses_are_right(
    cities: &Cities,
    reader: &impl Reader,
    query: &IndexQuery<'_, u16, City, (String, String)>,
    wanted: &[u16],
    n: usize,
) {
    let entries = query.entries(reader).unwrap();
    let found: Vec<_> = entries.map(|found| found.unwrap().record_key().unwrap()).collect();
    assert_eq!(found, wanted, "query {n}");
    assert_eq!(query.count(reader).unwrap(), wanted.len() as u64, "query {n}");
    assert_eq!(query.explain(reader).unwrap().keys_scanned, wanted.len() as u64, "query {n}");
    let (mut paged, mut next) = (Vec::new(), None);
    loop {
        let page = query.clone().limit(2).after(next.as_ref());
        let keys = page.keys(reader).unwrap();
        let records = page.records(reader, &cities.table).unwrap();
        assert!(records.items.iter().map(|(id, _)| id).eq(&keys.items), "query {n}");
        assert_eq!(page.entries(reader).unwrap().count(), keys.items.len(), "query {n}");
        assert_eq!(page.count(reader).unwrap(), keys.items.len() as u64, "query {n}");
        paged.extend(keys.items);
        next = keys.next;
        if next.is_none() {
            break;
        }
    }
    assert_eq!(paged, wanted, "query {n}");
}

pub fn pages_join_to_the_whole_whatever_is_written_in_between(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    for order in [Order::Ascending, Order::Descending] {
        clear(store);
        fill(&cities, store, (0..100).map(|n| n * 10));
        let (mut seen, mut after) = (Vec::new(), None::<Vec<u8>>);
        for round in 0.. {
            // The continuation is converted to bytes and back, as a program does for a client.
            let continuation = after.as_deref().map(Continuation::from_bytes);
            {
                let snapshot = store.snapshot().unwrap();
                let page = cities
                    .by_size
                    .query()
                    .prefix("FR")
                    .order(order)
                    .limit(7)
                    .after(continuation.as_ref())
                    .page(&snapshot)
                    .unwrap();
                seen.extend(page.items.iter().map(|found| found.record_key().unwrap()));
                let Some(next) = page.next else { break };
                after = Some(next.as_bytes().to_vec());
            }
            // Deletes the record at which the page ended, and inserts records everywhere.
            let last = *seen.last().unwrap();
            store.transact(|txn| cities.table.delete(txn, &last)).unwrap();
            fill(&cities, store, [round * 20 + 2, round * 20 + 4]);
        }
        let originals: Vec<u16> =
            seen.iter().copied().filter(|id| id % 10 == 0 && *id > 0).collect();
        let mut expected: Vec<u16> = (1..100).map(|n| n * 10).collect();
        if order == Order::Ascending {
            expected.reverse(); // by_size is descending
        }
        assert_eq!(originals, expected, "every record that stayed is seen once, in order");
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len(), "nothing is seen twice");
    }
}

pub fn prefixes_of_any_length_reach_into_the_record_key(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    let city = |id: u16| City {
        country: if id < 60 { "FR" } else { "US" }.into(),
        name: format!("{}", id % 4),
        ..sample(id)
    };
    store.transact(|txn| cities.table.put_many(txn, (0..90).map(|id| (id, city(id))))).unwrap();
    let snapshot = store.snapshot().unwrap();
    let ids = |range: KeyRange<'static>, order| -> Vec<u16> {
        let entries = snapshot.range(range, order).unwrap();
        let unpack = |key: &[u8]| cities.by_name.space().unpack::<(String, String, u16)>(key);
        entries.map(|entry| unpack(&entry.unwrap().0).unwrap().2).collect()
    };
    let expected = |is_asked: &dyn Fn(u16) -> bool| {
        let mut ids: Vec<u16> = (0..90).filter(|id| is_asked(*id)).collect();
        ids.sort_by_key(|id| (city(*id).country, city(*id).name, *id));
        ids
    };
    // The country; the country and the name; both with a range of record keys; both with a record
    // key.
    let cases: [(&dyn Select, Vec<u16>); 5] = [
        (&"FR", expected(&|id| id < 60)),
        (&("FR", "3"), expected(&|id| id < 60 && id % 4 == 3)),
        (&within(("FR", "3", 10u16)..("FR", "3", 30)), vec![11, 15, 19, 23, 27]),
        (
            &within(("FR", "3", 50u16)..=("US", "0", 65)),
            expected(&|id| (id < 60 && id % 4 == 3 && id >= 50) || (id == 60 || id == 64)),
        ),
        (&("FR", "3", 15u16), vec![15]),
    ];
    for (n, (select, expected)) in cases.iter().enumerate() {
        let range = || select.key_range(cities.by_name.space());
        assert_eq!(&ids(range(), Order::Ascending), expected, "case {n}");
        let mut reversed = ids(range(), Order::Descending);
        reversed.reverse();
        assert_eq!(&reversed, expected, "case {n}");
        assert_eq!(snapshot.count(range()).unwrap(), expected.len() as u64, "case {n}");
    }
}

/// The largest and the smallest city per country; records without a population have no entry.
fn first_and_last_of_each_group_are_right(
    cities: &Cities,
    reader: &impl Reader,
    oracle: &BTreeMap<u16, City>,
) {
    let mut by_size: Vec<_> = oracle
        .iter()
        .filter(|(_, city)| city.population > 0)
        .map(|(id, city)| (&city.country, std::cmp::Reverse(city.population), *id))
        .collect();
    by_size.sort();
    let groups = || by_size.chunk_by(|a, b| a.0 == b.0);
    for order in [Order::Ascending, Order::Descending] {
        let ordered = |mut ids: Vec<u16>| {
            if order == Order::Descending {
                ids.reverse();
            }
            ids
        };
        let first = cities.by_size.first_of_each(reader, in_order(.., order), 1).unwrap();
        let first: Vec<u16> = first.map(|found| found.unwrap().record_key().unwrap()).collect();
        assert_eq!(first, ordered(groups().map(|group| group[0].2).collect()));
        let last = cities.by_size.last_of_each(reader, in_order(.., order), 1).unwrap();
        let last: Vec<u16> = last.map(|found| found.unwrap().record_key().unwrap()).collect();
        assert_eq!(last, ordered(groups().map(|group| group[group.len() - 1].2).collect()));
    }
}

#[test]
fn a_continuation_outlives_the_store_that_it_was_made_on() {
    let directory = tempfile::tempdir().unwrap();
    let cities = Cities::new();
    let page = |after: Option<&[u8]>| {
        // The store is opened and closed for each page, as in a program that restarts.
        let store = keyloom::Lmdb::open(directory.path()).unwrap();
        if after.is_none() {
            fill(&cities, &store, 1..=20);
        }
        let after = after.map(Continuation::from_bytes);
        let snapshot = store.snapshot().unwrap();
        let page =
            cities.by_size.query().prefix("FR").limit(4).after(after.as_ref()).page(&snapshot);
        let page = page.unwrap();
        let ids: Vec<u16> = page.items.iter().map(|found| found.record_key().unwrap()).collect();
        (ids, page.next.map(|next| next.as_bytes().to_vec()))
    };
    let (mut all, mut next) = page(None);
    while let Some(after) = next {
        let (ids, behind) = page(Some(&after));
        all.extend(ids);
        next = behind;
    }
    assert_eq!(all, [20, 18, 16, 14, 12, 10, 8, 6, 4, 2]);
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    fill(&cities, store, 1..=20);
    let metered = Metered::new(store.clone());
    let writing = |work: &dyn Fn(&mut DynWriter<'_>)| {
        let (_, cost) = metered.measure(|store| {
            let mut txn = store.begin().unwrap();
            work(&mut DynWriter::new(&mut txn));
            txn.commit().unwrap();
        });
        cost
    };
    let counts = |cost: Cost| (cost.gets, cost.ranges, cost.keys_written);

    // A put with unchanged indexed values writes one key.
    let retagged = City { tags: vec!["x".into(), "x".into()], ..sample(4) };
    assert_eq!(counts(writing(&|txn| cities.table.put(txn, &4, &retagged).unwrap())), (1, 0, 1));
    // A new name moves one entry: one key deleted, one inserted.
    let renamed = City { name: "renamed".into(), ..retagged.clone() };
    assert_eq!(counts(writing(&|txn| cities.table.put(txn, &4, &renamed).unwrap())), (1, 0, 3));
    // A new record: the record and its three entries.
    assert_eq!(counts(writing(&|txn| cities.table.put(txn, &50, &sample(50)).unwrap())), (1, 0, 4));
    // Deleting it deletes the same four keys; deleting an absent record deletes none.
    assert_eq!(counts(writing(&|txn| assert!(cities.table.delete(txn, &50).unwrap()))), (1, 0, 4));
    assert_eq!(counts(writing(&|txn| assert!(!cities.table.delete(txn, &50).unwrap()))), (1, 0, 0));
    // Without derived data a put does not read.
    let bare = Table::<u16, City>::new(&cities.space.child("bare"));
    assert_eq!(counts(writing(&|txn| bare.put(txn, &1, &sample(1)).unwrap())), (0, 0, 1));
    writing(&|txn| assert!(bare.delete(txn, &1).unwrap()));

    let snapshot = metered.snapshot().unwrap();
    let reading = |work: &dyn Fn()| metered.measure(|_| work()).1;
    let cost = reading(&|| drop(cities.table.get(&snapshot, &3).unwrap()));
    assert_eq!((cost.gets, cost.ranges, cost.keys_read, cost.round_trips), (1, 0, 1, 1));
    let cost = reading(&|| {
        let found = cities.by_name.range(&snapshot, "FR").unwrap();
        assert_eq!(found.count(), 10);
    });
    assert_eq!((cost.gets, cost.ranges, cost.keys_read, cost.round_trips), (0, 1, 10, 1));
    // Records through the index cost two round trips, whatever their number is.
    let cost = reading(&|| {
        let records =
            cities.by_name.query().prefix("FR").limit(8).records(&snapshot, &cities.table);
        assert_eq!(records.unwrap().items.len(), 8);
    });
    assert_eq!((cost.gets, cost.ranges, cost.keys_read, cost.round_trips), (8, 1, 16, 2));
}

pub fn continuations_of_other_queries_are_refused(store: &(impl Store + Clone)) {
    let cities = Cities::new();
    clear(store);
    fill(&cities, store, 1..=20);
    let snapshot = store.snapshot().unwrap();
    let page =
        |index: &Index<u16, City, AnyParts>, prefix: &str, order, after: Option<&Continuation>| {
            index
                .query()
                .prefix(prefix)
                .order(order)
                .limit(3)
                .after(after)
                .page(&snapshot)
                .map(|page| page.next)
        };
    let next = page(&cities.by_name.untyped(), "FR", Order::Ascending, None).unwrap().unwrap();
    assert!(page(&cities.by_name.untyped(), "FR", Order::Ascending, Some(&next)).is_ok());
    let others = [
        page(&cities.by_name.untyped(), "FR", Order::Descending, Some(&next)),
        page(&cities.by_name.untyped(), "US", Order::Ascending, Some(&next)),
        page(&cities.by_size.untyped(), "FR", Order::Ascending, Some(&next)),
        page(
            &cities.by_name.untyped(),
            "FR",
            Order::Ascending,
            Some(&Continuation::from_bytes(b"")),
        ),
        page(
            &cities.by_name.untyped(),
            "FR",
            Order::Ascending,
            Some(&Continuation::from_bytes(&[0; 9])),
        ),
    ];
    for other in others {
        let error = other.unwrap_err();
        assert!(
            matches!(error, Error::InvalidArgument { what: "the continuation", .. }),
            "{error}"
        );
    }
    // A record key that is also within the other query.
    let of_country =
        page(&cities.by_name.untyped(), "FR", Order::Ascending, None).unwrap().unwrap();
    let of_all = cities.by_name.query().limit(3).after(&of_country).page(&snapshot);
    assert!(matches!(of_all, Err(Error::InvalidArgument { .. })));
    let mut newer = next.as_bytes().to_vec();
    newer[0] = 2;
    let newer = page(
        &cities.by_name.untyped(),
        "FR",
        Order::Ascending,
        Some(&Continuation::from_bytes(&newer)),
    );
    assert!(matches!(newer, Err(Error::NewerFormat { found: 2, .. })));
}

/// `("a\0", ..)` begins with the bytes of `("a",)`; a number has only its own bytes as a prefix.
pub fn prefixes_do_not_find_keys_that_only_begin_with_the_same_bytes(store: &(impl Store + Clone)) {
    clear(store);
    let table = Table::<(String, u32), u32>::new(&Subspace::new("t"));
    let keys = [("a", 1), ("a", 256), ("a\0", 1), ("a\0\u{FF}", 2), ("ab", 1)];
    store
        .transact(|txn| keys.iter().try_for_each(|(s, n)| table.put(txn, &((*s).into(), *n), n)))
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let count = |select: &dyn Select| snapshot.count(select.key_range(table.space())).unwrap();
    assert_eq!(count(&"a"), 2);
    assert_eq!(count(&"a\0"), 1);
    assert_eq!(count(&("a", 1)), 1);
    assert_eq!(count(&()), 5);
    assert_eq!(pack(&("a",)), pack("a"), "a value is the tuple of itself");
}

#[test]
fn entries_of_different_records_differ_for_any_parts() {
    use keyloom::List;
    type Words = List<Vec<String>>;
    let words = |all: &[&str]| List(all.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
    let index = Index::new(&Subspace::new("i"), |_: &Words, v: &Vec<String>| entry(List(&v[..])));
    let table = Table::<Words, Vec<String>>::new(&Subspace::new("t")).with(&index);
    let store = keyloom::Memory::new();
    let (ab, abc) = (vec!["a".to_owned(), "b".to_owned()], vec!["a".to_owned()]);
    store
        .transact(|txn| {
            table.put(txn, &words(&["c"]), &ab)?;
            table.put(txn, &words(&["b", "c"]), &abc)
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(index.count(&snapshot, ..).unwrap(), 2);
    assert_eq!(index.check(&snapshot, &table).unwrap(), []);
}

#[test]
fn a_beginning_of_no_string_is_the_whole_of_what_was_named() {
    let store = keyloom::Memory::new();
    let index = Index::new(&Subspace::new("by"), |_: &u16, size: &u32| entry(size));
    let other = Subspace::new("by_other").pack(&1);
    let table = Table::<u16, u32>::new(&Subspace::new("t")).with(&index);
    store
        .transact(|txn| {
            txn.put(&other, b"not of this index")?;
            [(1, 256), (2, 257), (3, 256)].iter().try_for_each(|(id, v)| table.put(txn, id, v))
        })
        .unwrap();
    let snapshot = store.snapshot().unwrap();
    let all = index.range(&snapshot, starting_with(())).unwrap();
    assert_eq!(all.map(Result::unwrap).count(), 3);
    let of_256 = index.range(&snapshot, starting_with(256)).unwrap();
    assert_eq!(of_256.map(Result::unwrap).count(), 2);
}

#[test]
fn types_fit_in_struct_fields_and_are_send_and_sync() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<Cities>();
    shared::<Table<u32, City, keyloom::value::Json>>();
}
