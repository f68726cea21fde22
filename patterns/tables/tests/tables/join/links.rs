//! Links are equal in both directions after any changes.

use std::collections::BTreeSet;

use keyloom::{Cost, Metered, Result, Store, Subspace};
use keyloom_tables::join::Links;
use proptest::prelude::*;

use keyloom_testing::ids::number;
use keyloom_testing::laws::{clear, dump_all, property};

/// Links whose left ends are tuples with common prefixes.
pub type Ends = Links<(String, u8), u16>;

pub fn links() -> Ends {
    Links::new(&Subspace::new("links"))
}

pub fn left(n: u8) -> (String, u8) {
    (["a", "a\0", "b"][usize::from(n % 3)].to_owned(), n / 3)
}

fn rights(links: &Ends, store: &impl Store, left: &(String, u8)) -> Vec<u16> {
    let snapshot = store.snapshot().unwrap();
    let rights = links.rights_of(&snapshot, left).unwrap();
    rights.collect::<Result<_>>().unwrap()
}

pub fn rebuilt_from_scratch_equals_maintained_step_by_step(store: &(impl Store + Clone)) {
    let links = links();
    let right = (0..4u64).prop_map(|n| number(n) as u16);
    let step = (0..4u8, 0..9u8, right);
    let history = prop::collection::vec(prop::collection::vec(step, 1..6), 1..15);
    property(history, |history| {
        clear(store);
        let mut oracle = BTreeSet::new();
        for steps in &history {
            store
                .transact(|txn| {
                    for (what, one, other) in steps {
                        match what {
                            0 => drop(links.unlink(txn, &left(*one), other)?),
                            1 if *other == 0 => drop(links.unlink_left(txn, &left(*one), 99)?),
                            1 => drop(links.unlink_right(txn, other, 99)?),
                            _ => links.link(txn, &left(*one), other)?,
                        }
                    }
                    Ok(())
                })
                .unwrap();
            for (what, one, other) in steps {
                match what {
                    0 => drop(oracle.remove(&(left(*one), *other))),
                    1 if *other == 0 => oracle.retain(|(l, _)| *l != left(*one)),
                    1 => oracle.retain(|(_, r)| r != other),
                    _ => drop(oracle.insert((left(*one), *other))),
                }
            }
        }
        let snapshot = store.snapshot().unwrap();
        assert_eq!(links.check(&snapshot).unwrap(), []);
        for n in 0..9 {
            let of_left = oracle.iter().filter(|(l, _)| *l == left(n)).map(|(_, r)| *r);
            assert_eq!(rights(&links, store, &left(n)), of_left.collect::<Vec<_>>());
        }
        for right in (0..4).map(|n| number(n) as u16) {
            let lefts = links.lefts_of(&snapshot, &right).unwrap();
            let of_right = oracle.iter().filter(|(_, r)| *r == right).map(|(l, _)| l.clone());
            assert_eq!(lefts.collect::<Result<Vec<_>>>().unwrap(), of_right.collect::<Vec<_>>());
        }
        drop(snapshot);

        let maintained = dump_all(store);
        clear(store);
        store
            .transact(|txn| links.table().put_many(txn, oracle.iter().cloned().map(|l| (l, ()))))
            .unwrap();
        assert_eq!(maintained, dump_all(store));
    });
}

pub fn links_of_an_end_are_taken_away_in_bounded_steps(store: &(impl Store + Clone)) {
    let links = links();
    clear(store);
    let all = || (0..10).flat_map(|one| (0..4).map(move |other| ((left(one), other), ())));
    store.transact(|txn| links.table().put_many(txn, all())).unwrap();
    let step = || store.transact(|txn| links.unlink_right(txn, &2, 4)).unwrap();
    assert_eq!([step(), step(), step(), step()], [4, 4, 2, 0]);
    let step = || store.transact(|txn| links.unlink_left(txn, &left(5), 2)).unwrap();
    assert_eq!([step(), step(), step()], [2, 1, 0]);
    assert_eq!(rights(&links, store, &left(4)), [0, 1, 3]);
    assert_eq!(links.check(&store.snapshot().unwrap()).unwrap(), []);
}

pub fn links_cost_what_the_documentation_says(store: &(impl Store + Clone)) {
    let links = links();
    clear(store);
    let metered = Metered::new(store.clone());
    let counts = |cost: Cost| (cost.gets, cost.ranges, cost.keys_read, cost.keys_written);
    let linking = || metered.measure(|store| store.transact(|txn| links.link(txn, &left(1), &7))).1;
    assert_eq!(counts(linking()), (1, 0, 0, 2));
    // The link itself is written again, but its reversed entry is not.
    assert_eq!(counts(linking()), (1, 0, 1, 1));
    let unlinking =
        || metered.measure(|store| store.transact(|txn| links.unlink(txn, &left(1), &7))).1;
    assert_eq!(counts(unlinking()), (1, 0, 1, 2));
    assert_eq!(counts(unlinking()), (1, 0, 0, 0));

    store.transact(|txn| links.table().put_many(txn, (0..20).map(|n| ((left(2), n), ())))).unwrap();
    let snapshot = metered.snapshot().unwrap();
    let (found, cost) = metered.measure(|_| links.rights_of(&snapshot, &left(2)).unwrap().count());
    assert_eq!((found, counts(cost)), (20, (0, 1, 20, 0)));
    let (found, cost) = metered.measure(|_| links.lefts_of(&snapshot, &3).unwrap().count());
    assert_eq!((found, counts(cost)), (1, (0, 1, 1, 0)));
    drop(snapshot);
    let (_, cost) = metered
        .measure(|store| store.transact(|txn| links.unlink_left(txn, &left(2), 12)).unwrap());
    assert_eq!((cost.gets, cost.ranges, cost.keys_written), (12, 1, 24));
}

#[test]
fn a_link_says_what_there_is_to_say_of_it() {
    let store = keyloom::Memory::new();
    let roles = Links::<u8, u8, String>::new(&Subspace::new("roles"));
    store.transact(|txn| roles.table().put(txn, &(1, 2), &"owner".into())).unwrap();
    store.transact(|txn| roles.table().put(txn, &(1, 2), &"guest".into())).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(roles.table().get(&snapshot, &(1, 2)).unwrap().as_deref(), Some("guest"));
    assert_eq!(roles.lefts_of(&snapshot, &2).unwrap().count(), 1);
    assert_eq!(roles.check(&snapshot).unwrap(), []);
}
