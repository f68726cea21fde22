//! Random damage to a random tree: check names it, repair converges, and what is intact is there.

use std::collections::BTreeMap;
use std::ops::ControlFlow::Continue;

use fastrand::Rng;
use keyloom::key::Subspace;
use keyloom::{Error, KeyRange, Reader, Result, Store, Writer};
use keyloom_patterns::hierarchy::{Nested, NodeId, Place, Tree, TreeInconsistency, TreeRule};

use crate::common_laws::{Dump, clear, dump_all};
use crate::oracle::Rules;

/// How many trees are damaged on each store: some, or what the environment asks for.
fn trees() -> u64 {
    std::env::var("KEYLOOM_TREE_DAMAGES").map_or(60, |asked| asked.parse().unwrap())
}

const NODES: u64 = 14;

/// A forest whose names are long, so that damage makes no name that a sibling has.
fn forest(rng: &mut Rng) -> Vec<Nested<u32>> {
    let mut roots: Vec<Nested<u32>> = Vec::new();
    for id in 1..=NODES {
        let letters: String = (0..8).map(|_| rng.lowercase()).collect();
        let node = Nested::new(id, format!("{letters} {id:03}"), rng.u32(..));
        let mut siblings = &mut roots;
        while !siblings.is_empty() && rng.u8(..10) < 7 {
            let at = rng.usize(..siblings.len());
            siblings = &mut siblings[at].children;
        }
        siblings.push(node);
    }
    roots
}

/// Damages some entries: how many, and whether a byte that may be a format is another one now.
fn damage(rng: &mut Rng, entries: &Dump, txn: &mut impl Writer) -> (usize, bool) {
    let keys: Vec<&Vec<u8>> = entries.keys().collect();
    let count = rng.usize(1..=3);
    let mut is_format_changed = false;
    for _ in 0..count {
        let key = keys[rng.usize(..keys.len())];
        let mut value = entries[key].clone();
        match rng.u8(..8) {
            0 => return txn.delete(key).map(|()| (count, is_format_changed)).unwrap(),
            1 => value.truncate(rng.usize(..=value.len())),
            2 => value = (0..rng.usize(..40)).map(|_| rng.u8(..)).collect(),
            // What another entry holds.
            3 => value.clone_from(&entries[keys[rng.usize(..keys.len())]]),
            4 => value.extend((0..rng.usize(1..9)).map(|_| rng.u8(..))),
            _ if value.is_empty() => value.push(7),
            _ => {
                let at = rng.usize(..value.len());
                value[at] ^= rng.u8(1..);
            }
        }
        // All formats are 1 or 2, and a placeholder has 0.
        let mut pairs = entries[key].iter().zip(&value);
        is_format_changed |= pairs.any(|(before, now)| *before <= 2 && before != now);
        txn.put(key, &value).unwrap();
    }
    (count, is_format_changed)
}

fn faults(model: &impl Tree, store: &impl Store) -> Result<Vec<TreeInconsistency>> {
    let mut found = Vec::new();
    model.check(&store.snapshot()?, |fault| {
        found.push(fault);
        Continue(())
    })?;
    Ok(found)
}

/// Ids, names and values of all nodes. An error where one is not as it should be, the value excepted.
fn walk<T: Tree<Value = u32>>(
    model: &T,
    reader: &impl Reader,
) -> Result<BTreeMap<NodeId, (String, Option<u32>)>> {
    let mut nodes = BTreeMap::new();
    for (steps, visit) in model.descendants(reader, None, ..)?.enumerate() {
        assert!(steps < 1_000, "the walk does not end");
        let node = visit?.node;
        let before = nodes.insert(node.id(), (node.name()?.to_owned(), node.value().ok()));
        assert_eq!(before, None, "node {} comes twice", node.id());
    }
    Ok(nodes)
}

/// What a newer program has written is no damage: check and repair refuse to judge it.
fn is_newer(error: &Error) -> bool {
    match error {
        Error::At { source, .. } => is_newer(source),
        error => matches!(error, Error::NewerFormat { .. }),
    }
}

