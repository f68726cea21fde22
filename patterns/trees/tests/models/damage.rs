//! Random damage to a random tree: the check reports it, the repair converges, and undamaged nodes
//! are kept.

use std::collections::BTreeMap;
use std::ops::ControlFlow::Continue;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fastrand::Rng;
use keyloom::key::Subspace;
use keyloom::{Error, KeyRange, Memory, Reader, Result, Store, Writer};
use keyloom_trees::{AdjacencyList, InsertAt, NestedNode, NodeId, Tree, TreeDocument};

use crate::oracle::{Cost, Rules};
use keyloom_tables::{Inconsistency, Rule};
use keyloom_testing::laws::{Dump, clear, dump_all};

/// Seeds of trees whose damage was once repaired wrongly.
const REGRESSIONS: [u64; 6] = [960, 1_083, 1_131, 1_151, 1_191, 1_218];

/// The seeds of the trees that are damaged on each store.
fn seeds() -> impl Iterator<Item = u64> {
    let first =
        std::env::var("KEYLOOM_TREE_DAMAGES").map_or(60, |trees| trees.parse::<u64>().unwrap());
    let regressions = REGRESSIONS.into_iter().filter(move |seed| *seed >= first);
    (0..first).chain(regressions).chain(BITS..BITS + first)
}

/// The first of the seeds for which single bits are damaged.
const BITS: u64 = 1 << 32;

const NODES: u64 = 14;

/// Ids, names and values; the value is `None` if it cannot be read.
type Nodes = BTreeMap<NodeId, (String, Option<u32>)>;

/// A forest with long names, so that a damaged name is never equal to that of a sibling.
fn forest(rng: &mut Rng) -> Vec<NestedNode<u32>> {
    let mut roots: Vec<NestedNode<u32>> = Vec::new();
    for id in 1..=NODES {
        let letters: String = (0..8).map(|_| rng.lowercase()).collect();
        let node = NestedNode::new(id, format!("{letters} {id:03}"), rng.u32(..));
        let mut siblings = &mut roots;
        while !siblings.is_empty() && rng.u8(..10) < 7 {
            let at = rng.usize(..siblings.len());
            siblings = &mut siblings[at].children;
        }
        siblings.push(node);
    }
    roots
}

/// Changes one to four single bits. Ids and labels that differ in one bit are common, so this gives
/// a node the id of another one, or the place of another one, more often than `damage` does.
fn flip_bits(rng: &mut Rng, entries: &Dump, txn: &mut impl Writer) -> Result<()> {
    let mut entries: Vec<(Vec<u8>, Vec<u8>)> = entries.clone().into_iter().collect();
    for _ in 0..rng.usize(1..=4) {
        let at = rng.usize(..entries.len());
        let (key, value) = &mut entries[at];
        if !value.is_empty() {
            let byte = rng.usize(..value.len());
            value[byte] ^= 1 << rng.u8(..8);
            txn.put(key, value)?;
        }
    }
    Ok(())
}

/// Damages one to three entries.
fn damage(rng: &mut Rng, entries: &Dump, txn: &mut impl Writer) -> Result<()> {
    let keys: Vec<&Vec<u8>> = entries.keys().collect();
    for _ in 0..rng.usize(1..=3) {
        let key = keys[rng.usize(..keys.len())];
        let mut value = entries[key].clone();
        match rng.u8(..8) {
            0 => return txn.delete(key),
            1 => value.truncate(rng.usize(..=value.len())),
            2 => value = (0..rng.usize(..40)).map(|_| rng.u8(..)).collect(),
            // Replaces the value by that of another entry.
            3 => value.clone_from(&entries[keys[rng.usize(..keys.len())]]),
            4 => value.extend((0..rng.usize(1..9)).map(|_| rng.u8(..))),
            _ if value.is_empty() => value.push(7),
            _ => {
                let at = rng.usize(..value.len());
                value[at] ^= rng.u8(1..);
            }
        }
        txn.put(key, &value)?;
    }
    Ok(())
}

/// The number of nodes that the damage may destroy.
fn cost(rules: Rules, whole: &Nodes, before: &Dump, after: &Dump) -> usize {
    let damaged = before.iter().filter(|(key, value)| after.get(*key) != Some(*value));
    let of_an_entry = |(key, value): (&Vec<u8>, &Vec<u8>)| match rules.cost {
        Cost::Nodes(nodes) => nodes,
        Cost::DamagedAnd(more) => {
            let now = after.get(key).map(Vec::as_slice).unwrap_or_default();
            damaged_nodes(whole, value, now) + more
        }
    };
    damaged.map(of_an_entry).sum()
}

