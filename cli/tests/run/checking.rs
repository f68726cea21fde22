//! `check` and `repair` of the kinds of derived data, compared with the checks of the program that
//! derives them.

use std::collections::BTreeMap;

use keyloom::{Lmdb, Reader, Store, Subspace};
use keyloom_bitmaps::{InvertedIndex, one};
use keyloom_graph::Graph;
use keyloom_spatial::{LatLng, PointIndex};
use keyloom_tables::aggregate::RankedIndex;
use keyloom_tables::{Inconsistency, Links, Rule, Schema, entry};
use keyloom_text::{Analyzer, TextIndex};
use keyloom_trees::path::{PathHierarchy, PathTokenizer};
use keyloom_trees::{
    AdjacencyList, DeclareTree, InsertAt, MaterializedPath, NestedSets, TreeModel,
};

use crate::engines::{Entries, entries, set};
use crate::support::{Directory, Ran, run};

/// What the program finds, by the name of the derived data.
type Found = BTreeMap<String, Vec<Inconsistency>>;

/// What the command can tell of a kind.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reach {
    /// Each fault that the program finds, except values that do not decode. It repairs them, too.
    Mended,
    /// Each fault that the program finds, except values that do not decode.
    All,
    /// Some faults, and none that the program does not find.
    Some,
}

/// A program that fills an empty store, and checks its data.
type Program = fn(&Lmdb) -> Found;

type Pin = (f64, f64);

fn is_empty(store: &impl Store) -> bool {
    store.snapshot().unwrap().first(keyloom::KeyRange::all()).unwrap().is_none()
}

fn found<const N: usize>(all: [(&str, keyloom::Result<Vec<Inconsistency>>); N]) -> Found {
    // A check that fails has found damage, too.
    let damage = || Inconsistency::new(keyloom::KeyBuf::new(), Rule::Foreign);
    let of = |faults: keyloom::Result<_>| faults.unwrap_or_else(|_| vec![damage()]);
    all.into_iter().map(|(name, faults)| (name.to_owned(), of(faults))).collect()
}

