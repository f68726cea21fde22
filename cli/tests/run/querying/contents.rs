//! Records that queries find, and the data that leads to them.

use keyloom::{Store, Subspace};
use keyloom_bitmaps::{InvertedIndex, one};
use keyloom_graph::Graph;
use keyloom_kit::RecordKey;
use keyloom_spatial::{BoundingBox, ExtentIndex, Group, LatLng, PointIndex};
use keyloom_tables::Schema;
use keyloom_text::{Analyzer, TextIndex};
use keyloom_trees::path::{PathHierarchy, PathTokenizer};
use keyloom_trees::{AdjacencyList, DeclareTree, MaterializedPath, NestedSets};
use keyloom_trees::{InsertAt, TreeModel};

/// The names of the trees, one of each model.
pub const TREES: [&str; 5] = ["list", "unique", "ids", "names", "sets"];
/// The groups of points.
pub const TENANTS: [&str; 2] = ["acme", "b\u{1b}"];

/// The latitude and the longitude.
pub type Pin = (f64, f64);

/// The number of a node, its parent, and its name.
pub type Node = (u64, Option<u64>, String);

/// A source, a label, a target, and the record of the edge.
pub type Edge = (String, String, String, u32);

/// Positions that are spread evenly: multiples of irrational numbers are.
pub fn pins() -> Vec<Pin> {
    let pin = |n: f64| {
        let latitude = n * 0.618_033_988_75 % 1.0 * 160.0 - 80.0;
        (latitude, n * 0.754_877_666_25 % 1.0 * 359.0 - 179.0)
    };
    (0..500).map(f64::from).map(pin).collect()
}

/// The extent of the park at a pin: south, west, north, east.
pub fn park(pin: Pin) -> [f64; 4] {
    [pin.0 - 2.0, pin.1 - 0.5, pin.0 + 2.0, pin.1 + 0.5]
}

/// A tree of three levels, with names that are special in patterns, and the same name in several
/// places. Siblings have different names, in ascending order.
pub fn nodes() -> Vec<Node> {
    let mut nodes: Vec<Node> = vec![(1, None, "photos".into()), (2, None, "*".into())];
    for (id, year) in (10..).zip(["2023", "2024", "2024-old", "a/b"]) {
        nodes.push((id, Some(1), year.into()));
        let files = ["1.jpg", "1.png", "2.jpg", "2024", "\u{1b}"];
        let file = |(n, name): (u64, &&str)| (id * 100 + n, Some(id), (*name).to_owned());
        nodes.extend((0..).zip(&files).map(file));
    }
    nodes.push((30, Some(2), "2024".into()));
    nodes
}

/// Directed edges: a loop, two labels between the same vertices, and a vertex of digits.
pub fn edges() -> Vec<Edge> {
    let edges = [
        ("ada", "knows", "grace"),
        ("ada", "knows", "jean"),
        ("ada", "likes", "ada"),
        ("ada", "likes", "grace"),
        ("grace", "knows", "ada"),
        ("jean", "knows", "ada"),
        ("7", "like\u{1b}", "ada"),
    ];
    let edge = |(n, (a, label, b)): (u32, &(&str, &str, &str))| {
        (String::from(*a), String::from(*label), String::from(*b), n)
    };
    (0..).zip(&edges).map(edge).collect()
}

/// Undirected edges between numbers.
pub const ROADS: [(u32, u32); 4] = [(1, 2), (3, 1), (1, 1), (2, 3)];

/// The paths of documents.
pub const PATHS: [&str; 6] =
    ["/usr/bin/ls", "/usr/lib/libm.so", "/usr/local/bin/ls", "/etc/hosts", "/usr", "/bin/ls"];

/// A title and a text. The words are letters in lower case, so each is its own term.
pub type Letter = (String, String);

/// Letters of different lengths, with frequent words and rare ones.
pub fn letters() -> Vec<Letter> {
    const WORDS: [&str; 8] = ["the", "sea", "the", "storm", "ship", "story", "salt", "stone"];
    let mut state = 7_usize;
    let mut next = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 33) % most
    };
    let mut text = |length: usize| -> String {
        let words = (0..length).map(|_| WORDS[next(WORDS.len()).min(next(WORDS.len()))]);
        words.collect::<Vec<_>>().join(" ")
    };
    (1..60).map(|n| (text(n % 3 + 1), text(n % 13 + 1))).collect()
}

