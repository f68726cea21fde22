//! Measures how often a transaction of each pattern runs, when one to sixteen writers share a
//! container.

use std::num::NonZeroU32;

use keyloom::{Reader, Store, Subspace, Writer};
use keyloom_patterns::aggregate::{Totals, contribution};
use keyloom_patterns::sequence::{Sharded, VersionstampedLog};
use keyloom_patterns::trees::{AdjacencyList, InsertAt, NestedSets, NodeId, Tree};
use keyloom_patterns::{AppendLog, Index, Table, TimeBuckets, entry};

use crate::meeting::{Body, meet};
use crate::{FarResult, FarStore};

const WRITERS: [u64; 5] = [1, 2, 4, 8, 16];
/// The number of transactions that each writer commits.
const EACH: u64 = 50;

pub fn print(store: &FarStore, space: &Subspace) -> FarResult {
    print!("\n{:<64}", "runs per commit, by the number of writers");
    WRITERS.iter().for_each(|writers| print!(" {writers:>6}"));
    println!();
    // Each round begins with an empty subspace, or with the data of `prepare`.
    let line = |what: &str, prepare: &dyn Fn() -> FarResult, body: Body<'_>| {
        print!("{what:<64}");
        for writers in WRITERS {
            clear(store, space)?;
            prepare()?;
            print!(" {:>6.2}", meet(store, writers, EACH, body)?.runs_per_commit);
            std::io::Write::flush(&mut std::io::stdout())?;
        }
        println!();
        FarResult::Ok(())
    };
    let nothing: &dyn Fn() -> FarResult = &|| Ok(());
    let of = |name: &str| space.child(name);

    let visits = of("visits").pack(&0);
    line("one counter: read it, put it", nothing, &|txn, _, _| {
        let count = txn.counter(&visits)?;
        txn.put(&visits, &(count + 1).to_le_bytes())
    })?;
    line("one counter: add", nothing, &|txn, _, _| txn.add(&visits, 1))?;

    let (container, text) = ("all".to_owned(), "text".to_owned());
    let numbered = AppendLog::<String, String>::new(&of("numbered"));
    line("AppendLog: one sequence", nothing, &|txn, _, _| {
        numbered.append(txn, &container, &text).map(drop)
    })?;
    let sharded =
        Sharded::<String, String>::new(&of("sharded"), NonZeroU32::MIN.saturating_add(15));
    line("Sharded: 16 sequences", nothing, &|txn, writer, _| {
        sharded.append(txn, &container, writer, &text).map(drop)
    })?;
    let stamped = VersionstampedLog::<String, String>::new(&of("stamped"));
    line("VersionstampedLog", nothing, &|txn, _, _| stamped.append(txn, &container, &text))?;
    let days = TimeBuckets::<String, String>::daily(&of("days"));
    line("TimeBuckets", nothing, &|txn, _, _| days.append(txn, &container, &text).map(drop))?;

    let by_name = Index::new(&of("by_name"), |_: &(u64, u64), name: &String| entry(name));
    let people = Table::<(u64, u64), String>::new(&of("people")).with(&by_name);
    line("Table with an index: records of their own", nothing, &|txn, writer, n| {
        people.put(txn, &(writer, n), &text)
    })?;
    line("Table with an index: one record", nothing, &|txn, writer, n| {
        people.put(txn, &(0, 0), &format!("{writer} {n}"))
    })?;
    let totals = Totals::new(&of("totals"), |_, name: &String| contribution(name, 1));
    let counted = Table::<(u64, u64), String>::new(&of("counted")).with(&totals);
    line("Totals: one group", nothing, &|txn, writer, n| counted.put(txn, &(writer, n), &text))?;

    let list = AdjacencyList::<u64>::new(&of("list"));
    let root = |id: u64| list.insert_root(store, id);
    line("AdjacencyList: children of one node", &|| root(0), &|txn, writer, n| {
        list.insert(txn, node(writer, n), &text, &0, InsertAt::last(0))
    })?;
    let roots = || (0..16).try_for_each(root);
    line("AdjacencyList: children of a node for each writer", &roots, &|txn, writer, n| {
        list.insert(txn, node(writer, n), &text, &0, InsertAt::last(writer))
    })?;
    let sets = NestedSets::<u64>::new(&of("sets"));
    let roots = || (0..16).try_for_each(|id| sets.insert_root(store, id));
    line("NestedSets: children of a node for each writer", &roots, &|txn, writer, n| {
        sets.insert(txn, node(writer, n), &text, &0, InsertAt::last(writer))
    })?;
    clear(store, space)
}

fn clear(store: &FarStore, space: &Subspace) -> FarResult {
    Ok(store.transact(|txn| txn.delete_range(space.range()))?)
}

/// An id that no other writer takes.
fn node(writer: u64, n: u64) -> NodeId {
    1_000 * (writer + 1) + n
}

/// Inserts roots, below which the writers insert nodes.
trait Roots {
    fn insert_root(&self, store: &FarStore, id: u64) -> FarResult;
}

impl<T: Tree<Value = u64>> Roots for T {
    fn insert_root(&self, store: &FarStore, id: u64) -> FarResult {
        let name = format!("root {id}");
        Ok(store.transact(|txn| self.insert(txn, id, &name, &0, InsertAt::last(None)))?)
    }
}