/// The number of nodes with at least one byte between the first and the last difference.
fn damaged_nodes(whole: &Nodes, before: &[u8], after: &[u8]) -> usize {
    /// The number of bytes of a row before the name.
    const HEADER: usize = 5;
    let start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let tails = before[start..].iter().rev().zip(after[start..].iter().rev());
    let end = before.len() - tails.take_while(|(one, other)| one == other).count();
    let starts = |(name, _): &(String, Option<u32>)| {
        before.windows(name.len()).position(|bytes| bytes == name.as_bytes()).map(|at| at - HEADER)
    };
    let mut rows: Vec<usize> = whole.values().filter_map(starts).collect();
    rows.sort_unstable();
    rows.push(before.len());
    rows.windows(2).filter(|row| row[0] < end && start < row[1]).count()
}

pub fn faults(model: &impl Tree, store: &impl Store) -> Result<Vec<Inconsistency>> {
    let mut found = Vec::new();
    model.check_each(&store.snapshot()?, |fault| {
        found.push(fault);
        Continue(())
    })?;
    Ok(found)
}

/// All nodes, or an error if a node is invalid. Values may be invalid.
fn walk<T: Tree<Value = u32>>(model: &T, reader: &impl Reader) -> Result<Nodes> {
    let mut nodes = BTreeMap::new();
    for (steps, visit) in model.descendants(reader, None, ..)?.enumerate() {
        assert!(steps < 1_000, "the walk does not end");
        let node = visit?.node;
        let before = nodes.insert(node.id(), (node.name()?.to_owned(), node.value().ok()));
        assert_eq!(before, None, "node {} comes twice", node.id());
    }
    Ok(nodes)
}

/// All nodes. Every way to read the tree must find the same ones.
fn read_all<T: Tree<Value = u32>>(model: &T, store: &impl Store) -> Result<Nodes, String> {
    let snapshot = store.snapshot().unwrap();
    let nodes = catch_unwind(AssertUnwindSafe(|| walk(model, &snapshot)));
    let nodes = nodes.map_err(|_| "the walk does not end")?.map_err(|error| error.to_string())?;
    let reads = |id: NodeId, (name, _): &(String, Option<u32>)| -> Result<bool> {
        let parent = model.parent(&snapshot, id)?;
        let above: Vec<NodeId> =
            model.ancestors(&snapshot, id)?.iter().map(|node| node.id()).collect();
        let siblings: Vec<NodeId> = model
            .children(&snapshot, parent)?
            .map(|child| Ok(child?.id()))
            .collect::<Result<_>>()?;
        let node = model.get(&snapshot, id)?;
        Ok(node.is_some_and(|node| node.name().is_ok_and(|own| own == name))
            && above.first().copied() == parent
            && siblings.contains(&id)
            && model.child_count(&snapshot, parent)? == siblings.len() as u64
            && model.child_named(&snapshot, parent, name)?.is_some())
    };
    for (id, node) in &nodes {
        match reads(*id, node) {
            Ok(true) => {}
            Ok(false) => return Err(format!("reads of node {id} do not agree")),
            Err(error) => return Err(format!("node {id}: {error}")),
        }
    }
    Ok(nodes)
}

/// Whether the definition has a newer format. Then only a newer program may check the tree.
fn is_newer(error: &Error) -> bool {
    match error {
        Error::At { source, .. } => is_newer(source),
        error => matches!(error, Error::NewerFormat { .. }),
    }
}

/// The outcome of a damaged tree.
#[derive(PartialEq)]
enum Outcome {
    /// The tree was repaired.
    Repaired,
    /// The damage produced another valid tree.
    Whole,
    /// The damage changed the format of the definition.
    Newer,
}

/// The check and the repair under test, separate from the model: the negative controls replace one
/// of them.
struct Judged<'t, T, S> {
    model: &'t T,
    store: &'t S,
    rules: Rules,
    check: &'t dyn Fn(&T, &S) -> Result<Vec<Inconsistency>>,
    repair: &'t dyn Fn(&T, &S) -> Result<u64>,
}

