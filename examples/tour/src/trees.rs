//! A directory tree, both by the names of its paths and as one document; cities below their regions
//! and countries.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use keyloom::value::Postcard;
use keyloom::{Reader, Result, Store, Subspace};
use keyloom_patterns::trees::path::PathRegex;
use keyloom_patterns::trees::{
    DeclareTree, InsertAt, MaterializedPath, NestedNode, NestedSets, NodeCodec, NodeId, NodeRecord,
    Tree, TreeDocument, TreeModel,
};
use keyloom_patterns::{Attached, BatchSize, Continuation, Index, Sequence, entry};

use crate::cities;
use crate::options::Options;
use crate::report::{act, ask, grouped, some_of};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "hierarchies",
    title: "Store categories, folders and threads",
    chapter: "book/src/trees.md",
    layout: r#"(directories.tree, "node", id) -> path; (directories.by_name, name, id)"#,
    data: &[
        "directories",
        "directories.tree",
        "directories.by_name",
        "hierarchies",
        "shelf",
        "shelf.tree",
    ],
    shown: "named README.md",
};

/// The size in bytes, if the listing has it.
type Size = Option<u64>;

pub struct Hierarchies {
    files: MaterializedPath<Size>,
    by_name: Attached<Index<NodeId, NodeRecord<Size>, String>, NodeCodec<Postcard>>,
    copy: TreeDocument<Size>,
    /// The values are the numbers of inhabitants.
    world: TreeDocument<u64>,
    /// Teas; the values are prices.
    shelf: NestedSets<u64>,
    ids: Sequence<()>,
}

impl Hierarchies {
    pub fn new(tour: &Tour<'_>) -> Result<Self> {
        let files =
            tour.schema.tree("directories", |space| MaterializedPath::new(space).of_names())?;
        let by_name =
            tour.schema.index(files.nodes()?, "by_name", 1, |_, node| entry(node.name()))?;
        let space = Subspace::new("tour").child("hierarchies");
        let copy = TreeDocument::new(&space.child("copy"));
        let world = TreeDocument::new(&space.child("world"));
        let shelf = tour.schema.tree("shelf", NestedSets::new)?;
        let ids = Sequence::new(&space.child("ids of teas"));
        Ok(Self { files, by_name, copy, world, shelf, ids })
    }

    /// The names from the root of the tree to a node.
    fn path(&self, reader: &impl Reader, id: NodeId) -> Result<String> {
        let (above, node) = (self.files.ancestors(reader, id)?, self.files.get(reader, id)?);
        let path = above.iter().rev().chain(&node);
        Ok(path.map(|node| node.name()).collect::<Result<Vec<_>>>()?.join("/"))
    }
}