/// A town, sites, a level of values, and an age of integers. Some have no town or no age.
pub type User = (Option<String>, Vec<String>, u8, Option<i64>);

/// Users with all combinations of towns and levels.
pub fn users() -> Vec<User> {
    const TOWNS: [Option<&str>; 5] =
        [Some("London"), Some("Lonesome \"x\""), Some("Rome"), None, Some("and")];
    let user = |n: usize| {
        let sites = ["a.org", "b.org", "c\u{1b}"].into_iter().take(n % 4).map(String::from);
        let age = (!n.is_multiple_of(3)).then(|| i64::try_from(n).unwrap() - 100);
        (TOWNS[n % 5].map(String::from), sites.collect(), (n / 5 % 6) as u8, age)
    };
    (0..300).map(user).collect()
}

/// Fills a store with all of these.
pub fn fill(store: &impl Store) {
    places(store);
    trees(store);
    graphs(store);
    paths(store);
    texts(store);
    audiences(store);
}

fn position(pin: &Pin) -> keyloom::Result<LatLng> {
    LatLng::new(pin.0, pin.1)
}

fn places(store: &impl Store) {
    let schema = Schema::open(store, "trip").unwrap();
    let pins_table = schema.table::<(String, u32), Pin>("pins").unwrap();
    let by_place = |space: &Subspace| {
        Ok(PointIndex::new(space, |_: &(String, u32), pin: &Pin| position(pin).map(Some)))
    };
    schema.derive(&pins_table, "by_place", 1, by_place).unwrap();
    let vans = schema.table::<u32, (String, Pin)>("vans").unwrap();
    let by_place = |space: &Subspace| {
        Ok(PointIndex::grouped(space, |_: &u32, (tenant, pin): &(String, Pin)| {
            Ok(Some((Group::of(tenant), position(pin)?)))
        }))
    };
    schema.derive(&vans, "by_place", 1, by_place).unwrap();
    let parks = schema.table::<u32, Pin>("parks").unwrap();
    let by_extent = |space: &Subspace| {
        Ok(ExtentIndex::new(space, |_: &u32, pin: &Pin| {
            let [south, west, north, east] = park(*pin);
            BoundingBox::new(south, west, north, east).map(Some)
        }))
    };
    schema.derive(&parks, "by_extent", 1, by_extent).unwrap();
    let put = store.transact(|txn| {
        for (id, pin) in (0..).zip(pins()) {
            pins_table.put(txn, &("pin".into(), id), &pin)?;
            let tenant = TENANTS[id as usize % TENANTS.len()];
            vans.put(txn, &id, &(tenant.into(), pin))?;
            if id % 5 == 0 {
                parks.put(txn, &id, &pin)?;
            }
        }
        Ok(())
    });
    put.unwrap();
}

fn trees(store: &impl Store) {
    let [list, unique, ids, names, sets] = TREES;
    tree(store, list, AdjacencyList::<u32>::new);
    tree(store, unique, |space| AdjacencyList::<u32>::new(space).with_unique_names());
    tree(store, ids, MaterializedPath::<u32>::new);
    tree(store, names, |space| MaterializedPath::<u32>::new(space).of_names());
    tree(store, sets, NestedSets::<u32>::new);
}

fn tree<T: TreeModel<Value = u32>>(store: &impl Store, name: &str, make: impl Fn(&Subspace) -> T) {
    let schema = Schema::open(store, "files").unwrap();
    let tree = schema.tree(name, make).unwrap();
    let put = store.transact(|txn| {
        let mut insert =
            |(id, parent, name): Node| tree.insert(txn, id, &name, &7, InsertAt::Sorted(parent));
        nodes().into_iter().try_for_each(&mut insert)
    });
    put.unwrap();
}

