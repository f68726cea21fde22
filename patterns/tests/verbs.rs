//! Maintenance of all patterns uses the same verbs with the same signatures. The table in the
//! documentation of the crate is compared with the verbs that compile here.

#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::type_complexity)]

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;

use keyloom::{Memory, Result, Store};
use keyloom_patterns::bitmaps::{BitSliced, Bitmap};
use keyloom_patterns::documents::files::Files;
use keyloom_patterns::documents::json::Collection;
use keyloom_patterns::documents::parent_child::OnParentDelete;
use keyloom_patterns::documents::{Children, Nested};
use keyloom_patterns::entity::wide_column::{Keep, WideColumns};
use keyloom_patterns::graph::{Blocks, Graph};
use keyloom_patterns::locking::{Expiry, Locks, WorkQueue, recipes::Recipes};
use keyloom_patterns::property_index::Stamps;
use keyloom_patterns::trees::{AdjacencyList, Tree};
use keyloom_patterns::{
    Aggregates, AppendLog, Attached, DenormalizedFields, Feed, Inconsistency, Index, Links,
    Progress, PropertyIndex, RepairOptions, VersionedTable,
};

type Snapshot = <Memory as Store>::Snapshot<'static>;
type Check<T> = fn(&T, &Snapshot) -> Result<Vec<Inconsistency>>;
type OnCommit = fn(&Progress) -> ControlFlow<()>;

/// The verbs of a type, with their common signatures. Types of additional arguments are in
/// parentheses, such as the age limit of a sweep.
macro_rules! verbs {
    (@one check $type:ty) => {{
        let _: Check<$type> = <$type>::check;
        "check"
    }};
    (@one repair $type:ty $(, $extra:ty)*) => {{
        let _: fn(&$type, &Memory $(, $extra)*) -> Result<Progress> = <$type>::repair;
        let _: fn(&$type, &Memory $(, $extra)*, &RepairOptions, OnCommit) -> Result<Progress> =
            <$type>::repair_with;
        "repair"
    }};
    (@one sweep $type:ty $(, $extra:ty)*) => {{
        let _: fn(&$type, &Memory $(, $extra)*) -> Result<Progress> = <$type>::sweep;
        let _: fn(&$type, &Memory $(, $extra)*, &RepairOptions, OnCommit) -> Result<Progress> =
            <$type>::sweep_with;
        "sweep"
    }};
    ($($name:ident = $type:ty: $($verb:ident $(($($extra:ty),+))?),+;)+) => {
        BTreeMap::from([$((
            stringify!($name),
            vec![$(verbs!(@one $verb $type $($(, $extra)+)?)),+],
        )),+])
    };
}

/// The verbs of each pattern that compile.
fn compiled() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut all = verbs! {
        Feed = Feed<u32, u32>: sweep;
        Attached = Attached<Index<u32, u32, u32>>: check, repair;
        Links = Links<u32, u32>: check, repair;
        DenormalizedFields = DenormalizedFields<u32, u32, u32, u32>: check, repair;
        PropertyIndex = PropertyIndex<u32, u32, u32>: check, repair(&Stamps);
        AppendLog = AppendLog<u32, u32>: check, repair, sweep(&u32, u64);
        VersionedTable = VersionedTable<u32, u32>: sweep(u64);
        Aggregates = Aggregates<u32>: check;
        WideColumns = WideColumns<u32>: sweep(Keep);
        Bitmap = Bitmap: check;
        BitSliced = BitSliced: check;
        Nested = Nested<u32, u32, u32>: check, repair;
        Children = Children<u32, u32, u32, u32>: repair(&OnParentDelete<u32>);
        Files = Files: check, repair, sweep;
        Collection = Collection<u32>: check, repair;
        Graph = Graph<u32>: check, repair;
        Blocks = Blocks<u32>: check, repair;
        Locks = Locks: check, repair, sweep;
        Recipes = Recipes: sweep;
        WorkQueue = WorkQueue<u32>: check, repair, sweep;
        Expiry = Expiry<u32, u32>: sweep(u64);
        Tree = AdjacencyList<u32>: check, repair;
    };
    // Verbs with other signatures, for the reason in the table.
    let _: fn(&PropertyIndex<u32, u32, u32>, &Memory, &Stamps, &u32, &u32) -> Result<Progress> =
        PropertyIndex::sweep;
    all.get_mut("PropertyIndex").unwrap().push("sweep");
    all
}

/// The rows of the table in the documentation.
fn documented(docs: &str) -> BTreeMap<&str, Vec<&str>> {
    let table = docs.split("//! | pattern | check | repair | sweep |").nth(1).unwrap();
    let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("//! | "));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = cells[0].trim_start_matches(['[', '`']).split(['`', ']']).next().unwrap();
        let name = name.rsplit("::").next().unwrap();
        let verbs = ["check", "repair", "sweep"];
        let given = verbs.iter().zip(&cells[1..]).filter(|(_, cell)| cell.starts_with("yes"));
        (name, given.map(|(verb, _)| *verb).collect())
    })
    .collect()
}

#[test]
fn the_table_of_verbs_is_what_compiles() {
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/lib.rs")).unwrap();
    assert_eq!(documented(&docs), compiled());
    // The control: one verb more or less is noticed.
    let other = docs.replacen("| yes | yes |", "| yes | |", 1);
    assert_ne!(documented(&other), compiled());
}
