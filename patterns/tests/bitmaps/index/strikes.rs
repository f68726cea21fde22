//! Ten thousand wildlife strikes of aircraft.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::LazyLock;

use keyloom::key::Subspace;
use keyloom::{Result, Store};
use keyloom_bitmaps::{InvertedIndex, one};
use keyloom_tables::{Maintained, Table, starting_with, within};
use serde::{Deserialize, Serialize};

use keyloom_testing::TemporaryLmdb;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Strike {
    airport: String,
    date: String,
    airline: String,
    state: String,
    phase: String,
    species: String,
    cost: i64,
    speed: Option<i64>,
}

static STRIKES: LazyLock<Vec<Strike>> = LazyLock::new(|| {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/data/birdstrikes.csv.gz");
    let mut text = String::new();
    let file = std::fs::File::open(file).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let mut rows = csv::Reader::from_reader(text.as_bytes());
    let strike = |row: csv::Result<csv::StringRecord>| {
        let row = row.unwrap();
        Strike {
            airport: row[0].into(),
            date: row[3].into(),
            airline: row[4].into(),
            state: row[5].into(),
            phase: row[6].into(),
            species: row[8].into(),
            cost: row[12].parse().unwrap(),
            speed: row[13].parse().ok(),
        }
    };
    rows.records().map(strike).collect()
});

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[test]
fn strikes_are_found_and_counted() {
    let store = TemporaryLmdb::new();
    let index = InvertedIndex::with_keys_as_ids(&Subspace::new("index"))
        .field("state", |_: &u32, s: &Strike| one(some(&s.state)))
        .field("airline", |_, s| one(some(&s.airline)))
        .field("date", |_, s| one(&s.date))
        .field("phase", |_, s| one(some(&s.phase)))
        .field("species", |_, s| s.species.split_whitespace().collect())
        .integers("cost", |_, s| Some(s.cost))
        .integers("speed", |_, s| s.speed);
    let table = Table::<u32, Strike>::new(&Subspace::new("strikes")).with(&index);
    let all: Vec<(u32, Strike)> = (0..).zip(STRIKES.iter().cloned()).collect();
    assert_eq!(all.len(), 10_000);
    store.transact(|txn| table.put_many(txn, &all)).unwrap();

    let snapshot = store.snapshot().unwrap();
    let whose = |is_so: &dyn Fn(&Strike) -> bool| -> BTreeSet<u64> {
        all.iter().filter(|(_, s)| is_so(s)).map(|(id, _)| u64::from(*id)).collect()
    };
    let found = |expr: &keyloom_bitmaps::BitmapExpr| {
        let ids = expr.ids(&snapshot, ..).unwrap();
        ids.collect::<Result<BTreeSet<u64>>>().unwrap()
    };
    // In California, during an approach, not in 1999, and expensive.
    let approach =
        index.term("state", "California").unwrap() & index.term("phase", "Approach").unwrap();
    let of_1999 = index.any_term(&snapshot, "date", starting_with("1999")).unwrap();
    let dear = index.integers_of("cost").unwrap().ge(1_000);
    let wanted = whose(&|s| {
        s.state == "California"
            && s.phase == "Approach"
            && !s.date.starts_with("1999")
            && s.cost >= 1_000
    });
    assert!(wanted.len() > 3, "{}", wanted.len());
    assert_eq!(found(&(&approach & (&dear - &of_1999))), wanted);
    let slow = index.integers_of("speed").unwrap();
    let filter = index.term("airline", "MILITARY").unwrap();
    let of_filter = || all.iter().filter(|(_, s)| s.airline == "MILITARY").map(|(_, s)| s);
    assert_eq!(
        slow.sum(&snapshot, Some(&filter)).unwrap(),
        of_filter().filter_map(|s| s.speed).map(i128::from).sum()
    );
    assert_eq!(found(&index.absent("speed").unwrap()), whose(&|s| s.speed.is_none()));
    assert_eq!(found(&index.absent("phase").unwrap()), whose(&|s| s.phase.is_empty()));
    let gulls = index.term("species", "gull").unwrap() | index.term("species", "Gull").unwrap();
    let is_gull =
        |s: &Strike| s.species.split_whitespace().any(|word| ["gull", "Gull"].contains(&word));
    assert_eq!(found(&gulls), whose(&is_gull));
    let early = index.any_term(&snapshot, "date", within(.."1990-02")).unwrap();
    assert_eq!(found(&early), whose(&|s| s.date.as_str() < "1990-02"));
    // The number of strikes per state.
    let mut states = BTreeMap::<String, u64>::new();
    for (_, strike) in all.iter().filter(|(_, s)| !s.state.is_empty()) {
        *states.entry(strike.state.clone()).or_default() += 1;
    }
    let counts = index.value_counts::<_, String, _>(&snapshot, "state", ..).unwrap();
    assert_eq!(counts.collect::<Result<BTreeMap<_, _>>>().unwrap(), states);
    assert_eq!(index.check(&snapshot, &table).unwrap(), []);
}
