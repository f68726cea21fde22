//! Damage, faults and conflicts.

use keyloom::{DynWriter, Result, Store, Subspace, Writer};
use keyloom_testing::laws;

use super::directed;

fn prepare(store: &impl Store) {
    let graph = directed(store);
    let edges = (0..6_u32).map(|n| ((n % 3, "to".to_owned(), n), n));
    store.transact(|txn| graph.put_edges(txn, edges.clone())).unwrap();
}

fn change(store: &impl Store) -> impl Fn(&mut DynWriter<'_>) -> Result<()> {
    let graph = directed(store);
    move |txn| {
        graph.put_edge(txn, &1, "to", &5, &9)?;
        graph.put_edge(txn, &1, "to", &4, &9)?;
        graph.delete_edge(txn, &2, "to", &5)?;
        graph.put_vertex(txn, &8, &8)
    }
}

fn faults(store: &impl Store) -> Vec<String> {
    let found = directed(store).check(&store.snapshot().unwrap()).unwrap();
    found.iter().map(ToString::to_string).collect()
}

pub fn faults_leave_nothing_half_done(store: &(impl Store + Clone)) {
    laws::clear(store);
    prepare(store);
    laws::faults_leave_nothing_half_done(store, prepare, change(store), faults);
}

pub fn conflicts_are_retried_to_the_same_end(store: &(impl Store + Clone)) {
    laws::clear(store);
    prepare(store);
    laws::conflicts_are_retried_to_the_same_end(store, prepare, change(store));
}

pub fn damage_is_found_and_repaired(store: &impl Store) {
    prepare(store);
    let graph = directed(store);
    // The schema stores the lease of a repair outside these keys.
    let data = || {
        let edges = graph.edges().space().prefix().to_vec();
        let dump = laws::dump_all(store).into_iter();
        // A counter of 0 is equivalent to a missing counter.
        let is_data = |key: &[u8], value: &[u8]| key.first() == edges.first() && value != [0; 8];
        dump.filter(|(key, value)| is_data(key, value)).collect::<laws::Dump>()
    };
    let (whole, edges) = (data(), graph.edges().space().prefix().to_vec());
    let entries: Vec<_> = whole.iter().filter(|(key, _)| !key.starts_with(&edges)).collect();
    assert_eq!(entries.len(), 6 + 9, "incoming edges and degrees");
    for (key, value) in &entries {
        for damage in 0..3 {
            store
                .transact(|txn| match damage {
                    0 => txn.delete(key),
                    1 => txn.put(key, &[value.as_slice(), b"x"].concat()),
                    _ => txn.put(&[key.as_slice(), &Subspace::new(&7).pack(&())].concat(), value),
                })
                .unwrap();
            assert_ne!(faults(store), [""; 0], "{damage} at {key:?}");
            graph.repair(store).unwrap();
            assert!(data() == whole, "{damage} at {key:?}");
        }
    }
}
