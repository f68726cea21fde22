//! Small subtrees: 20 sections of 200 posts with 50 comments each. Pages of posts, moves of a post
//! with its comments, and searches by names.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use keyloom::lmdb::Durability;
use keyloom::{KeyRange, Lmdb, Reader, Store, Subspace};
use keyloom_compare::compare;
use keyloom_patterns::trees::{
    AdjacencyList, DeclareTree, InsertAt, MaterializedPath, NestedNode, NestedSets, NodeId,
    NodeRecord, Tree, TreeModel,
};
use keyloom_patterns::{Schema, entry};
use rusqlite::{Connection, Row};

use super::sqlite;

const SECTIONS: u64 = 20;
const POSTS: u64 = 200;
const COMMENTS: u64 = 50;
const PAGE: usize = 20;

const FIRST_PAGE: &str =
    "SELECT id, name FROM nodes INDEXED BY by_parent WHERE parent = ?1 ORDER BY position LIMIT 20";
const BY_NAME: &str = "CREATE INDEX by_name ON nodes (parent, name); ANALYZE";
const FIND: &str = "
    SELECT c.id FROM nodes a JOIN nodes b ON b.parent = a.id JOIN nodes c ON c.parent = b.id
    WHERE a.parent IS NULL AND a.name = ?1 AND b.name = ?2 AND c.name = ?3";

/// The ids of a section, of a post in it and of a comment below it.
const fn section(n: u64) -> NodeId {
    1_000_000 * (n % SECTIONS + 1)
}

const fn post(n: u64) -> NodeId {
    section(n / POSTS) + 1_000 * (n % POSTS + 1)
}

fn forest() -> Vec<NestedNode<u64>> {
    let node = |id: NodeId, children: Vec<NestedNode<u64>>| NestedNode {
        children: children.into(),
        ..NestedNode::new(id, node_name(id), id)
    };
    let comments = |post| (1..=COMMENTS).map(|n| node(post + n, Vec::new())).collect();
    let posts = |n| (0..POSTS).map(move |m| post(n * POSTS + m)).map(|id| node(id, comments(id)));
    (0..SECTIONS).map(|n| node(section(n), posts(n).collect())).collect()
}

fn node_name(id: NodeId) -> String {
    format!("node {id}")
}

pub fn compare_all(directory: &Path) {
    let forest = forest();
    println!("\nsmall subtrees: {SECTIONS} sections of {POSTS} posts of {COMMENTS} comments");
    let directory = directory.join("small");
    std::fs::create_dir(&directory).unwrap();
    let mut peers = Peers { sqlite: Connection::open_in_memory().unwrap(), directory, forest };
    peers.one("adjacency list", |space| AdjacencyList::new(space).with_unique_names());
    peers.one("paths of ids", MaterializedPath::new);
    peers.one("paths of names", |space| MaterializedPath::new(space).of_names());
    peers.one("nested sets", NestedSets::new);
}

struct Peers {
    directory: PathBuf,
    forest: Vec<NestedNode<u64>>,
    sqlite: Connection,
}

impl Peers {
    fn one<T: TreeModel<Value = u64>>(&mut self, name: &str, make: impl Fn(&Subspace) -> T) {
        println!("\n{name}");
        let path = self.directory.join(name.replace(' ', "_"));
        std::fs::create_dir(&path).unwrap();
        // Moves leave the posts in another order, so each model is beside a new database.
        self.sqlite = sqlite::open(&path.join("sqlite"), &self.forest);
        self.sqlite.execute_batch(BY_NAME).unwrap();
        let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(4 << 30);
        let store = options.open(&path).unwrap();
        let bare = make(&Subspace::new("bare"));
        store.transact(|txn| bare.import(txn, None, &self.forest)).unwrap();
        self.pages(name, &bare, &store);
        self.finds(name, &bare, &store, &make);
        self.moves(name, &bare, &store);
    }

