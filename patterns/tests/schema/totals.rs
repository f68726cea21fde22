//! The conformance suite for a kind that is not idempotent, also on servers;
//! tests/derived_conformance tests all kinds.

use std::collections::BTreeMap;

use keyloom::{Reader, Result, Store, Subspace};
use keyloom_patterns::Totals;
use keyloom_patterns::aggregate::contribution;
use keyloom_patterns::conformance::{Subject, check_maintained};

use crate::fixture::{Sale, sale};

struct CentsOfTowns;

impl Subject for CentsOfTowns {
    type Key = u32;
    type Value = Sale;
    type Kind = Totals<u32, Sale, String>;
    type Answers = [i64; 3];

    fn make(&self, space: &Subspace) -> Result<Self::Kind> {
        Ok(Totals::new(space, |_, sale: &Sale| contribution(&sale.town, sale.cents)))
    }

    /// Versions 0 and 1 differ only in the serial number.
    fn record(&self, n: u32, version: u32) -> (u32, Sale) {
        (n, Sale { serial: Some(version), ..sale(n + version / 2) })
    }

    fn answers(&self, totals: &Self::Kind, reader: &impl Reader) -> Result<[i64; 3]> {
        let of = |town| totals.get(reader, town);
        Ok([of("Bern")?, of("Genf")?, of("Chur")?])
    }

    fn model(&self, sales: &BTreeMap<u32, Sale>) -> [i64; 3] {
        ["Bern", "Genf", "Chur"].map(|town| {
            sales.values().filter(|sale| sale.town == town).map(|sale| sale.cents).sum()
        })
    }

    fn is_neutral(&self, value: &[u8]) -> bool {
        value == [0; 8]
    }
}

pub fn totals_keep_the_laws_of_derived_data(store: &(impl Store + Clone)) {
    check_maintained(|| Ok(store.clone()), &CentsOfTowns);
}
