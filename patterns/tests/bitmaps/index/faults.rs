//! Costs, faults, conflicts and bad input.

use std::ops::ControlFlow;

use keyloom::{
    DynWriter, Error, Fault, Faulty, Limits, Memory, Metered, Result, Store, Subspace, Writer,
};
use keyloom_bitmaps::{InvertedIndex, InvertedIndexError, one};
use keyloom_tables::Maintained;
use keyloom_tables::Table;
use keyloom_tables::derived::RepairOptions;

use super::fixture::{User, audience, by_number, name, sample};
use keyloom_testing::laws::{clear, counts, dump_all, refused, waits, writing};

fn user(city: &str, sites: &[&str], cents: Option<i64>) -> User {
    let sites = sites.iter().map(|site| (*site).into()).collect();
    User { city: Some(city.into()), sites, is_member: true, cents, visits: 0 }
}

pub fn operations_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    clear(store);
    let (of, metered) = (audience(), Metered::new(store.clone()));
    let put = |n: u32, user: User| {
        let table = of.table.clone();
        move |txn: &mut DynWriter<'_>| table.put(txn, &name(n), &user)
    };
    // Gets, ranges, keys read, keys written. Written are the record, its id and the next id, and a
    // column for each of four fields. The containers are: all, a city, a site, members, users with
    // cents, and two bits of the five cents. Three fields get a new container, which is counted.
    let first = writing(&metered, put(0, user("Oslo", &["a.org"], Some(5))));
    assert_eq!(first, [1 + 2 + 7 + 4, 0, 0, 1 + 3 + 7 + 4 + 3]);
    let second = writing(&metered, put(1, user("Oslo", &["a.org"], Some(5))));
    assert_eq!(second, [1 + 2 + 7 + 4, 0, 1 + 7 + 4, 1 + 3 + 7 + 4], "no container is new");
    // A record without values costs only the record. A value in one field adds two containers and a
    // column.
    let again = writing(&metered, put(1, User { visits: 9, ..user("Oslo", &["a.org"], Some(5)) }));
    assert_eq!(again, [1, 0, 1, 1]);
    let moved = writing(&metered, put(1, user("Rome", &["a.org"], Some(5))));
    let cities = "the record, its id, two cities and the column";
    assert_eq!(moved, [1 + 2 + 2 + 1, 0, 1 + 2 + 1 + 1, 1 + 2 + 1 + 1], "{cities}");
    assert_eq!(waits(&metered, put(1, user("Oslo", &[], Some(4)))), 1 + 1 + 1 + 1);
    // A thousand records need as many round trips as one record.
    let many = |txn: &mut DynWriter<'_>| {
        of.table.put_many(txn, (10..1_010).map(|n| (name(n), user("Oslo", &["a.org"], Some(4)))))
    };
    assert_eq!(waits(&metered, many), 1 + 1 + 1 + 1);
    let gone = writing(&metered, |txn| of.table.delete(txn, &name(500)).map(drop));
    assert_eq!(gone, [1 + 2 + 1 + 6 + 4, 0, 1 + 2 + 6 + 4, 1 + 3 + 1 + 6 + 4], "and a free id");

    let snapshot = metered.snapshot().unwrap();
    let reading = |work: &dyn Fn()| counts(metered.measure(|_| work()).1);
    let index = &of.index;
    let ask = || {
        index.term("city", "Oslo").unwrap();
        index.absent("site").unwrap();
        index.has("cents").unwrap();
    };
    assert_eq!(reading(&ask), [0; 4], "nothing before it is asked");
    assert_eq!(
        reading(&|| assert!(index.id_of(&snapshot, &name(1)).unwrap().is_some())),
        [1, 0, 1, 0]
    );
    assert_eq!(reading(&|| drop(index.keys(&snapshot, [0, 1, 9_999]).unwrap())), [3, 0, 2, 0]);
    assert_eq!(reading(&|| drop(index.forward(&snapshot, 1).unwrap())), [1 + 4, 0, 1 + 4, 0]);
    assert_eq!(
        reading(&|| assert_eq!(index.containers(&snapshot, "city").unwrap(), 1)),
        [1, 0, 1, 0]
    );
    assert_eq!(reading(&|| drop(index.any_term(&snapshot, "city", ()).unwrap())), [0, 1, 1, 0]);
    let list = || (0..300).map(|n| format!("city {n}")).chain(["Oslo".into()]);
    let (_, cost) = metered.measure(|_| index.any_of_terms(&snapshot, "city", list()).unwrap());
    assert_eq!((cost.round_trips, counts(cost)), (1, [0, 301, 1, 0]), "one wait for a list");
    let forward_range = || {
        assert_eq!(index.forward_range(&snapshot, 10..20).unwrap().count(), 10);
    };
    assert_eq!(reading(&forward_range), [0, 1 + 4, 1 + 4, 0]);
    let values = || {
        let values = index.value_counts::<_, String, _>(&snapshot, "city", ..);
        assert_eq!(
            values.unwrap().map(Result::unwrap).collect::<Vec<_>>(),
            [("Oslo".into(), 1_001)]
        );
    };
    assert_eq!(reading(&values), [0, 1, 1, 0]);
    assert_eq!(reading(&|| assert_eq!(index.distinct(&snapshot, "city", ()).unwrap(), 1))[1], 1);
}

