//! The six kinds of misuse, by a program that runs concurrently with a program that has the shop
//! open.

use keyloom::value::Codec;
use keyloom::{Result, Store, Subspace};
use keyloom_patterns::aggregate::contribution;
use keyloom_patterns::{Index, Maintained, Schema, Table, Totals, entry};

use super::program::{Program, Record, Said, TOWNS, said, sale};

const OF_SCHEMAS: &str = "belong to schemas";
const OTHER_TABLE: &str = "does not maintain this derived data";

/// Parts of the errors, for each misuse.
pub const ANSWERS: [&[&str]; 6] = [
    &["outside of the assigned subspace", OF_SCHEMAS],
    &["the record is Sale in the store and f64 in the program", OF_SCHEMAS],
    &["belongs to a schema", "declares \"sales.totals\" twice", OF_SCHEMAS],
    &[OF_SCHEMAS, OF_SCHEMAS],
    &[OTHER_TABLE],
    &[OTHER_TABLE, OTHER_TABLE, OTHER_TABLE],
];

/// Tries a misuse in several ways. Reports each outcome.
pub fn misuse<S: Store, V: Record, C: Codec<V> + Codec<f64>>(
    program: &Program<'_, S, V, C>,
    number: usize,
    say: &mut impl FnMut(Said),
) {
    let mut tried = |way: &str, outcome: Result<()>| {
        say(said(outcome, |()| Said::Misused(way.to_owned())));
    };
    let Program { store, schema, sales, totals, by_town } = program;
    let town = |_: &u32, record: &V| entry(&record.sale().town);
    let put = |table: &Table<u32, V, C>| store.transact(|txn| table.put(txn, &1, &V::of(sale(50))));
    let by_town = by_town.as_ref().unwrap();
    let snapshot = store.snapshot().unwrap();
    let other = Table::<u32, V, C>::with_codec(&Subspace::new("elsewhere"));
    match number {
        0 => {
            let among = |_: &Subspace| Ok(Index::new(sales.space(), town).unique());
            let derived = schema.derive(sales, "among the records", 1, among).map(drop);
            tried("a unique index among the records", derived);
            let explicit = Table::with_codec(sales.space());
            let index = Index::new(sales.space(), town).unique();
            tried("the same with explicit subspaces", put(&explicit.with(&index)));
        }
        1 => {
            let again = Schema::open(*store, "shop").unwrap();
            let table = again.table_with::<u32, f64, C>("sales", 1).map(drop);
            tried("a table of another type", table);
            let table = Table::<u32, f64>::new(sales.space());
            tried("the same with an explicit subspace", {
                store.transact(|txn| table.put(txn, &1, &0.5))
            });
        }
        2 => {
            let cents = |_: &u32, record: &V| contribution(&record.sale().town, 1);
            let twice = Totals::new(&totals.space(), cents);
            tried("totals given to the table again", put(&sales.clone().with(&twice)));
            let again = schema.totals(sales, "totals", 1, cents).map(drop);
            tried("totals declared again", again);
            tried("totals of a table elsewhere", put(&other.with(&twice)));
        }
        3 => {
            tried("a plain put to the subspace", put(&Table::with_codec(sales.space())));
            let table = Table::<u32, V, C>::with_codec(sales.space());
            let deleted = store.transact(|txn| table.delete(txn, &1).map(drop));
            tried("a plain delete in the subspace", deleted);
        }
        4 => {
            let query = by_town.at(&snapshot).unwrap().query().prefix(TOWNS[0]);
            tried("the records of another table", query.records(&snapshot, &other).map(drop));
        }
        _ => {
            let index = by_town.at(&snapshot).unwrap();
            let repaired = index.repair(*store, &other).map(drop);
            tried("a repair by another table", repaired);
            tried("a check by another table", index.check(&snapshot, &other).map(drop));
            let totals = totals.at(&snapshot).unwrap();
            let repaired = totals.repair(*store, &other).map(drop);
            tried("a repair of totals by another table", repaired);
        }
    }
}
