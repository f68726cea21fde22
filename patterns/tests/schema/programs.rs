//! Two programs with different schemas on one store: each operation is refused or correct.

use keyloom::value::Json;
use keyloom::{Result, Store};
use keyloom_patterns::{Attached, Index, IndexEntries, Schema, SchemaError, Table, entry};

use crate::fixture::{Sale, sale};
use keyloom_testing::laws::clear;

/// The declarations of a program in addition to the table of sales.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Declares {
    Nothing,
    ByTown,
    /// The next version of the same index.
    ByTownAndAmount,
    /// The next version of the table, with records of another codec.
    OtherCodec,
}

#[derive(Clone, Copy, Debug)]
enum Does {
    Reads,
    Writes,
    Builds,
    Drops,
}

const PROGRAMS: [Declares; 4] =
    [Declares::Nothing, Declares::ByTown, Declares::ByTownAndAmount, Declares::OtherCodec];
const DEEDS: [Does; 4] = [Does::Reads, Does::Writes, Does::Builds, Does::Drops];

type TownAndAmount = (String, i64);

struct Program<'s, S> {
    store: &'s S,
    sales: Table<u32, Sale>,
    index: Option<Attached<Index<u32, Sale, TownAndAmount>>>,
}

/// Version 1 of the index, without the amount.
fn by_town(_: &u32, sale: &Sale) -> IndexEntries<TownAndAmount> {
    entry((&sale.town, 0_i64))
}

fn by_town_and_amount(_: &u32, sale: &Sale) -> IndexEntries<TownAndAmount> {
    entry((&sale.town, sale.cents))
}

impl<'s, S: Store> Program<'s, S> {
    fn open(store: &'s S, declares: Declares) -> Result<Self> {
        let schema = Schema::open(store, "shop")?;
        if declares == Declares::OtherCodec {
            schema.table_with::<u32, Sale, Json>("sales", 2)?;
            let schema = Schema::open(store, "shop")?;
            return Ok(Self { store, sales: schema.table("sales")?, index: None });
        }
        let sales = schema.table("sales")?;
        let index = match declares {
            Declares::ByTown => Some(schema.index(&sales, "by_town", 1, by_town)?),
            Declares::ByTownAndAmount => {
                Some(schema.index(&sales, "by_town", 2, by_town_and_amount)?)
            }
            _ => None,
        };
        Ok(Self { store, sales, index })
    }

    /// Executes a step. Compares reads with a filter over all records.
    fn does(&self, what: Does, id: u32) -> Result<()> {
        let Self { store, sales, index } = self;
        match (what, index) {
            (Does::Writes, _) => store.transact(|txn| {
                sales.put(txn, &id, &sale(id + 1))?;
                sales.delete(txn, &(id + 1)).map(drop)
            }),
            (Does::Builds, Some(index)) => index.build(*store).map(drop),
            (Does::Drops, Some(index)) => index.drop_data(*store).map(drop),
            (Does::Reads, Some(index)) => {
                let snapshot = store.snapshot()?;
                let records = sales.range(&snapshot, ..)?;
                let records = records.collect::<Result<Vec<_>>>()?;
                let wanted = records.into_iter().filter(|(_, sale)| sale.town == "Bern");
                let found = index.query().prefix("Bern").records(&snapshot)?;
                let mut found = found.items;
                found.sort_by_key(|(id, _)| *id);
                assert_eq!(found, wanted.collect::<Vec<_>>());
                assert_eq!(index.check(&snapshot)?, []);
                Ok(())
            }
            (_, None) => Ok(()),
        }
    }
}

pub fn two_programs_are_refused_or_right(store: &(impl Store + Clone)) {
    let (mut refused, mut right) = (0, 0);
    for (one, other) in PROGRAMS.iter().flat_map(|one| PROGRAMS.map(|other| (*one, other))) {
        for deeds in DEEDS.iter().flat_map(|a| DEEDS.map(|b| [*a, b])) {
            clear(store);
            let Ok(first) = Program::open(store, one) else { continue };
            store
                .transact(|txn| first.sales.put_many(txn, (0..20).map(|id| (id, sale(id)))))
                .unwrap();
            let second = Program::open(store, other);
            let programs = [Ok(first), second];
            let mut outcomes = Vec::new();
            for (n, what) in (0..).zip(deeds.into_iter().chain([Does::Reads])) {
                for program in &programs {
                    outcomes.push(match program {
                        Ok(program) => program.does(what, 3 * n),
                        Err(error) => Err(error.clone()),
                    });
                }
            }
            for outcome in outcomes {
                match outcome {
                    Ok(()) => right += 1,
                    Err(error) => {
                        let said = error.downcast_ref::<SchemaError>();
                        assert!(said.is_some(), "{one:?} and {other:?} {deeds:?}: {error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 100 && right > 100, "{refused} refused, {right} right");
}