fn graphs(store: &impl Store) {
    let schema = Schema::open(store, "net").unwrap();
    let links = Graph::<String, (), u32>::directed(&schema, "links").unwrap();
    let roads = Graph::<u32>::undirected(&schema, "roads").unwrap();
    let put = store.transact(|txn| {
        for (source, label, target, number) in edges() {
            links.put_edge(txn, &source, &label, &target, &number)?;
        }
        ROADS.iter().try_for_each(|(a, b)| roads.put_edge(txn, a, "road", b, &()))
    });
    put.unwrap();
}

fn paths(store: &impl Store) {
    let schema = Schema::open(store, "files").unwrap();
    let docs = schema.table::<u32, String>("docs").unwrap();
    let by_path = |space: &Subspace| {
        let paths = |_: &u32, path: &String| [path.trim_start_matches('/').to_owned()];
        Ok(PathHierarchy::new(space, PathTokenizer::new(), paths))
    };
    schema.derive(&docs, "by_path", 1, by_path).unwrap();
    let put = store.transact(|txn| docs.put_many(txn, (0..).zip(PATHS.map(String::from))));
    put.unwrap();
}

/// Letters in an index whose ids are keys, in one that assigns ids, and in one with groups.
fn texts(store: &impl Store) {
    let schema = Schema::open(store, "library").unwrap();
    let letters_table = schema.table::<u32, Letter>("letters").unwrap();
    let by_ids = |space: &Subspace| {
        let index = TextIndex::with_keys_as_ids(space);
        let index = index.field("title", Analyzer::simple(), |_: &u32, one: &Letter, add| {
            add(&one.0);
        });
        Ok(index.field("text", Analyzer::simple(), |_, one: &Letter, add| add(&one.1)))
    };
    schema.derive(&letters_table, "words", 1, by_ids).unwrap();
    let copies = schema.table::<(String, u32), Letter>("copies").unwrap();
    let words = |space: &Subspace| {
        let index = TextIndex::new(space);
        Ok(index.field("text", Analyzer::simple(), |_: &(String, u32), one: &Letter, add| {
            add(&one.1);
        }))
    };
    schema.derive(&copies, "words", 1, words).unwrap();
    let shelves = schema.table::<u32, Letter>("shelves").unwrap();
    let words = |space: &Subspace| {
        let shelf = |id: &u32, _: &Letter| {
            keyloom_text::Group::of(TENANTS[*id as usize % TENANTS.len()].to_owned())
        };
        let index = TextIndex::grouped(space, shelf);
        Ok(index.field("text", Analyzer::simple(), |_: &u32, one: &Letter, add| add(&one.1)))
    };
    schema.derive(&shelves, "words", 1, words).unwrap();
    let put = store.transact(|txn| {
        for (id, letter) in (0..).zip(letters()) {
            letters_table.put(txn, &id, &letter)?;
            copies.put(txn, &("copy\u{1b}".into(), id), &letter)?;
            shelves.put(txn, &id, &letter)?;
        }
        Ok(())
    });
    put.unwrap();
}

/// Users in an index whose ids are keys, and in one that assigns ids.
fn audiences(store: &impl Store) {
    let schema = Schema::open(store, "ads").unwrap();
    let users_table = schema.table::<u32, User>("users").unwrap();
    let sets = |space: &Subspace| Ok(with_fields(InvertedIndex::with_keys_as_ids(space)));
    schema.derive(&users_table, "sets", 1, sets).unwrap();
    let guests = schema.table::<(String, u32), User>("guests").unwrap();
    let sets = |space: &Subspace| Ok(with_fields(InvertedIndex::new(space)));
    schema.derive(&guests, "sets", 1, sets).unwrap();
    let put = store.transact(|txn| {
        for (id, user) in (0..).zip(users()) {
            users_table.put(txn, &id, &user)?;
            guests.put(txn, &("guest".into(), id), &user)?;
        }
        Ok(())
    });
    put.unwrap();
}

fn with_fields<K: RecordKey>(index: InvertedIndex<K, User>) -> InvertedIndex<K, User> {
    index
        .field("town", |_, user: &User| one(user.0.as_ref()))
        .field("a \"site\", of values", |_, user| user.1.iter().collect())
        .field("level", |_, user| one(user.2))
        .field("both", |_, user| one((user.2, user.0.clone().unwrap_or_default())))
        .integers("age", |_, user| user.3)
}
