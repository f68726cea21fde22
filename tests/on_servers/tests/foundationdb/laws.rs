//! FoundationDB satisfies the laws of the store, and so do the wrappers.

use keyloom::{AnyStore, Faulty, Metered, Store};
use keyloom_conformance::{Suite, With};
use keyloom_foundationdb::FoundationDb;

use keyloom_testing::servers::stores::Temporary;
use keyloom_testing::servers::stores::foundationdb::{address, open};

fn check<S: Store>(suite: &Suite, wrap: impl Fn(FoundationDb) -> S) {
    if address().is_none() {
        return;
    }
    suite.check(|| {
        let store: Temporary<FoundationDb> = open().ok_or("there was a cluster before")?;
        Ok(With(wrap(store.clone()), store))
    });
}

/// Fewer operations suffice to distinguish a wrapper from the wrapped store.
fn small() -> Suite {
    Suite::new().operations(500)
}

#[test]
fn foundationdb_keeps_the_laws() {
    check(&Suite::new(), |store| store);
}

#[test]
fn metered_foundationdb_keeps_the_laws() {
    check(&small(), Metered::new);
}

#[test]
fn faulty_foundationdb_without_a_fault_keeps_the_laws() {
    check(&small(), Faulty::new);
}

#[test]
fn foundationdb_behind_an_address_keeps_the_laws() {
    check(&small(), |store| AnyStore::other(store.place(), store.clone()));
}
