//! Queries of boxes, averaged over many places.

use fastrand::Rng;
use keyloom::{Memory, Metered, Store};
use keyloom_patterns::{BoundingBox, ExtentIndex, Schema};

use super::Table;
use super::choose_tree::thousands;

const BOXES: u32 = 100_000;
const QUERIES: u32 = 64;

type Edges = [f64; 4];

/// A box at a random place of the sphere. Without a given side, all orders of magnitude of its
/// height are equally frequent, from 10 m to 1,000 km.
fn random_box(random: &mut Rng, side: Option<f64>) -> Edges {
    let latitude = (2.0 * random.f64() - 1.0).asin().to_degrees();
    let west = random.f64() * 360.0 - 180.0;
    let height = side.unwrap_or_else(|| 10_f64.powf(random.f64() * 5.0 - 4.0));
    let width = side.unwrap_or_else(|| height * 10_f64.powf(random.f64() - 0.5));
    let south = (latitude - height / 2.0).max(-90.0);
    [south, west, (south + height).min(90.0), west + width]
}

fn bounding_box([south, west, north, east]: Edges) -> keyloom::Result<BoundingBox> {
    BoundingBox::wrapping(south, west, north, east)
}

#[test]
fn the_table_of_queries_of_boxes_states_its_costs() {
    let mut table = Table::of("spatial_boxes.md");
    let (store, mut random) = (Metered::new(Memory::new()), Rng::with_seed(7));
    let schema = Schema::open(&store, "boxes").unwrap();
    let boxes = schema.table::<u32, Edges>("boxes").unwrap();
    let extent = |_: &u32, edges: &Edges| bounding_box(*edges).map(Some);
    let by_extent =
        schema.derive(&boxes, "by_extent", 1, |space| Ok(ExtentIndex::new(space, extent))).unwrap();
    let all: Vec<_> = (0..BOXES).map(|id| (id, random_box(&mut random, None))).collect();
    store.transact(|txn| boxes.put_many(txn, &all)).unwrap();
    let snapshot = store.snapshot().unwrap();
    let by_extent = by_extent.at(&snapshot).unwrap();

    let queries = [("a position", 0.0), ("0.1°", 0.1), ("1°", 1.0), ("10°", 10.0), ("60°", 60.0)];
    for (row, side) in queries {
        let [mut found, mut ranges, mut keys] = [0; 3];
        for _ in 0..QUERIES {
            let area = bounding_box(random_box(&mut random, Some(side))).unwrap();
            let (hits, cost) = store.measure(|_| {
                by_extent.overlapping(area).extents(&snapshot).unwrap().map(Result::unwrap).count()
            });
            found += hits as u64;
            ranges += cost.ranges;
            keys += cost.keys_read;
        }
        let average = |sum: u64| match (sum + u64::from(QUERIES) / 2) / u64::from(QUERIES) {
            0..100 => format!("{:.1}", sum as f64 / f64::from(QUERIES)),
            many => thousands(many),
        };
        let per_hit = format!("{:.1}", keys as f64 / found as f64);
        let cells = [average(found), average(ranges), average(keys), per_hit];
        table.compare_cells(row, &cells);
    }
    table.end(&[]);
}