impl<T: Tree<Value = u32>, S: Store + Clone> Judged<'_, T, S> {
    /// Damages the tree of a seed. Returns an error that describes a mistake of the check or the
    /// repair.
    fn law(&self, seed: u64) -> Result<Outcome, String> {
        let Self { model, store, rules, .. } = self;
        let rng = &mut Rng::with_seed(seed);
        clear(*store);
        let mut trees = forest(rng);
        if rules.ordered_by_name {
            sort(&mut trees);
        }
        store.transact(|txn| model.import(txn, None, &trees)).unwrap();
        let before = dump_all(*store);
        let whole = walk(*model, &store.snapshot().unwrap()).unwrap();
        let mut txn = store.begin().unwrap();
        match seed < BITS {
            true => damage(rng, &before, &mut txn).unwrap(),
            false => flip_bits(rng, &before, &mut txn).unwrap(),
        }
        keyloom::Transaction::commit(txn).unwrap();
        let damaged = dump_all(*store);
        self.walk_ends()?;
        match (self.check)(model, store) {
            Err(error) if is_newer(&error) && self.is_definition_newer(&before, &damaged) => {
                Ok(Outcome::Newer)
            }
            Err(error) => Err(format!("the check stops: {error}")),
            Ok(found) if found.is_empty() => self.is_whole(),
            Ok(found) => {
                let most = cost(*rules, &whole, &before, &damaged);
                self.repairs(&damaged, &whole, most)
                    .map_err(|wrong| format!("{wrong}\nfound: {found:?}\nwhole: {whole:?}"))
            }
        }
    }

    /// A traversal of a damaged tree ends, with or without an error.
    fn walk_ends(&self) -> Result<(), String> {
        let seen = catch_unwind(AssertUnwindSafe(|| {
            let snapshot = self.store.snapshot().unwrap();
            self.model.descendants(&snapshot, None, ..).map(|visits| visits.take(1_000).count())
        }));
        match seen {
            Ok(Ok(1_000)) => Err("the walk over the damaged tree does not end".into()),
            _ => Ok(()),
        }
    }

    fn is_definition_newer(&self, before: &Dump, damaged: &Dump) -> bool {
        let Some(definition) = self.rules.definition else { return false };
        let key = self.model.space().pack(definition).to_vec();
        before.get(&key).and_then(|bytes| bytes.first())
            < damaged.get(&key).and_then(|bytes| bytes.first())
    }

    fn is_whole(&self) -> Result<Outcome, String> {
        let nodes = read_all(self.model, self.store);
        let nodes = nodes.map_err(|error| format!("damage is not named: {error}"))?;
        match nodes.values().all(|(_, value)| value.is_some()) {
            true => Ok(Outcome::Whole),
            false => Err("damage is not named: a value cannot be read".into()),
        }
    }

    fn repairs(&self, damaged: &Dump, whole: &Nodes, most: usize) -> Result<Outcome, String> {
        let Self { model, store, .. } = self;
        let repair = || (self.repair)(model, store).map_err(|error| error.to_string());
        let written = repair().map_err(|error| format!("the repair stops: {error}"))?;
        let repaired = dump_all(*store);
        if (written == 0) != (repaired == *damaged) {
            return Err(format!("the repair counts {written} keys, and that is not what it wrote"));
        }
        let left = faults(*model, *store).map_err(|error| error.to_string())?;
        if left.iter().any(|fault| fault.rule != Rule::Undecodable) {
            return Err(format!("the repair leaves {left:?}"));
        }
        if repair()? != 0 || dump_all(*store) != repaired {
            return Err("the repair does not converge".into());
        }
        let now =
            read_all(*model, *store).map_err(|error| format!("the repair leaves: {error}"))?;
        let lost = whole.iter().filter(|(id, node)| now.get(id) != Some(node)).count();
        if lost > most {
            return Err(format!("{lost} nodes are lost, and not {most} at most: {now:?}"));
        }
        let (is_left, is_lost) = (!left.is_empty(), now.values().any(|(_, value)| value.is_none()));
        if is_left != is_lost {
            return Err(format!("lost values are not named: {left:?}, {now:?}"));
        }
        self.takes_changes(&now).map_err(|error| format!("after the repair: {error}"))?;
        Ok(Outcome::Repaired)
    }

    /// The remedy: after every lost value is set, the tree accepts changes again.
    fn takes_changes(&self, now: &Nodes) -> Result<(), String> {
        let Self { model, store, .. } = self;
        let change = store.transact(|txn| {
            for (id, _) in now.iter().filter(|(_, (_, value))| value.is_none()) {
                model.set_value(txn, *id, &7)?;
            }
            model.insert(txn, 1_000, "new", &1, InsertAt::sorted(None))?;
            model.move_to(txn, 1_000, InsertAt::sorted(now.keys().next().copied()))
        });
        change.map_err(|error| error.to_string())?;
        let left = faults(*model, *store).map_err(|error| error.to_string())?;
        let nodes = read_all(*model, *store)?;
        match left.is_empty() && nodes.len() == now.len() + 1 {
            true => Ok(()),
            false => Err(format!("{left:?} in {nodes:?}")),
        }
    }
}

/// Repairs a tree. Returns the number of changed keys.
fn fixed(model: &impl Tree<Value = u32>, store: &impl Store) -> Result<u64> {
    model.repair(store).map(|done| done.changed())
}