/// Entries that lead to records.
fn pins(store: &Lmdb) -> Found {
    let is_new = is_empty(store);
    let schema = Schema::open(store, "trip").unwrap();
    let pins = schema.table::<(String, u32), Pin>("pins").unwrap();
    let places = schema.derive(&pins, "places", 1, |space| {
        Ok(PointIndex::new(space, |_, at: &Pin| LatLng::new(at.0, at.1).map(Some)))
    });
    let ranked = schema.derive(&pins, "ranked", 1, |space| {
        Ok(RankedIndex::new(space, |_, at: &Pin| entry((at.0 as i64, at.1 as i64))))
    });
    let paths = schema.derive(&pins, "paths", 1, |space| {
        Ok(PathHierarchy::new(space, PathTokenizer::new(), |key: &(String, u32), _| {
            [format!("a/{}/{}", key.0, key.1 % 3)]
        }))
    });
    if is_new {
        let pin =
            |n: u32| ((["", "a", "a\0", "\u{1b}"][n as usize % 4].into(), n), (n.into(), 7.5));
        store.transact(|txn| pins.put_many(txn, (0..40).map(pin))).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    found([
        ("pins.places", places.unwrap().check(&snapshot)),
        ("pins.ranked", ranked.unwrap().check(&snapshot)),
        ("pins.paths", paths.unwrap().check(&snapshot)),
    ])
}

/// Bitmaps and texts, with ids of their own and with keys as ids.
fn texts(store: &Lmdb) -> Found {
    let is_new = is_empty(store);
    let schema = Schema::open(store, "library").unwrap();
    let notes = schema.table::<(String, u32), String>("notes").unwrap();
    let words = |texts: TextIndex<_, String>| {
        texts.field("text", Analyzer::simple(), |_, text: &String, add| add(text))
    };
    let text = schema.derive(&notes, "text", 1, |space| Ok(words(TextIndex::new(space))));
    let sets = schema.derive(&notes, "sets", 1, |space| {
        Ok(InvertedIndex::new(space)
            .field("third", |key: &(String, u32), _: &String| one(key.1 % 3))
            .integers("length", |_, text| Some(text.len() as i64)))
    });
    let users = schema.table::<u64, u32>("users").unwrap();
    let by_id = schema.derive(&users, "by_id", 1, |space| {
        Ok(InvertedIndex::with_keys_as_ids(space).field("value", |_, value: &u32| one(*value)))
    });
    if is_new {
        let note = |n: u32| (("k".repeat(n as usize % 3), n), format!("all {} words", n % 5));
        store.transact(|txn| notes.put_many(txn, (0..30).map(note))).unwrap();
        store.transact(|txn| users.put_many(txn, (0..50).map(|n| (n * 3_000, 2)))).unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    found([
        ("notes.text", text.unwrap().check(&snapshot)),
        ("notes.sets", sets.unwrap().check(&snapshot)),
        ("users.by_id", by_id.unwrap().check(&snapshot)),
    ])
}

/// Entries that mirror records.
fn mirrors(store: &Lmdb) -> Found {
    let is_new = is_empty(store);
    let schema = Schema::open(store, "net").unwrap();
    let directed = Graph::<(String, u32), u8, u8>::directed(&schema, "calls").unwrap();
    let undirected = Graph::<u32, (), ()>::undirected(&schema, "roads").unwrap();
    let members = Links::<String, u32>::in_schema(&schema, "members").unwrap();
    if is_new {
        let vertex = |n: u32| (["", "a", "a\0"][n as usize % 3].to_owned(), n % 5);
        store
            .transact(|txn| {
                for n in 0..30 {
                    directed.put_edge(txn, &vertex(n), "calls", &vertex(n * 7), &(n as u8))?;
                    undirected.put_edge(txn, &(n % 4), "road", &(n % 3), &())?;
                    members.link(txn, &"k".repeat(n as usize % 4), &n)?;
                }
                Ok(())
            })
            .unwrap();
    }
    let snapshot = store.snapshot().unwrap();
    let of_graph = |faults: Vec<Inconsistency>, space: &Subspace| {
        let is_of =
            |fault: &Inconsistency| fault.rule == Rule::Undecodable || space.contains(&fault.key);
        faults.into_iter().filter(is_of).collect()
    };
    let [calls, roads] =
        [directed.derived_spaces(), undirected.derived_spaces()].map(|[one, _]| one);
    found([
        ("calls edges.incoming", directed.check(&snapshot).map(|all| of_graph(all, &calls))),
        ("roads edges.incoming", undirected.check(&snapshot).map(|all| of_graph(all, &roads))),
        ("members.reversed", members.check(&snapshot)),
    ])
}

fn grow<T: TreeModel<Value = u32>>(store: &Lmdb, make: impl Fn(&Subspace) -> T) -> Found {
    let is_new = is_empty(store);
    let schema = Schema::open(store, "files").unwrap();
    let tree = schema.tree("dirs", make).unwrap();
    if is_new {
        let grown = store.transact(|txn| {
            (1..25_u64).try_for_each(|id| {
                let above = Some(id / 3).filter(|above| *above > 0);
                tree.insert(txn, id, &format!("n{id}"), &7, InsertAt::Sorted(above))
            })
        });
        grown.unwrap();
    }
    found([("dirs.tree", tree.check(&store.snapshot().unwrap()))])
}

fn list(store: &Lmdb) -> Found {
    grow(store, AdjacencyList::new)
}

fn list_of_unique_names(store: &Lmdb) -> Found {
    grow(store, |space| AdjacencyList::new(space).with_unique_names())
}

fn paths_of_ids(store: &Lmdb) -> Found {
    grow(store, MaterializedPath::new)
}

fn paths_of_names(store: &Lmdb) -> Found {
    grow(store, |space| MaterializedPath::new(space).of_names())
}

fn sets(store: &Lmdb) -> Found {
    grow(store, NestedSets::new)
}

const PROGRAMS: [(Program, Reach); 8] = [
    (pins, Reach::Some),
    (texts, Reach::Some),
    (mirrors, Reach::Mended),
    (list, Reach::All),
    (list_of_unique_names, Reach::All),
    (paths_of_ids, Reach::All),
    (paths_of_names, Reach::All),
    (sets, Reach::All),
];

/// The faults apart from values that do not decode, for which the types of the program are needed.
fn without_types(faults: &[Inconsistency]) -> usize {
    faults.iter().filter(|fault| fault.rule != Rule::Undecodable).count()
}

struct Filled {
    directory: Directory,
    program: Program,
    sound: Entries,
}

impl Filled {
    fn new(program: Program) -> Self {
        let directory = Directory::new();
        let address = directory.lmdb(|store: &Lmdb| drop(program(store)));
        Self { sound: entries(&address), directory, program }
    }

    fn address(&self) -> String {
        self.directory.address("lmdb", "lmdb")
    }

    fn checked_by_program(&self) -> Found {
        let store = Lmdb::open(self.directory.path().join("lmdb")).unwrap();
        (self.program)(&store)
    }

    fn checked(&self, name: &str) -> Ran {
        let ran = run(&["check", &self.address(), name, "--limit", "1000"]);
        assert!(ran.code < 2, "{name}: {}", ran.err);
        ran
    }

    /// Changes one entry, and later undoes the change.
    fn damaged(&self, (key, value): &(Vec<u8>, Option<Vec<u8>>), work: impl FnOnce()) {
        set(&self.address(), key, value.as_deref());
        work();
        let now = entries(&self.address());
        for key in now.keys().chain(self.sound.keys()) {
            let sound = self.sound.get(key);
            if now.get(key) != sound {
                set(&self.address(), key, sound.map(Vec::as_slice));
            }
        }
        assert!(entries(&self.address()) == self.sound);
    }

    /// Lost, changed, cut and added entries outside the schema's own, a random part of them.
    fn damages(&self, random: &mut fastrand::Rng) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let of_schemas = Subspace::new("keyloom");
        let all: Vec<_> = self.sound.iter().filter(|(key, _)| !of_schemas.contains(key)).collect();
        let damage = |_| {
            let (key, value) = all[random.usize(..all.len())];
            let (mut key, mut value) = (key.clone(), value.clone());
            match random.u8(..4) {
                0 => return (key, None),
                1 => value.push(1),
                2 => match value.last_mut() {
                    Some(byte) => *byte ^= 1 << random.u8(..8),
                    None => key.push(0),
                },
                _ => *key.last_mut().unwrap() ^= 1,
            }
            (key, Some(value))
        };
        (0..32).map(damage).collect()
    }
}

/// The command finds in damaged data what the program finds, and nothing in sound data.
#[test]
fn check_finds_what_the_program_finds() {
    let mut random = fastrand::Rng::with_seed(7);
    for (program, reach) in PROGRAMS {
        let filled = Filled::new(program);
        let names: Vec<String> = filled.checked_by_program().into_keys().collect();
        for name in &names {
            let sound = filled.checked(name);
            assert_eq!((sound.code, &sound.out[..]), (0, ""), "{name}");
            assert!(!sound.err.contains("not checked"), "{}", sound.err);
        }
        let (mut of_program, mut of_command) = (0, 0);
        for damage in filled.damages(&mut random) {
            filled.damaged(&damage, || {
                for (name, faults) in filled.checked_by_program() {
                    let checked = filled.checked(&name);
                    let (is_found, without_types) = (checked.code == 1, without_types(&faults));
                    // An entry is not known to be right if its record does not decode.
                    let is_true = !is_found || !faults.is_empty();
                    let is_missed = !is_found && without_types > 0;
                    let is_right = is_true && (reach == Reach::Some || !is_missed);
                    assert!(is_right, "{name}, {damage:?}: {}{faults:?}", checked.out);
                    of_command += usize::from(is_found && without_types > 0);
                    of_program += usize::from(without_types > 0);
                }
            });
        }
        // Without the functions of the program, about half is found.
        let is_enough = of_program > 8 && 3 * of_command >= of_program;
        assert!(is_enough, "{names:?}: {of_command} of {of_program}");
        println!("{names:?}: {of_command} of {of_program} damaged stores");
    }
}

/// A repair leaves nothing that the check of the program finds.
#[test]
fn repair_leaves_what_the_program_accepts() {
    let mut random = fastrand::Rng::with_seed(8);
    for (program, reach) in PROGRAMS {
        if reach != Reach::Mended {
            continue;
        }
        let filled = Filled::new(program);
        let mut repaired = 0;
        for damage in filled.damages(&mut random) {
            filled.damaged(&damage, || {
                for (name, faults) in filled.checked_by_program() {
                    let ran = run(&["repair", &filled.address(), &name, "--write"]);
                    assert!(ran.code < 2, "{name}: {}", ran.err);
                    if ran.code == 0 {
                        let left = &filled.checked_by_program()[&name];
                        assert_eq!(without_types(left), 0, "{name}, {damage:?}: {left:?}");
                        repaired += usize::from(without_types(&faults) > 0);
                    }
                }
            });
        }
        assert!(repaired > 5, "{repaired}");
    }
}

/// Bytes that are not readable are a fault, and no reason to stop: the rest is still checked.
#[test]
fn unreadable_bytes_anywhere_are_reported() {
    for (program, _) in PROGRAMS {
        let filled = Filled::new(program);
        let of_schemas = Subspace::new("keyloom");
        let all: Vec<_> = filled.sound.keys().filter(|key| !of_schemas.contains(key)).collect();
        // About sixty entries, and all that are few of their kind: the bitmaps of all ids.
        let is_of_all = |key: &[u8]| key.windows(4).any(|part| part == b"all\0");
        let step = all.len().div_ceil(60);
        let some = all.iter().step_by(step).chain(all.iter().filter(|key| is_of_all(key)));
        let mut found = 0;
        for key in some {
            filled.damaged(&((*key).clone(), Some(vec![0xFF])), || {
                let ran = run(&["check", &filled.address()]);
                assert!(ran.code < 2, "{}: {}", keyloom::key::display(key), ran.err);
                found += usize::from(ran.code == 1);
            });
        }
        assert!(found > 20, "{found}");
    }
}
