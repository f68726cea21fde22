//! The store satisfies the laws of the store, and so do its wrappers.

use keyloom::{BoxedError, Faulty, Metered, Store};
use keyloom_conformance::{Suite, With};
use keyloom_etcd::Etcd;

use crate::server::{Cleanup, Server, fresh};

fn check<S: Store>(suite: &Suite, wrap: impl Fn(Etcd) -> S) {
    let Some(server) = Server::from_environment() else { return };
    let make = || -> Result<With<S, Cleanup>, BoxedError> {
        let (store, cleanup) = server.fresh(Etcd::options());
        Ok(With(wrap(store), cleanup))
    };
    suite.check(make);
}

/// Fewer operations suffice to distinguish a wrapper from the wrapped store.
fn small() -> Suite {
    Suite::new().operations(500)
}

#[test]
fn etcd_keeps_the_laws() {
    check(&Suite::new(), |store| store);
}

#[test]
fn metered_etcd_keeps_the_laws() {
    check(&small(), Metered::new);
}

#[test]
fn faulty_etcd_without_a_fault_keeps_the_laws() {
    check(&small(), Faulty::new);
}

#[test]
fn etcd_refuses_what_is_no_counter() {
    use keyloom::{Error, Writer};
    let (store, _cleanup) = fresh!();
    store.transact(|txn| txn.put(b"n", b"abc")).unwrap();
    let refused = store.transact(|txn| txn.add(b"n", 1));
    assert!(matches!(refused, Err(Error::NotACounter { bytes: 3, .. })), "{refused:?}");
}