pub fn damage_is_named_and_repair_converges<T: Tree<Value = u32>>(
    store: &(impl Store + Clone),
    make: impl Fn(&Subspace) -> T,
    rules: Rules,
) {
    let model = &make(&Subspace::new("tree"));
    let (check, repair) = (&faults, &|model: &T, store: &_| fixed(model, store));
    let judged = Judged { model, store, rules, check, repair };
    let (mut trees, mut repaired, mut newer, mut wrong) = (0, 0, 0, Vec::new());
    for seed in seeds() {
        trees += 1;
        match judged.law(seed) {
            Ok(outcome) => {
                repaired += usize::from(outcome == Outcome::Repaired);
                newer += usize::from(outcome == Outcome::Newer);
            }
            Err(error) => wrong.push(format!("seed {seed}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{} trees: {}", wrong.len(), wrong.join("\n"));
    println!("{repaired} of {trees} trees damaged and repaired, {newer} of a newer format");
    assert!(repaired > trees / 4 && newer < trees / 8, "{repaired}, {newer}");
    store.transact(|txn| txn.delete_range(KeyRange::all())).unwrap();
}

fn sort(trees: &mut [NestedNode<u32>]) {
    trees.sort_by(|one, other| one.name.cmp(&other.name));
    trees.iter_mut().for_each(|tree| sort(&mut tree.children));
}

// ---- negative controls: checks and repairs with one mistake each
// ------------------------------------------------------

type Check<T> = dyn Fn(&T, &Memory) -> Result<Vec<Inconsistency>>;
type Repair<T> = dyn Fn(&T, &Memory) -> Result<u64>;

/// Asserts that the law detects a wrong check or repair for some seed, with this reason.
fn caught<T: Tree<Value = u32>>(
    (model, rules): (&T, Rules),
    (check, repair): (&Check<T>, &Repair<T>),
    why: &str,
) {
    let judged = Judged { model, store: &Memory::new(), rules, check, repair };
    let seen: Vec<String> = (0..60).filter_map(|seed| judged.law(seed).err()).collect();
    assert!(seen.iter().any(|wrong| wrong.contains(why)), "{why}: {seen:?}");
}

fn wrong_checks_and_repairs_are_caught<T: Tree<Value = u32>>(model: &T, rules: Rules) {
    let model = (model, rules);
    let repair: &Repair<T> = &|model, store| fixed(model, store);
    let repaired = |with: &Repair<T>, why: &str| caught(model, (&faults, with), why);
    caught(model, (&|_, _| Ok(Vec::new()), repair), "damage is not named");
    let stops: &Check<T> = &|model, store| match faults(model, store)?.first() {
        None => Ok(Vec::new()),
        Some(fault) => {
            let newer = Error::NewerFormat { what: "a node".into(), found: 9, supported: 1 };
            Err(newer.at(&fault.key))
        }
    };
    caught(model, (stops, repair), "the check stops");
    repaired(&|_, _| Ok(0), "the repair leaves");
    repaired(&|_, _| Ok(1), "that is not what it wrote");
    let does_nothing_again =
        |model: &T, store: &Memory| fixed(model, store).map(|keys| keys.max(1));
    repaired(&does_nothing_again, "the repair does not converge");
    let silent = |model: &T, store: &Memory| fixed(model, store).map(|_| 0);
    repaired(&silent, "that is not what it wrote");
    let clears = |model: &T, store: &Memory| {
        fixed(model, store)?;
        let all = model.space().self_and_children();
        let keys = store.snapshot()?.count(all)?;
        store.transact(|txn| txn.delete_range(model.space().self_and_children()))?;
        Ok(keys)
    };
    repaired(&clears, "nodes are lost");
    // After the repair, deletes one root more than the damage may destroy.
    let deletes_a_root = |model: &T, store: &Memory| {
        let keys = fixed(model, store)?;
        let root = {
            let snapshot = store.snapshot()?;
            model.children(&snapshot, None)?.next().transpose()?.map(|n| n.id())
        };
        match root.filter(|_| keys > 0) {
            Some(root) => store.transact(|txn| model.delete_subtree(txn, root)),
            None => Ok(keys),
        }
    };
    repaired(&deletes_a_root, "nodes are lost");
}

#[test]
fn a_wrong_check_or_repair_of_a_list_is_caught() {
    let list = AdjacencyList::<u32>::new(&Subspace::new("tree"));
    wrong_checks_and_repairs_are_caught(&list, Rules::NONE);
}

#[test]
fn a_wrong_check_or_repair_of_a_document_is_caught() {
    let document = TreeDocument::<u32>::new(&Subspace::new("tree"));
    wrong_checks_and_repairs_are_caught(&document, Rules::DOCUMENT);
}
