//! Random trees of random sets, compared with the same operations of the crate `roaring`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use keyloom::{Order, Reader, Result, Store, Subspace};
use keyloom_bitmaps::{BitSliced, Bitmap, BitmapExpr, CHUNK_IDS};
use keyloom_tables::{Continuation, in_order};
use proptest::collection::vec;
use proptest::prelude::*;
use roaring::{RoaringBitmap, RoaringTreemap};

use crate::bitmaps::sets::{Set, ids, put, set};
use keyloom_testing::laws::{clear, very_long_property};

#[derive(Clone, Debug)]
pub enum Tree {
    Stored(usize),
    Held(Set),
    Range(RangeInclusive<u64>),
    Compared(RangeInclusive<i64>),
    Not(Box<Tree>, RangeInclusive<u64>),
    All(Vec<Tree>),
    Any(Vec<Tree>),
    And(Box<[Tree; 2]>),
    Or(Box<[Tree; 2]>),
    Minus(Box<[Tree; 2]>),
    Xor(Box<[Tree; 2]>),
}

/// The sets and ranges of the trees.
#[derive(Clone, Debug)]
pub struct World {
    pub sets: Vec<Set>,
    pub values: BTreeMap<u64, i64>,
}

pub fn world() -> impl Strategy<Value = World> {
    let values = (ids(), vec(-9..9_i64, 64)).prop_map(|(ids, values)| {
        ids.into_iter().zip(values.into_iter().cycle()).collect::<BTreeMap<_, _>>()
    });
    (vec(set(), 3), values).prop_map(|(sets, values)| World { sets, values })
}

/// Ranges of few chunks, whose complements fit in `roaring`.
fn range() -> impl Strategy<Value = RangeInclusive<u64>> {
    let near =
        prop::sample::select(vec![0, CHUNK_IDS - 1, CHUNK_IDS, 2 * CHUNK_IDS, 7 * CHUNK_IDS]);
    let near = (near, 0..9_u64, 0..2 * CHUNK_IDS).prop_map(|(at, by, ids)| at + by..=at + by + ids);
    let last = (0..2 * CHUNK_IDS).prop_map(|before| u64::MAX - before..=u64::MAX);
    prop_oneof![4 => near, 1 => last]
}

pub fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        4 => (0..3_usize).prop_map(Tree::Stored),
        1 => set().prop_map(Tree::Held),
        1 => range().prop_map(Tree::Range),
        1 => (-9..9_i64, 0..9_i64).prop_map(|(low, more)| Tree::Compared(low..=low + more)),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        let two = || [inner.clone(), inner.clone()].prop_map(Box::new);
        prop_oneof![
            2 => two().prop_map(Tree::And),
            2 => two().prop_map(Tree::Or),
            2 => two().prop_map(Tree::Minus),
            2 => two().prop_map(Tree::Xor),
            1 => (inner.clone().prop_map(Box::new), range()).prop_map(|(t, r)| Tree::Not(t, r)),
            1 => vec(inner.clone(), 1..4).prop_map(Tree::All),
            1 => vec(inner.clone(), 0..4).prop_map(Tree::Any),
        ]
    })
}

pub fn bitmap(n: usize) -> Bitmap {
    Bitmap::new(&Subspace::new(&("bitmap", n)))
}

fn integers() -> BitSliced {
    BitSliced::new(&Subspace::new("integers"))
}

impl World {
    pub fn store(&self, store: &impl Store) {
        clear(store);
        self.sets.iter().enumerate().for_each(|(n, set)| put(store, &bitmap(n), set));
        let values = self.values.iter().map(|(id, value)| (*id, *value));
        store.transact(|txn| integers().set_many(txn, values.clone())).unwrap();
    }

    pub fn expected(&self, tree: &Tree) -> RoaringTreemap {
        let of = |trees: &[Tree]| trees.iter().map(|tree| self.expected(tree)).collect::<Vec<_>>();
        match tree {
            Tree::Stored(n) => self.sets[*n].iter().collect(),
            Tree::Held(set) => set.iter().collect(),
            Tree::Range(ids) => filled(ids),
            Tree::Compared(range) => {
                let taken = self.values.iter().filter(|(_, value)| range.contains(value));
                taken.map(|(id, _)| *id).collect()
            }
            Tree::Not(tree, ids) => filled(ids) - self.expected(tree),
            Tree::All(trees) => of(trees).into_iter().reduce(|a, b| a & b).unwrap(),
            Tree::Any(trees) => of(trees).into_iter().fold(RoaringTreemap::new(), |a, b| a | b),
            Tree::And(two) => self.expected(&two[0]) & self.expected(&two[1]),
            Tree::Or(two) => self.expected(&two[0]) | self.expected(&two[1]),
            Tree::Minus(two) => self.expected(&two[0]) - self.expected(&two[1]),
            Tree::Xor(two) => self.expected(&two[0]) ^ self.expected(&two[1]),
        }
    }
}

fn filled(ids: &RangeInclusive<u64>) -> RoaringTreemap {
    let mut filled = RoaringTreemap::new();
    filled.insert_range(ids.clone());
    filled
}

