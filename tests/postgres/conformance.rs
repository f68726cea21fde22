//! PostgreSQL keeps the laws of the store.

use keyloom::{Faulty, Metered, conformance};

use crate::server::{address, fixture};

#[test]
fn postgres_keeps_the_laws() {
    let Some(address) = address() else { return };
    conformance::check(|| fixture(&address));
}

#[test]
fn metered_postgres_keeps_the_laws() {
    let Some(address) = address() else { return };
    conformance::check(|| fixture(&address).map(|(store, it)| (Metered::new(store), it)));
}

#[test]
fn faulty_postgres_without_a_fault_keeps_the_laws() {
    let Some(address) = address() else { return };
    conformance::check(|| fixture(&address).map(|(store, it)| (Faulty::new(store), it)));
}