impl Step for Hierarchies {
    fn load(&self, store: &TourStore, options: &Options) -> TourResult {
        let mut world = self.world.read(&store.snapshot()?)?;
        if world.is_empty() {
            world.import(None, &countries(&options.data)?)?;
            self.world.write_in_steps(store, &world)?;
        }
        self.by_name.build(store)?;
        // If the last directory exists, the load was complete.
        if self.files.node_at(&store.snapshot()?, ["yaml-tests"])?.is_some() {
            return Ok(());
        }
        let mut pieces = Vec::new();
        split(None, directory_tree(&options.data)?, &mut pieces);
        // Skips the pieces that an interrupted tour has already loaded.
        BatchSize::new(100).transact_all(store, &pieces, |txn, batch| {
            for (parent, directory) in batch {
                if self.files.get(txn, directory.id)?.is_none() {
                    self.files.import(txn, *parent, std::slice::from_ref(directory))?;
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        ask(
            store,
            "What is in the directory gradle, and below it? (materialized path)",
            |snapshot| {
                let gradle = self.files.node_at(snapshot, ["gradle"])?;
                let mut lines = Vec::new();
                for visit in self.files.descendants(snapshot, gradle, 1..)? {
                    let visit = visit?;
                    let indent = 2 * (visit.depth as usize - 1);
                    lines.push(format!("{:indent$}{}", "", visit.node.name()?));
                }
                Ok((some_of(&lines, 5, "files and directories"), ()))
            },
        )?;
        ask(store, "What is on the second page, of five, of the root? (by a token)", |snapshot| {
            let page =
                |after: Option<&Continuation>| self.files.children_page(snapshot, None, 5, after);
            let second = page(page(None)?.next.as_ref())?;
            let names = second.items.iter().map(|node| Ok(node.name()?.to_owned()));
            Ok((names.collect::<Result<Vec<_>>>()?, ()))
        })?;
        ask(store, "Where are the files named README.md? (an index of the nodes)", |snapshot| {
            let found = self.by_name.query().prefix("README.md").keys(snapshot)?;
            let paths = found.items.iter().map(|id| self.path(snapshot, *id));
            Ok((some_of(&paths.collect::<Result<Vec<_>>>()?, 5, "files"), ()))
        })?;
        ask(store, "Which Java files are below a directory src? (a path pattern)", |snapshot| {
            let pattern = PathRegex::new(r"(.*/)?src/.*\.java", '/')?.into();
            let found = self.files.matching(snapshot, &pattern)?;
            let names = found.map(|node| Ok(node?.name()?.to_owned()));
            Ok((some_of(&names.collect::<Result<Vec<_>>>()?, 3, "files"), ()))
        })?;
        act(store, "A directory that is not empty is not deleted, like rmdir:", |store| {
            let gradle = self.files.node_at(&store.snapshot()?, ["gradle"])?.ok_or("no gradle")?;
            let refused = store.transact(|txn| self.files.delete_leaf(txn, gradle));
            Ok(vec![refused.err().ok_or("it was deleted")?.to_string()])
        })?;
        act(store, "All of it into one document, in one call (tree aggregation)", |store| {
            store.transact(|txn| match self.copy.descendant_count(txn, None)? {
                0 => self.copy.copy_from(txn, &self.files),
                _ => Ok(()),
            })?;
            let files = self.copy.read(&store.snapshot()?)?;
            Ok(vec![format!("{} files and directories", grouped(files.len() as u64))])
        })?;
        ask(
            store,
            "Which files are larger than 300,000 bytes? (searched in the document)",
            |snapshot| {
                let mut lines = Vec::new();
                for path in self.copy.read(snapshot)?.find(|node| Ok(node.value()? > Some(300_000)))
                {
                    let path = path?;
                    let names = path.iter().map(|node| node.name()).collect::<Result<Vec<_>>>()?;
                    lines.push(names.join("/"));
                }
                Ok((lines, ()))
            },
        )?;
        ask(
            store,
            "Which countries have a city named Berlin? (135,233 cities in one document)",
            |snapshot| {
                let world = self.world.read(snapshot)?;
                let mut countries = BTreeMap::<String, u32>::new();
                for path in world.find(|node| Ok(node.name()? == "Berlin")) {
                    if let [country, _, _] = &path?[..] {
                        *countries.entry(country.name()?.to_owned()).or_default() += 1;
                    }
                }
                let line = |(country, cities)| format!("{country}: {cities}");
                Ok((countries.into_iter().map(line).collect(), ()))
            },
        )?;
        self.change_shelf(store)
    }
}

impl Hierarchies {
    fn change_shelf(&self, store: &TourStore) -> TourResult {
        act(store, "The path tea/green is made, with ids from a sequence:", |store| {
            store.transact(|txn| {
                if let Some(tea) = self.shelf.node_at(txn, ["tea"])? {
                    self.shelf.delete_subtree(txn, tea)?;
                }
                let new_id = |txn: &mut _| self.ids.next(txn, &());
                let path = ["tea", "green"];
                self.shelf.create_path(txn, path, &0, InsertAt::last, new_id).map(drop)
            })?;
            Ok(vec![self.shelf_line(store)?])
        })?;
        act(store, "Teas are put in the order of their prices: (a sorted place)", |store| {
            store.transact(|txn| {
                let green = self.shelf.node_at(txn, ["tea", "green"])?;
                for (name, price) in [("sencha", 9), ("matcha", 30), ("bancha", 6)] {
                    let place = self
                        .shelf
                        .sorted_place(&*txn, green, None, |node| Ok(node.value()?.cmp(&price)))?;
                    let id = self.ids.next(txn, &())?;
                    self.shelf.insert(txn, id, name, &price, place)?;
                }
                Ok(())
            })?;
            Ok(vec![self.shelf_line(store)?])
        })?;
        act(store, "Room for 100,000 teas before the first: (relabelled in steps)", |store| {
            let green = self.shelf.node_at(&store.snapshot()?, ["tea", "green"])?;
            let place = InsertAt::first(green);
            let go_on = |_: &_| ControlFlow::Continue(());
            let done = self.shelf.make_room(store, "shelf", place, 100_000, go_on)?;
            let state = if done.finished { "made" } else { "stopped" };
            Ok(vec![format!("{state}; {}", self.shelf_line(store)?)])
        })
    }

    fn shelf_line(&self, store: &TourStore) -> Result<String> {
        let snapshot = store.snapshot()?;
        let nodes = self.shelf.descendants(&snapshot, None, ..)?;
        let names = nodes.map(|visit| Ok(visit?.node.name()?.to_owned()));
        Ok(names.collect::<Result<Vec<_>>>()?.join(", "))
    }
}

/// The parent of a subtree, and the subtree.
type Piece = (Option<NodeId>, NestedNode<Size>);

/// Divides trees into subtrees that fit into a transaction of every store. Each subtree comes after
/// the one that contains its parent.
fn split(parent: Option<NodeId>, trees: Vec<NestedNode<Size>>, pieces: &mut Vec<Piece>) {
    const MOST: usize = 500;
    for mut tree in trees {
        if nodes(&tree) <= MOST {
            pieces.push((parent, tree));
            continue;
        }
        let (id, below) = (tree.id, std::mem::take(&mut tree.children));
        pieces.push((parent, tree));
        split(Some(id), below.into(), pieces);
    }
}

fn nodes(tree: &NestedNode<Size>) -> usize {
    1 + tree.children.iter().map(nodes).sum::<usize>()
}

/// The files and directories; each directory is sorted by name.
fn directory_tree(data: &Path) -> TourResult<Vec<NestedNode<Option<u64>>>> {
    let path = data.join("directory-tree.tsv.gz");
    let named = |error| format!("{}: {error}", path.display());
    let packed = fs::read(&path).map_err(named)?;
    let mut text = String::new();
    MultiGzDecoder::new(&packed[..]).read_to_string(&mut text).map_err(named)?;
    let mut files = Vec::new();
    for line in text.lines() {
        let (bytes, path) = line.split_once('\t').ok_or("a line without a size")?;
        // For one file the listing contains "BAD" instead of a size.
        files.push((path.split('/').collect::<Vec<_>>(), bytes.parse().ok()));
    }
    files.sort();
    Ok(forest(files))
}

/// Countries, their regions and their cities.
fn countries(data: &Path) -> TourResult<Vec<NestedNode<u64>>> {
    let cities = cities::read(data)?.collect::<TourResult<Vec<_>>>()?;
    let path = |(_, city): &(u32, cities::City)| {
        ([city.country.clone(), city.admin1.clone(), city.name.clone()], city.population)
    };
    let mut paths: Vec<_> = cities.iter().map(path).collect();
    paths.sort();
    Ok(forest(
        paths
            .iter()
            .map(|(path, population)| (path.iter().map(String::as_str).collect(), *population))
            .collect(),
    ))
}

/// Builds the forest of sorted paths. The last name of a path is a leaf with a value, and may occur
/// several times; the other names occur once.
fn forest<V: Default>(paths: Vec<(Vec<&str>, V)>) -> Vec<NestedNode<V>> {
    let mut forest = Vec::new();
    let mut ids = 1..;
    for (path, value) in paths {
        let (mut siblings, leaf) = (&mut forest, path.len() - 1);
        let mut value = Some(value);
        for (depth, name) in path.iter().enumerate() {
            let is_new = siblings.last().is_none_or(|last: &NestedNode<V>| last.name != *name);
            if is_new || depth == leaf {
                let value = if depth == leaf { value.take() } else { None };
                siblings.push(NestedNode::new(
                    ids.next().unwrap_or_default(),
                    *name,
                    value.unwrap_or_default(),
                ));
            }
            let Some(last) = siblings.last_mut() else { break };
            siblings = &mut last.children;
        }
    }
    forest
}