fn prepare<S: Store>(store: &S) {
    let users = (0..5).map(|n| (name(n), sample(n)));
    store.transact(|txn| audience().table.put_many(txn, users.clone())).unwrap();
}

pub fn a_fault_while_reading_says_so(store: &(impl Store + Clone)) {
    clear(store);
    prepare(store);
    let (of, faulty) = (audience(), Faulty::new(store.clone()));
    let ask = || -> Result<(u64, u64, usize, usize, usize)> {
        let snapshot = faulty.snapshot()?;
        let index = &of.index;
        let counts = index.value_counts::<_, String, _>(&snapshot, "site", ..)?;
        let counts = counts.collect::<Result<Vec<_>>>()?.len();
        let any = index.any_term(&snapshot, "city", ())?.count(&snapshot)?;
        let direct = index.forward_range(&snapshot, ..)?.collect::<Result<Vec<_>>>()?;
        let faults = index.check(&snapshot, &of.table)?.len();
        Ok((any, index.distinct(&snapshot, "city", ())?, counts, direct.len(), faults))
    };
    let right = ask().unwrap();
    for n in 0.. {
        faulty.fail_at(n, Fault::Error);
        let asked = ask();
        faulty.clear_fault();
        match asked {
            Ok(answer) => {
                assert_eq!(answer, right);
                assert!(n > 20, "there are {n} operations");
                break;
            }
            Err(error) => assert!(error.to_string().contains("made to fail"), "{error}"),
        }
    }
}

