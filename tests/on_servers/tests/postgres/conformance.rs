//! PostgreSQL satisfies the laws of the store.

use keyloom::{Faulty, Metered, Store};
use keyloom_conformance::With;
use keyloom_postgres::Postgres;

use keyloom_testing::servers::stores::Temporary;
use keyloom_testing::servers::stores::postgres::{address, open};

fn check<S: Store>(wrap: impl Fn(Postgres) -> S) {
    if address().is_none() {
        return;
    }
    keyloom_conformance::check(|| {
        let store: Temporary<Postgres> = open().ok_or("there was a server before")?;
        Ok(With(wrap(store.clone()), store))
    });
}

#[test]
fn postgres_keeps_the_laws() {
    check(|store| store);
}

#[test]
fn metered_postgres_keeps_the_laws() {
    check(Metered::new);
}

#[test]
fn faulty_postgres_without_a_fault_keeps_the_laws() {
    check(Faulty::new);
}

#[test]
fn postgres_refuses_what_is_no_counter() {
    use keyloom::{Error, Writer};
    let Some(store) = open() else { return };
    store.transact(|txn| txn.put(b"n", b"abc")).unwrap();
    let refused = store.transact(|txn| txn.add(b"n", 1));
    assert!(matches!(refused, Err(Error::NotACounter { bytes: 3, .. })), "{refused:?}");
}
