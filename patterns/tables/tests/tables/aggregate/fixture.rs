//! A table of clicks with all kinds of aggregates.

use std::collections::BTreeMap;

use keyloom::key::Subspace;
use keyloom::{Desc, DynWriter, Result, Store, Writer};
use keyloom_tables::aggregate::{
    Contributions, Event, RankedIndex, RollUp, Seen, Sketches, Totals,
};
use keyloom_tables::{Table, entry};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use keyloom_testing::ids::number;
use keyloom_testing::laws::dump;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Click {
    pub site: String,
    pub user: u16,
    pub second: i64,
    pub bytes: i64,
}

pub const WIDTHS: [i64; 3] = [60, 3_600, 86_400];

#[derive(Clone)]
pub struct Clicks {
    pub table: Table<u32, Click>,
    /// Per site: the number of clicks and of bytes.
    pub totals: Totals<u32, Click, (String, String)>,
    /// Bytes of clicks per site, largest first.
    pub ranked: RankedIndex<u32, Click, (String, Desc<i64>)>,
    /// Bytes per site and time.
    pub roll_up: RollUp<u32, Click, String>,
    /// Users per site.
    pub users: Sketches<u32, Click, String, u16>,
    pub space: Subspace,
}

impl Clicks {
    pub fn new() -> Self {
        let space = Subspace::new("test");
        let totals = Totals::new(&space.child("totals"), |_, c: &Click| {
            Contributions::from_iter([((&c.site, "bytes"), c.bytes), ((&c.site, "clicks"), 1)])
        });
        let ranked = RankedIndex::new(&space.child("ranked"), |_, c: &Click| {
            entry((&c.site, Desc(c.bytes)))
        });
        let roll_up = RollUp::new(&space.child("roll_up"), &WIDTHS, |_, c: &Click| {
            (c.bytes != 0).then(|| Event::new(&c.site, c.second, c.bytes))
        });
        let users =
            Sketches::new(&space.child("users"), 11, |_, c: &Click| Seen::one(&c.site, c.user));
        let (roll_up, users) = (roll_up.unwrap(), users.unwrap());
        let table = Table::new(&space.child("clicks"));
        let table = table.with(&totals).with(&ranked).with(&roll_up).with(&users);
        Self { table, totals, ranked, roll_up, users, space }
    }

    /// The same records without derived data.
    pub fn bare(&self) -> Table<u32, Click> {
        Table::new(self.table.space())
    }

    /// The derived entries, except sketches, which keep deleted values, and totals of 0.
    pub fn derived(&self, store: &impl Store) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let snapshot = store.snapshot().unwrap();
        let mut all = dump(&snapshot, self.space.range());
        let totals = [self.totals.space(), self.roll_up.buckets().space()];
        all.retain(|key, value| {
            let is_zero = value[..] == [0; 8] && totals.iter().any(|space| space.contains(key));
            !is_zero && !self.users.space().contains(key)
        });
        all
    }
}

pub fn click() -> impl Strategy<Value = Click> {
    let site = prop::sample::select(vec!["", "a", "a\0", "\0", "b.org"]);
    let second = prop_oneof![-200_000..200_000i64, 0..120i64];
    let user = (0..6u64).prop_map(|n| number(n) as u16);
    (site, user, second, -3..9i64).prop_map(|(site, user, second, bytes)| Click {
        site: site.into(),
        user,
        second,
        bytes,
    })
}

/// A put, or a delete.
pub type Step = (u32, Option<Click>);

/// Transactions of puts and deletes.
pub fn history() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let id = (0..12u64).prop_map(|n| number(n) as u32);
    let step = (id, prop::option::weighted(0.7, click()));
    prop::collection::vec(prop::collection::vec(step, 1..6), 1..16)
}

pub fn perform(clicks: &Clicks, txn: &mut impl Writer, (id, click): &Step) -> Result<()> {
    match click {
        Some(click) => clicks.table.put(txn, id, click),
        None => clicks.table.delete(txn, id).map(drop),
    }
}

pub fn apply(clicks: &Clicks, store: &impl Store, history: &[Vec<Step>]) -> BTreeMap<u32, Click> {
    let mut oracle = BTreeMap::new();
    for steps in history {
        let run =
            |txn: &mut DynWriter<'_>| steps.iter().try_for_each(|step| perform(clicks, txn, step));
        store.transact(|txn| run(&mut DynWriter::new(txn))).unwrap();
        for (id, click) in steps.iter().cloned() {
            match click {
                Some(click) => oracle.insert(id, click),
                None => oracle.remove(&id),
            };
        }
    }
    oracle
}

pub fn sample(id: u32) -> Click {
    let spread = id.wrapping_mul(0x9E37_79B9) >> 8;
    Click {
        site: format!("site {}", spread % 3),
        user: (spread % 50) as u16,
        second: i64::from(spread % 200_000),
        bytes: i64::from(spread % 1_000),
    }
}