    /// The first 20 posts of each section, with their names.
    fn pages(&self, name: &str, tree: &impl Tree<Value = u64>, store: &Lmdb) {
        let snapshot = store.snapshot().unwrap();
        let sections = || (0..SECTIONS).map(section);
        let own = |id: NodeId| {
            let page = tree.children_page(&snapshot, id, PAGE, None).unwrap();
            page.items.iter().map(|node| node.id() ^ node.name().unwrap().len() as u64).collect()
        };
        let mut query = self.sqlite.prepare(FIRST_PAGE).unwrap();
        let mut of_sqlite = |id: NodeId| -> Vec<u64> {
            let row = |row: &Row<'_>| {
                Ok(row.get::<_, i64>(0)? as u64 ^ row.get_ref(1)?.as_str()?.len() as u64)
            };
            query.query_map([id as i64], row).unwrap().map(Result::unwrap).collect()
        };
        for id in sections() {
            let found: Vec<u64> = own(id);
            assert_eq!(found, of_sqlite(id));
        }
        // The same number of seeks, without decoding: a lower bound for a model whose subtrees are
        // between its siblings.
        let seeks = || {
            for id in sections() {
                for n in 0..PAGE as u64 {
                    let from = tree.space().pack(&("node", id + 1_000 * (n + 1)));
                    black_box(snapshot.first(KeyRange::starting_at(&from)).unwrap());
                }
            }
        };
        let own: &dyn Fn(NodeId) -> Vec<u64> = &own;
        let contenders: &mut [(&str, &mut dyn FnMut())] = &mut [
            (name, &mut || sections().for_each(|id| _ = black_box(own(id)))),
            ("SQLite", &mut || sections().for_each(|id| _ = black_box(of_sqlite(id)))),
            ("20 seeks alone", &mut || seeks()),
        ];
        compare("page of 20 posts with 50 comments each", SECTIONS as usize, 300, contenders);
    }

    /// A comment by the names of its section, its post and itself.
    fn finds<T: TreeModel<Value = u64>>(
        &self,
        name: &str,
        tree: &T,
        store: &Lmdb,
        make: impl Fn(&Subspace) -> T,
    ) {
        const AT_ONCE: u64 = 20;
        let schema = Schema::open(store, "forum").unwrap();
        let indexed = schema.tree("tree", make).unwrap();
        let index = |_: &_, node: &NodeRecord<u64>| entry(node.name());
        let by_name = schema.index(indexed.nodes().unwrap(), "by_name", 1, index).unwrap();
        store.transact(|txn| indexed.import(txn, None, &self.forest)).unwrap();
        let snapshot = store.snapshot().unwrap();
        let some = |n: &mut u64| {
            *n = (*n + 7_919) % (SECTIONS * POSTS * COMMENTS);
            let post = post(*n / COMMENTS);
            let ids = [section(*n / COMMENTS / POSTS), post, post + *n % COMMENTS + 1];
            (ids[2], ids.map(node_name))
        };
        let own = |names: &[String; 3]| {
            tree.node_at(&snapshot, names.iter().map(String::as_str)).unwrap().unwrap()
        };
        let by_index = |names: &[String; 3]| {
            let found = by_name.query().prefix(&*names[2]).keys(&snapshot).unwrap();
            let mut is_at = found
                .items
                .iter()
                .filter(|id| indexed.names_to(&snapshot, **id).unwrap().iter().eq(names.iter()));
            *is_at.next().unwrap()
        };
        let mut query = self.sqlite.prepare(FIND).unwrap();
        let mut of_sqlite = |names: &[String; 3]| {
            let row = query.query_row(names.each_ref(), |row| row.get::<_, i64>(0));
            row.unwrap() as u64
        };
        let (mut a, mut b, mut c) = (0, 0, 0);
        (0..AT_ONCE).for_each(|_| {
            let (id, names) = some(&mut a);
            assert_eq!([own(&names), by_index(&names), of_sqlite(&names)], [id; 3]);
        });
        a = 0;
        let contenders: &mut [(&str, &mut dyn FnMut())] = &mut [
            (name, &mut || (0..AT_ONCE).for_each(|_| _ = black_box(own(&some(&mut a).1)))),
            ("SQLite", &mut || {
                (0..AT_ONCE).for_each(|_| _ = black_box(of_sqlite(&some(&mut b).1)))
            }),
            ("an index of its nodes by name", &mut || {
                (0..AT_ONCE).for_each(|_| _ = black_box(by_index(&some(&mut c).1)))
            }),
        ];
        compare("find by three names", AT_ONCE as usize, 100, contenders);
    }

    /// A post with its 50 comments to another section and back.
    fn moves(&self, name: &str, tree: &impl Tree<Value = u64>, store: &Lmdb) {
        let step = |n: &mut u64| {
            let post = *n / 2 % (SECTIONS * POSTS);
            let home = post / POSTS;
            let away = home + 1;
            let (from, to) = if n.is_multiple_of(2) { (home, away) } else { (away, home) };
            *n += 1;
            (self::post(post), section(from), section(to))
        };
        let by_name = name == "paths of names";
        let (mut a, mut b, mut c) = (0, 0, 0);
        let mut own = || {
            let (post, _, to) = step(&mut a);
            let place = if by_name { InsertAt::sorted(to) } else { InsertAt::last(to) };
            store.transact(|txn| tree.move_to(txn, post, place)).unwrap();
        };
        let mut row = self.sqlite.prepare(sqlite::MOVE).unwrap();
        let mut of_rows = || {
            let (post, _, to) = step(&mut b);
            assert_eq!(row.execute([post as i64, to as i64]).unwrap(), 1);
        };
        let mut path = self.sqlite.prepare(sqlite::MOVE_PATH).unwrap();
        let mut of_paths = || {
            let (post, from, to) = step(&mut c);
            let paths = (format!("{from}/{post}"), format!("{to}/{post}"));
            assert_eq!(path.execute(paths).unwrap(), COMMENTS as usize + 1);
        };
        let contenders: &mut [(&str, &mut dyn FnMut())] = &mut [
            (name, &mut own),
            ("SQLite, the parent", &mut of_rows),
            ("SQLite, a path each", &mut of_paths),
        ];
        compare("move of 51 nodes", 1, 1_000, contenders);
    }
}