/// The store limits values to fewer bytes than some columns need.
#[test]
fn column_above_the_value_limit_is_refused_and_nothing_written() {
    let mut limits = Limits::foundationdb();
    // A slow machine may need longer than the age limit.
    limits.max_age_ms = None;
    let store = Memory::builder().limits(limits).build();
    let of = by_number();
    let sites = |n: u32| (0..10).map(|m| format!("a site of {n:05}, number {m}")).collect();
    let users: Vec<_> = (0..1_016).map(|n| (n, User { sites: sites(n), ..sample(n) })).collect();
    let is_refused = |error: Error| {
        let told = error.to_string();
        assert!(told.starts_with(r#"the values of the field "site" of 1,016 ids make"#), "{told}");
        let Some(InvertedIndexError::ColumnTooLarge { index, field, bytes, limit }) =
            error.downcast_ref()
        else {
            panic!("{told}");
        };
        assert_eq!((&**index, &**field, *limit), (r#"("index",)"#, "site", 100_000));
        // Each id has ten values of 28 bytes, in packed form.
        assert!(*bytes > 100_000 && *bytes < 1_016 * 10 * 34, "{bytes}");
    };
    // Each value is small, but together they exceed the limit, whether they are put at once or one
    // by one.
    is_refused(refused(&store, |txn| of.table.put_many(txn, &users)));
    const CERTAIN: usize = 250;
    store.transact(|txn| of.table.put_many(txn, &users[..CERTAIN])).unwrap();
    let fits = users[CERTAIN..].iter().position(|(key, user)| {
        let put = store.transact(|txn| of.table.put(txn, key, user));
        put.map_err(is_refused).is_err()
    });
    let fits = CERTAIN + fits.unwrap();
    assert_eq!(of.faults(&store), []);
    let (key, user) = &users[fits];
    is_refused(refused(&store, |txn| of.table.put(txn, key, user)));
    // The same in a repair, with any batch size.
    store.transact(|txn| of.bare().put(txn, key, user)).unwrap();
    let before = dump_all(&store);
    for batch in [1, 40_000] {
        let options = RepairOptions { batch, resume: None };
        let done = of.index.repair_with(&store, &of.table, &options, |_| ControlFlow::Continue(()));
        is_refused(done.unwrap_err());
        assert_eq!(dump_all(&store), before);
    }
    // A record of another block is not affected.
    store.transact(|txn| of.table.put(txn, &2_000, user)).unwrap();
}

pub fn bad_input_is_refused_and_nothing_is_written(store: &(impl Store + Clone)) {
    clear(store);
    prepare(store);
    let of = audience();
    let index = &of.index;
    let snapshot = store.snapshot().unwrap();
    let unknown = index.term("town", "Oslo").unwrap_err();
    let says = r#"the inverted index ("index",) has no field "town"; it has "city", "site", "cents", "member""#;
    assert_eq!(unknown.to_string(), says);
    assert!(matches!(unknown.downcast_ref(), Some(InvertedIndexError::UnknownField { .. })));
    for error in [
        index.absent("town").unwrap_err(),
        index.has("town").unwrap_err(),
        index.integers_of("town").unwrap_err(),
        index.any_term(&snapshot, "town", ()).unwrap_err(),
        index.distinct(&snapshot, "town", ()).unwrap_err(),
        index.containers(&snapshot, "town").unwrap_err(),
    ] {
        assert_eq!(error.to_string(), says);
    }
    let other = index.term("cents", 5).unwrap_err().to_string();
    assert!(other.contains(r#"the field "cents" of"#) && other.contains("integers, not values"));
    let other = index.integers_of("city").unwrap_err().to_string();
    assert!(other.contains("values, not integers"), "{other}");
    drop(snapshot);

    // A value that is too long for a key, and the longest value that fits.
    let with_city = |length: usize| User { city: Some("é".repeat(length)), ..sample(1) };
    let put = |length: usize| {
        let many = [(name(1), sample(4)), (name(30), with_city(length))];
        let table = of.table.clone();
        move |txn: &mut DynWriter<'_>| table.put_many(txn, &many)
    };
    let error = refused(store, put(250));
    let says = error.to_string();
    assert!(says.starts_with(r#"the value ("éééé"#), "{says}");
    assert!(says.contains(r#"of the field "city" makes a key of 530 bytes in the inverted index ("index",), the limit is 511; give a shorter one"#), "{says}");
    let Some(InvertedIndexError::ValueTooLong { bytes, limit, .. }) = error.downcast_ref() else {
        panic!("{error}");
    };
    let longest = 250 - (bytes - limit).div_ceil(2);
    assert!(refused(store, put(longest + 1)).downcast_ref::<InvertedIndexError>().is_some());
    store.transact(|txn| put(longest)(&mut DynWriter::new(txn))).unwrap();
    assert_eq!(of.faults(store), []);
    // The same in a repair.
    store.transact(|txn| of.bare().put(txn, &name(31), &with_city(250))).unwrap();
    let done = index.build(store, &of.table, |_| ControlFlow::Continue(()));
    assert!(done.unwrap_err().downcast_ref::<InvertedIndexError>().is_some());

    // Ids beyond the universe.
    clear(store);
    let few = InvertedIndex::new(&Subspace::new("few"))
        .field("even", |_, n: &u32| one(n.is_multiple_of(2)));
    let few = few.within_universe(2);
    let table = Table::<String, u32>::new(&Subspace::new("numbers")).with(&few);
    store.transact(|txn| table.put_many(txn, [(name(1), 1), (name(2), 2)])).unwrap();
    let error = refused(store, |txn| table.put(txn, &name(3), &3));
    assert!(matches!(error.downcast_ref(), Some(InvertedIndexError::NoIdLeft { universe: 2, .. })));
    let bounded = by_number();
    let bounded = bounded.bare().with(&bounded.index.clone().within_universe(100));
    let error = refused(store, |txn| bounded.put(txn, &100, &sample(1)));
    assert!(error.to_string().contains("not below 100"), "{error}");

    // Stored bytes that are not a container, and a container of a newer program.
    clear(store);
    prepare(store);
    let key = index.space().pack(&("terms", "member", true, 0));
    let is_member = |n: u32| sample(n).is_member;
    let member = (10..).find(|n| is_member(*n)).unwrap();
    for (junk, says) in
        [(&b"\x0Fjunk"[..], "not a chunk of a bitmap"), (b"\x21newer", "has format 2")]
    {
        store.transact(|txn| txn.put(&key, junk)).unwrap();
        let named = |error: Error| {
            let told = error.to_string();
            assert!(told.starts_with(r#"at key ("index", "terms", "member", true, 0)"#), "{told}");
            assert!(told.contains(says), "{told}");
        };
        named(refused(store, |txn| of.table.put(txn, &name(member), &sample(member))));
        let snapshot = store.snapshot().unwrap();
        named(index.term("member", true).unwrap().count(&snapshot).unwrap_err());
        named(index.any_term(&snapshot, "member", true).unwrap_err());
        let counts = index.value_counts::<_, bool, _>(&snapshot, "member", ..);
        named(counts.unwrap().find_map(Result::err).unwrap());
        let faults = index.check(&snapshot, &of.table).unwrap();
        assert!(faults.iter().any(|fault| fault.key[..] == *key), "{faults:?}");
    }
    let key = index.space().pack(&("direct", "city", 0));
    store.transact(|txn| txn.put(&key, b"\x21")).unwrap();
    let error = index.forward(&store.snapshot().unwrap(), 0).unwrap_err().to_string();
    assert_eq!(
        error,
        r#"at key ("index", "direct", "city", 0): the forward index has format 2, this program reads formats up to 1; upgrade the program"#
    );
    // A table within the subspace of the index.
    let inside = Table::<String, User>::new(&index.space().child("users")).with(index);
    let before = dump_all(store);
    let put = store.transact(|txn| inside.put(txn, &name(1), &sample(1)));
    let error = put.unwrap_err().to_string();
    assert!(error.contains("overlap; give each its own"), "{error}");
    assert_eq!(dump_all(store), before);
}
