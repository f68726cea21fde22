//! The store keeps the laws of the store, and so do the wrappers around it.

use keyloom::{BoxedError, Etcd, Faulty, Metered, Store, conformance};

use crate::server::{Cleanup, Server};

fn check<S: Store>(wrap: impl Fn(Etcd) -> S) {
    let Some(server) = Server::from_environment() else { return };
    let make = || -> Result<(S, Cleanup), BoxedError> {
        let (store, cleanup) = server.fresh(Etcd::options());
        Ok((wrap(store), cleanup))
    };
    conformance::check(make);
}

#[test]
fn etcd_keeps_the_laws() {
    check(|store| store);
}

#[test]
fn metered_etcd_keeps_the_laws() {
    check(Metered::new);
}

#[test]
fn faulty_etcd_without_a_fault_keeps_the_laws() {
    check(Faulty::new);
}