pub fn expr(tree: &Tree) -> BitmapExpr {
    match tree {
        Tree::Stored(n) => bitmap(*n).into(),
        Tree::Held(set) => match set.iter().map(|id| u32::try_from(*id)).collect() {
            Ok(small) => BitmapExpr::from(RoaringBitmap::from_iter::<Vec<u32>>(small)),
            Err(_) => BitmapExpr::from(set.iter().collect::<RoaringTreemap>()),
        },
        Tree::Range(ids) => BitmapExpr::range(ids.clone()),
        Tree::Compared(values) => integers().between(values.clone()),
        Tree::Not(tree, ids) => expr(tree).complement(ids.clone()),
        Tree::All(trees) => BitmapExpr::all_of(trees.iter().map(expr)),
        Tree::Any(trees) => BitmapExpr::any_of(trees.iter().map(expr)),
        Tree::And(two) => expr(&two[0]) & expr(&two[1]),
        Tree::Or(two) => expr(&two[0]) | &expr(&two[1]),
        Tree::Minus(two) => &expr(&two[0]) - expr(&two[1]),
        Tree::Xor(two) => &expr(&two[0]) ^ &expr(&two[1]),
    }
}

pub fn any_tree_is_what_roaring_makes_of_it(store: &impl Store) {
    very_long_property((world(), tree()), |(world, tree)| {
        world.store(store);
        let snapshot = store.snapshot().unwrap();
        let (expr, expected) = (expr(&tree), world.expected(&tree));
        assert_eq!(expr.count(&snapshot).unwrap(), expected.len());
        assert_eq!(expr.to_treemap(&snapshot).unwrap(), expected);
        assert_eq!(expr.first(&snapshot).unwrap(), expected.min());
        assert_eq!(expr.last(&snapshot).unwrap(), expected.max());
        let ids =
            |order| expr.ids(&snapshot, in_order(.., order)).unwrap().collect::<Result<Vec<u64>>>();
        assert!(ids(Order::Ascending).unwrap().into_iter().eq(&expected));
        assert!(ids(Order::Descending).unwrap().into_iter().eq(expected.iter().rev()));
        let held = expr.hold(&snapshot).unwrap();
        assert_eq!(held.count(&snapshot).unwrap(), expected.len());
        assert_eq!((held ^ &expr).count(&snapshot).unwrap(), 0);
        let roaring = expr.to_roaring(&snapshot);
        match expected.max().is_none_or(|max| u32::try_from(max).is_ok()) {
            true => assert!(roaring.unwrap().iter().map(u64::from).eq(&expected)),
            false => assert!(roaring.unwrap_err().to_string().contains("take a RoaringTreemap")),
        }
    });
}

pub fn any_tree_is_read_in_part(store: &impl Store) {
    very_long_property(
        (world(), tree(), vec(set(), 1..3), 1..40_usize),
        |(world, tree, near, limit)| {
            world.store(store);
            let snapshot = store.snapshot().unwrap();
            let (expr, expected) = (expr(&tree), world.expected(&tree));
            let of_sets = near.concat_some().chain(world.sets.concat_some());
            for id in of_sets {
                assert_eq!(expr.contains(&snapshot, id).unwrap(), expected.contains(id), "{id}");
                let below = expected.rank(id) - u64::from(expected.contains(id));
                assert_eq!(expr.rank(&snapshot, id).unwrap(), below, "{id}");
                let range = id.saturating_sub(CHUNK_IDS + 5)..=id.saturating_add(7);
                let there = &expected & filled(&range);
                for order in [Order::Ascending, Order::Descending] {
                    let ids = expr.ids(&snapshot, in_order(range.clone(), order)).unwrap();
                    let ids = ids.collect::<Result<BTreeSet<u64>>>().unwrap();
                    assert!(ids.into_iter().eq(&there));
                }
            }
            for n in
                [0, 1, 40, expected.len() / 2, expected.len().saturating_sub(1), expected.len()]
            {
                assert_eq!(expr.select(&snapshot, n).unwrap(), expected.select(n));
            }
            for order in [Order::Ascending, Order::Descending] {
                let limit = limit.max(expected.len() as usize / 5);
                let mut joined = pages(&snapshot, &expr, order, limit);
                if order == Order::Descending {
                    joined.reverse();
                }
                assert!(joined.into_iter().eq(&expected));
            }
        },
    );
}

/// Concatenates some ids of many sets.
trait ConcatSome {
    fn concat_some(&self) -> impl Iterator<Item = u64>;
}

impl ConcatSome for Vec<Set> {
    fn concat_some(&self) -> impl Iterator<Item = u64> {
        self.iter().flat_map(|set| set.iter().step_by(set.len() / 4 + 1).chain(set.last()).copied())
    }
}

/// Reads all ids page by page, through continuations that are converted to bytes.
pub fn pages(reader: &impl Reader, expr: &BitmapExpr, order: Order, limit: usize) -> Vec<u64> {
    let (mut ids, mut next): (Vec<u64>, Option<Continuation>) = (Vec::new(), None);
    loop {
        let page = expr.page(reader, in_order(.., order), limit, next.as_ref()).unwrap();
        ids.extend(&page.items);
        assert!(page.items.len() <= limit && (page.next.is_none() || page.items.len() == limit));
        match page.next {
            Some(stored) => next = Some(Continuation::from_bytes(stored.as_bytes())),
            None => return ids,
        }
    }
}
