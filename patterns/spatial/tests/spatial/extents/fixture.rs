//! A table of things with an extent, and the expected results of queries.

use std::collections::BTreeMap;
use std::ops::Deref;

use keyloom::{Result, Store, Subspace};
use keyloom_spatial::{BoundingBox, ExtentIndex, LatLng};
use keyloom_spatial::{ExtentQuery, Located};
use keyloom_tables::{BatchSize, Index, IndexEntries, Table, entry};

use super::boxes::{Edges, POLE, TURN, degrees};
use keyloom_testing::ids::number;
use keyloom_testing::laws::clear;

/// South, west, north, east, in degrees.
pub type Degrees = [f64; 4];

#[derive(Clone)]
pub struct Things {
    pub table: Table<u16, Option<Degrees>>,
    pub index: ExtentIndex<u16, Option<Degrees>>,
    pub space: Subspace,
}

impl Things {
    pub fn new() -> Self {
        let space = Subspace::new("test");
        let index = ExtentIndex::new(&space.child("by_extent"), |_, edges: &Option<Degrees>| {
            let bounds = |[south, west, north, east]: Degrees| {
                BoundingBox::wrapping(south, west, north, east)
            };
            edges.map(bounds).transpose()
        });
        let table = Table::new(&space.child("things")).with(&index);
        Self { table, index, space }
    }

    /// Things whose entries have wrong codes, from this mutation.
    pub fn mutant(mutation: Mutation, all: &BTreeMap<u16, Edges>) -> Self {
        let all = all.clone();
        let things = Self::new();
        let mutant = Index::new(&things.space.child("by_extent"), move |id: &u16, _: &_| {
            let Some(edges) = all.get(id) else { return IndexEntries::none() };
            let bounds = edges.bounding_box();
            let covered = (bounds.south(), bounds.west(), bounds.north(), bounds.east());
            entry(code(edges, mutation)).covering(covered)
        });
        let table = Table::new(&things.space.child("things")).with(&mutant);
        Self { table, ..things }
    }

    /// Replaces all things.
    pub fn put<'e>(
        &self,
        store: &impl Store,
        all: impl IntoIterator<Item = &'e Edges>,
    ) -> BTreeMap<u16, Edges> {
        let ids = (0..).map(|n| number(n) as u16);
        let all: BTreeMap<u16, Edges> = ids.zip(all.into_iter().copied()).collect();
        clear(store);
        let records = all.iter().map(|(id, edges)| (*id, Some(edges.degrees())));
        let records: Vec<_> = records.collect();
        BatchSize::new(1_000)
            .transact_all(store, &records, |txn, some| self.table.put_many(txn, some))
            .unwrap();
        all
    }
}

pub fn ids<B: Deref<Target = [u8]>>(
    extents: impl Iterator<Item = Result<Located<B, u16, BoundingBox>>>,
) -> Vec<u16> {
    let mut ids: Vec<u16> = extents.map(|extent| extent.unwrap().record_key().unwrap()).collect();
    ids.sort_unstable();
    ids
}

/// The four queries for a box; the last query uses its south-western corner.
pub fn queries<'q>(things: &Things, edges: &Edges) -> [(ExtentQuery<'q, u16>, Wanted); 4] {
    let area = edges.bounding_box();
    let [south, west, ..] = edges.0;
    let corner = LatLng::wrapping(degrees(south), degrees(west)).unwrap();
    let at_corner = Edges([south, west, south, west]);
    let edges = *edges;
    [
        (things.index.overlapping(area), Box::new(move |one: &Edges| one.overlaps(&edges))),
        (things.index.inside(area), Box::new(move |one: &Edges| one.is_inside(&edges))),
        (things.index.containing_box(area), Box::new(move |one: &Edges| edges.is_inside(one))),
        (things.index.containing(corner), Box::new(move |one: &Edges| one.overlaps(&at_corner))),
    ]
}

pub type Wanted = Box<dyn Fn(&Edges) -> bool>;

pub fn expected(all: &BTreeMap<u16, Edges>, wanted: &Wanted) -> Vec<u16> {
    all.iter().filter(|(_, edges)| wanted(edges)).map(|(id, _)| *id).collect()
}

const LEVELS: u32 = 27;

/// The number of cells in the subtree of a cell of this level, including the cell.
fn elements(level: u32) -> u64 {
    (level..=LEVELS).map(|below| 4_u64.pow(below - level)).sum()
}

/// A bug in the computation of a code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mutation {
    None,
    /// A cell may hold extents of twice the allowed size.
    TooDeep,
    /// Extents across the antimeridian are treated as having no width.
    NoTurn,
    /// The code is that of the south-western corner.
    CornerOnly,
}

/// The code of an extent: divides the map into quarters as long as the extent fits.
pub fn code(edges: &Edges, mutation: Mutation) -> u64 {
    let [south, west, north, _] = edges.0;
    let mut west = (west + TURN / 2).rem_euclid(TURN);
    if edges.width() == TURN {
        west = 0;
    }
    let width = match mutation {
        Mutation::CornerOnly => 0,
        Mutation::NoTurn if west + edges.width() >= TURN => 0,
        // The last meridian is the same as the first.
        _ => edges.width().min(TURN - 1),
    };
    let (south, north) = ((south + POLE).min(2 * POLE - 1), (north + POLE).min(2 * POLE - 1));
    let height = if mutation == Mutation::CornerOnly { 0 } else { north - south };
    let times = if mutation == Mutation::TooDeep { 4 } else { 2 };
    let (mut x, mut y, mut size_x, mut size_y) = (0, 0, TURN, 2 * POLE);
    let mut code = 0;
    for level in 1..=LEVELS {
        (size_x, size_y) = (size_x / 2, size_y / 2);
        let (east, north) = (west >= x + size_x, south >= y + size_y);
        x += if east { size_x } else { 0 };
        y += if north { size_y } else { 0 };
        if west - x + width >= times * size_x || south - y + height >= times * size_y {
            break;
        }
        code += 1 + (2 * u64::from(east) + u64::from(north)) * elements(level);
    }
    code
}