pub fn damage_is_named_and_repair_converges<T: Tree<Value = u32>>(
    store: &(impl Store + Clone),
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
) {
    let model = make(&Subspace::new("tree"));
    let (mut damaged, mut newer) = (0, 0);
    for seed in 0..trees() {
        let rng = &mut Rng::with_seed(seed);
        clear(store);
        let mut trees = forest(rng);
        if rules.ordered_by_name {
            sort(&mut trees);
        }
        store.transact(|txn| model.load(txn, None, &trees)).unwrap();
        let entries = dump_all(store);
        let whole = walk(&model, &store.snapshot().unwrap()).unwrap();
        let mut txn = store.begin().unwrap();
        let (count, is_format_changed) = damage(rng, &entries, &mut txn);
        keyloom::Transaction::commit(txn).unwrap();

        // A walk over a damaged tree ends, with an error or without.
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let snapshot = store.snapshot().unwrap();
            model.descendants(&snapshot, None, ..).map(|visits| visits.take(1_000).count())
        }));
        assert!(!matches!(seen, Ok(Ok(1_000))), "seed {seed}: the walk does not end");
        let found = match faults(&model, store) {
            Err(error) if is_newer(&error) => {
                assert!(is_format_changed, "seed {seed}: {error}");
                newer += 1;
                continue;
            }
            found => found.unwrap(),
        };
        if found.is_empty() {
            // What was damaged is another tree, as whole as the first.
            walk(&model, &store.snapshot().unwrap()).unwrap();
            continue;
        }
        damaged += 1;
        match model.repair(store) {
            // In an entry that the check need not read.
            Err(error) if is_newer(&error) => {
                assert!(is_format_changed, "seed {seed}: {error}");
                newer += 1;
                continue;
            }
            repaired => repaired.unwrap_or_else(|error| panic!("seed {seed}: {error}; {found:?}")),
        };
        let left = faults(&model, store).unwrap();
        assert!(
            left.iter().all(|fault| fault.rule == TreeRule::Value),
            "seed {seed}: {left:?} is left of {found:?}"
        );
        let again = dump_all(store);
        assert_eq!(model.repair(store).unwrap(), 0, "seed {seed}: {found:?}");
        assert_eq!(dump_all(store), again, "seed {seed}");

        let now = walk(&model, &store.snapshot().unwrap());
        let now = now.unwrap_or_else(|error| panic!("seed {seed}: {error}; {found:?}"));
        let lost = whole.iter().filter(|(id, node)| now.get(id) != Some(node)).count();
        assert!(
            lost <= count * rules.nodes_of_an_entry,
            "seed {seed}: {count} entries cost {lost} nodes: {found:?}\n{whole:?}\n{now:?}"
        );
        // The way out: what has no value gets one, and the tree takes changes again.
        store
            .transact(|txn| {
                for (id, _) in now.iter().filter(|(_, (_, value))| value.is_none()) {
                    model.set_value(txn, *id, &7)?;
                }
                model.insert(txn, 1_000, "new", &1, Place::sorted(None))?;
                model.move_to(txn, 1_000, Place::sorted(now.keys().next().copied()))
            })
            .unwrap_or_else(|error| panic!("seed {seed}: {error}; {found:?}"));
        assert_eq!(faults(&model, store).unwrap(), [], "seed {seed}");
        let snapshot = store.snapshot().unwrap();
        let nodes = model.dump(&snapshot, None).unwrap();
        let nodes = nodes.iter().flat_map(Nested::preorder).count();
        assert_eq!(nodes, now.len() + 1);
        for id in now.keys() {
            model.ancestors(&snapshot, *id).unwrap();
            assert!(model.get(&snapshot, *id).unwrap().is_some());
        }
    }
    println!("{damaged} trees damaged and repaired, {newer} of a newer format");
    assert!(damaged > trees() / 4, "{damaged}");
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
}

fn sort(trees: &mut [Nested<u32>]) {
    trees.sort_by(|one, other| one.name.cmp(&other.name));
    trees.iter_mut().for_each(|tree| sort(&mut tree.children));
}
