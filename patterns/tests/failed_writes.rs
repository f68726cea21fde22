//! After a failed write of a pattern, the transaction does not commit.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use keyloom::{
    DynWriter, Error, Fault, Faulty, KeyRange, Memory, Order, Reader, Result, Store, Subspace,
    Transaction, Writer,
};
use keyloom_mutant_stores::{Flaw, MutantStore};
use keyloom_patterns::aggregate::contribution;
use keyloom_patterns::trees::{
    AdjacencyList, InsertAt, MaterializedPath, NestedSets, Tree, TreeDocument,
};
use keyloom_patterns::{
    Aggregates, AppendLog, BitSliced, Bitmap, Counters, DenseIds, Index, IndexError, Links,
    RankedIndex, Sequence, Table, TimeBuckets, Totals, VersionedTable, WideColumns, entry,
};

type Site = (String, i64);

struct Sites {
    table: Table<u32, Site>,
    totals: Totals<u32, Site, String>,
    by_name: Index<u32, Site, String>,
}

impl Sites {
    fn new() -> Self {
        let space = Subspace::new("failed writes");
        let totals = Totals::new(&space.child("totals"), |_, (_, bytes): &Site| {
            contribution("bytes", *bytes)
        });
        let ranked = RankedIndex::new(&space.child("ranked"), |_, (_, bytes): &Site| entry(bytes));
        let by_name = Index::new(&space.child("by_name"), |_, (name, _): &Site| entry(name));
        let by_name = by_name.unique();
        let table = Table::new(&space.child("sites"));
        let table = table.with(&totals).with(&ranked).with(&by_name);
        Self { table, totals, by_name }
    }
}

fn site(name: &str, bytes: i64) -> Site {
    (name.into(), bytes)
}

#[test]
fn a_caught_not_unique_is_not_committed() {
    let (store, sites) = (Memory::new(), Sites::new());
    store.transact(|txn| sites.table.put(txn, &1, &site("a.org", 5))).unwrap();
    let mut txn = store.begin().unwrap();
    sites.table.put(&mut txn, &2, &site("a.org", 7)).unwrap_err();
    sites.table.put(&mut txn, &3, &site("c.org", 9)).unwrap();
    let error = txn.commit().unwrap_err();
    assert!(matches!(error, Error::CommitRefused { .. }), "{error:?}");
    assert!(matches!(error.downcast_ref(), Some(IndexError::NotUnique(_))), "{error:?}");
    assert!(!error.is_retryable() && !error.maybe_committed());
    assert!(error.to_string().contains("read first whether the write is possible"), "{error}");
    let snapshot = store.snapshot().unwrap();
    assert_eq!(sites.totals.get(&snapshot, "bytes").unwrap(), 5);
    assert_eq!(sites.table.count(&snapshot, ..).unwrap(), 1);
}

/// The remedy in the error message: a read in the transaction avoids the failed write.
#[test]
fn a_look_in_the_transaction_avoids_the_failed_write() {
    let (store, sites) = (Memory::new(), Sites::new());
    let add = |id: u32, site: &Site| {
        store.transact(|txn| {
            let is_taken = sites.by_name.range(txn, &site.0)?.next().is_some();
            if !is_taken {
                sites.table.put(txn, &id, site)?;
            }
            Ok(!is_taken)
        })
    };
    assert!(add(1, &site("a.org", 5)).unwrap());
    assert!(!add(2, &site("a.org", 7)).unwrap());
    assert!(add(3, &site("c.org", 9)).unwrap());
    assert_eq!(sites.totals.get(&store.snapshot().unwrap(), "bytes").unwrap(), 14);
}

type Write = Box<dyn Fn(&mut DynWriter<'_>) -> Result<()>>;

fn write<T>(write: impl Fn(&mut DynWriter<'_>) -> Result<T> + 'static) -> Write {
    Box::new(move |txn| write(txn).map(drop))
}

fn of_tree(tree: impl Tree<Value = ()> + 'static) -> Write {
    let tree = std::rc::Rc::new(tree);
    write(move |txn| {
        tree.insert(txn, 1, "one", &(), InsertAt::last(None))?;
        tree.insert(txn, 2, "two", &(), InsertAt::last(None))?;
        tree.move_to(txn, 2, InsertAt::last(1))
    })
}

/// One write of each pattern, which check only their own outcome.
fn writes() -> Vec<(&'static str, Write)> {
    let space = Subspace::new("failed writes");
    let sites = Sites::new();
    let many = [(1, site("a.org", 5)), (2, site("b.org", 7))];
    let aggregates = Aggregates::<u32>::new(&space);
    let columns = WideColumns::<u32>::new(&space);
    let links = Links::<u32, u32>::new(&space);
    let versions = VersionedTable::<u32, u32>::new(&space);
    let counters = Counters::<u32>::new(&space);
    let sequence = Sequence::<u32>::new(&space);
    let enumerated = AppendLog::<u32, u32>::new(&space);
    let days = TimeBuckets::<u32, u32>::daily(&space);
    let (bitmap, integers) = (Bitmap::new(&space), BitSliced::new(&space));
    let ids = DenseIds::<u32>::new(&space);
    vec![
        ("a table", write(move |txn| sites.table.put_many(txn, &many))),
        (
            "an aggregate",
            write(move |txn| aggregates.put(txn, &1, &BTreeMap::from([("a", 1), ("b", 2)]))),
        ),
        ("wide columns", write(move |txn| columns.put(txn, &1, "family", "column", 1, b""))),
        ("links", write(move |txn| links.link(txn, &1, &2))),
        ("versions", write(move |txn| versions.create(txn, &1, 5))),
        ("counters", write(move |txn| counters.add_within(txn, &1, 1, 0..=9))),
        ("a sequence", write(move |txn| sequence.next(txn, &1))),
        ("an enumeration", write(move |txn| enumerated.append(txn, &1, &5))),
        ("time buckets", write(move |txn| days.append(txn, &1, &5))),
        ("a bitmap", write(move |txn| bitmap.insert_many(txn, [1, 1 << 20]))),
        ("integers", write(move |txn| integers.set(txn, 1, -5))),
        ("dense ids", write(move |txn| ids.assign(txn, [&7, &8]))),
        ("an adjacency list", of_tree(AdjacencyList::<()>::new(&space))),
        ("materialized paths", of_tree(MaterializedPath::<()>::new(&space))),
        ("nested sets", of_tree(NestedSets::<()>::new(&space))),
        ("a tree in a document", of_tree(TreeDocument::<()>::new(&space))),
    ]
}

fn dump(reader: &impl Reader) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let entries = reader.range(KeyRange::all(), Order::Ascending).unwrap();
    entries.map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect()
}

/// The number of operations at which `write` can fail, and how many of these errors leave an
/// inconsistency when swallowed.
fn swallowed(store: impl Store, write: &Write) -> (u64, u64) {
    let faulty = Faulty::new(store);
    let mut left = 0;
    for n in 0.. {
        let mut txn = faulty.begin().unwrap();
        faulty.fail_at(n, Fault::Error);
        let outcome = write(&mut DynWriter::new(&mut txn));
        let was_hit = faulty.operations() > n;
        faulty.clear_fault();
        if !was_hit {
            outcome.unwrap();
            return (n, left);
        }
        let committed = txn.commit();
        assert_eq!(
            committed
                .as_ref()
                .err()
                .map(|error| error.to_string().contains(&format!("operation {n} "))),
            matches!(committed, Err(Error::CommitRefused { .. })).then_some(true),
        );
        let snapshot = faulty.inner().snapshot().unwrap();
        left += u64::from(!dump(&snapshot).is_empty());
        drop(snapshot);
        faulty.inner().transact(|txn| keyloom::Writer::delete_range(txn, KeyRange::all())).unwrap();
    }
    unreachable!("one of the operations is the last")
}

#[test]
fn a_swallowed_error_of_any_write_leaves_nothing() {
    for (name, write) in writes() {
        let (errors, left) = swallowed(Memory::new(), &write);
        assert!(errors > 0 && left == 0, "{name}: {left} of {errors} errors leave something");
    }
}

/// The negative control: a store that commits despite failed writes.
#[test]
fn a_store_that_forgets_the_refusal_keeps_halves() {
    let kept = writes().into_iter().filter(|(_, write)| {
        let (_, left) = swallowed(MutantStore::new(Flaw::ForgottenRefusal), write);
        left > 0
    });
    let kept: Vec<_> = kept.map(|(name, _)| name).collect();
    assert!(kept.len() >= 8, "only {kept:?}");
}

#[test]
fn a_write_that_panicked_is_not_committed() {
    let (store, sites) = (Memory::new(), Sites::new());
    let mut txn = store.begin().unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        txn.guarded(|txn| -> Result<()> {
            txn.put(b"half", b"")?;
            sites.table.put(txn, &1, &site("a.org", 5))?;
            panic!("on purpose")
        })
    }));
    assert!(panicked.is_err());
    let error = txn.commit().unwrap_err();
    assert!(error.to_string().contains("panicked"), "{error}");
    assert!(dump(&store.snapshot().unwrap()).is_empty());
}

#[test]
fn a_conflict_that_is_swallowed_is_retried() {
    let (faulty, sites) = (Faulty::new(Memory::new()), Sites::new());
    for n in 1.. {
        faulty.fail_at(n, Fault::Conflict);
        let mut runs = 0;
        let done = faulty.transact(|txn| {
            runs += 1;
            let _swallowed = sites.table.put(txn, &1, &site("a.org", 5));
            Ok(())
        });
        faulty.clear_fault();
        done.unwrap();
        assert_eq!(sites.totals.get(&faulty.inner().snapshot().unwrap(), "bytes").unwrap(), 5);
        if runs == 1 {
            break;
        }
    }
}

// ---- every write operation is covered
// -------------------------------------------------------------------------------

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        match path.is_dir() {
            true => sources(&path, found),
            false => found.push(path),
        }
    }
}

/// A write function of a source file.
#[derive(Debug, PartialEq)]
struct WriteFn<'s> {
    name: &'s str,
    is_public: bool,
    body: &'s str,
}

impl<'s> WriteFn<'s> {
    /// The write functions in a source file.
    fn all(source: &'s str) -> Vec<Self> {
        let is_contract = source.contains("> Tree for ");
        let heads =
            source.match_indices('\n').filter_map(|(at, _)| source.split_at_checked(at + 1));
        let functions = heads.filter_map(|(_, rest)| {
            let inner = rest.trim_start_matches(' ');
            let indent = rest.len() - inner.len();
            let (head, after) = inner.split_once("fn ")?;
            let is_function = ["", "pub ", "pub(super) ", "pub(crate) "].contains(&head);
            let (signature, body) = after.split_once("{\n").filter(|_| is_function)?;
            let end = format!("\n{}}}", " ".repeat(indent));
            let body = body.split(&end).next()?.trim();
            let name = signature.split(['(', '<']).next()?;
            let is_of_contract = is_contract && indent == 4 && signature.contains("impl Writer");
            let is_public = head == "pub " || head.is_empty() && is_of_contract;
            let writers = [
                "txn: &mut impl Writer",
                "txn: &mut W",
                "txn: &mut DynWriter",
                "txn: &mut impl Transaction",
            ];
            let is_write = writers.iter().any(|writer| signature.contains(writer));
            is_write.then_some(Self { name, is_public, body })
        });
        functions.collect()
    }

    /// The body from the first use of the transaction on; the lines before it validate parameters.
    fn rest_of_body(&self) -> &'s str {
        let first = self.body.find("txn").unwrap_or_default();
        let line = self.body[..first].rfind('\n').map_or(0, |end| end + 1);
        self.body[line..].trim_start()
    }

    /// Whether the guard encloses every use of the transaction.
    fn is_guarded(&self) -> bool {
        let Some(guarded) = self.rest_of_body().strip_prefix("txn.guarded(") else {
            return false;
        };
        let mut open = 1;
        let end = guarded.char_indices().find_map(|(at, char)| {
            open += i32::from(char == '(') - i32::from(char == ')');
            (open == 0).then_some(at)
        });
        end.is_some_and(|end| !guarded[end..].contains("txn") && !guarded[end..].contains('?'))
    }

    /// Whether the body only reads with the transaction, and passes it to no other function.
    fn only_reads(&self) -> bool {
        const READS: [&str; 4] = [".get(", ".get_many(", ".first(", ".state()"];
        let mut uses = self.body.split("txn").skip(1);
        uses.all(|rest| READS.iter().any(|read| rest.starts_with(read)))
    }

    /// The function to which the body passes the transaction, if this is its only and last use.
    fn hands_over_to(&self) -> Option<&'s str> {
        let call = self.rest_of_body();
        let (before, after) = call.split_once("(txn")?;
        let once = !before.contains("txn") && !after.contains("txn");
        let above = self.body.strip_suffix(call).unwrap_or_default();
        let is_nested = above.matches('{').count() > above.matches('}').count();
        let repeats = is_nested || before.contains('|') || before.contains(" in ");
        let is_last = !after.contains(';');
        before.rsplit(['.', ':', ' ']).next().filter(|_| once && is_last && !repeats)
    }
}

/// The public functions of `writes` that may leave a partial change in a transaction.
fn bare<'s>(writes: &[WriteFn<'s>]) -> Vec<&'s str> {
    let of_guarded = writes.iter().filter(|write| write.is_guarded()).map(|write| write.name);
    let guarded: BTreeSet<&str> = of_guarded.collect();
    let is_safe = |write: &&WriteFn<'_>| {
        let hands_over = || write.hands_over_to().is_some_and(|to| guarded.contains(to));
        write.is_guarded() || write.only_reads() || hands_over()
    };
    let bare = writes.iter().filter(|write| write.is_public && !is_safe(write));
    bare.map(|write| write.name).collect()
}

#[test]
fn every_public_write_of_a_pattern_is_guarded() {
    let mut files = Vec::new();
    let mut crates = 0;
    for folder in fs::read_dir(env!("CARGO_MANIFEST_DIR")).unwrap() {
        let folder = folder.unwrap().path();
        if folder.join("Cargo.toml").exists() {
            crates += 1;
            sources(&folder.join("src"), &mut files);
        }
    }
    assert!(crates >= 9, "{crates} crates");
    let sources: Vec<String> = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let writes: Vec<WriteFn<'_>> = sources.iter().flat_map(|source| WriteFn::all(source)).collect();
    let public = writes.iter().filter(|write| write.is_public).count();
    assert!(public > 110, "{public} writes");
    assert_eq!(bare(&writes), [""; 0]);
}

#[test]
fn a_public_write_without_a_guard_is_found() {
    let source = "impl A {
    pub fn put(&self, txn: &mut impl Writer) {
        self.refuse()?;
        txn.guarded(|txn| txn.put())
    }

    pub fn put_other(&self, txn: &mut impl Writer) {
        self.refuse()?;
        self.other.put(txn).map(drop)
    }

    pub fn put_bare(&self, txn: &mut impl Writer) {
        txn.put()
    }

    pub fn put_twice(&self, txn: &mut impl Writer) {
        self.put(txn)?;
        self.put(txn)
    }

    pub fn put_each(&self, txn: &mut impl Writer) {
        self.all.iter().try_for_each(|one| self.put(txn, one))
    }

    pub fn put_in_a_loop(&self, txn: &mut impl Writer) {
        for one in self.all {
            self.put(txn, one)?
        }
    }

    pub fn read(&self, txn: &mut impl Writer) {
        txn.get(1)?;
        txn.state().remember()
    }

    pub fn read_and_hand_over(&self, txn: &mut impl Writer) {
        txn.get(1)?;
        self.half(txn)
    }

    pub fn put_and_refuse(&self, txn: &mut impl Writer) {
        self.put(txn)?;
        self.refuse()
    }

    pub fn guard_a_part(&self, txn: &mut impl Writer) {
        txn.guarded(|txn| txn.put())?;
        txn.put()
    }

    pub fn guard_and_refuse(&self, txn: &mut impl Writer) {
        txn.guarded(|txn| txn.put())?;
        self.refuse()
    }

    pub fn of_any_type<W: Writer>(&self, txn: &mut W) {
        txn.put()
    }

    pub fn of_a_dynamic_type(&self, txn: &mut DynWriter<'_>) {
        txn.put()
    }

    pub fn hand_over(&self, txn: &mut impl Writer) {
        self.half(txn)
    }

    fn half(&self, txn: &mut impl Writer) {
        txn.put()
    }
}

pub fn free(txn: &mut impl Writer) {
    txn.put()
}";
    let found = bare(&WriteFn::all(source));
    let wanted = [
        "put_bare",
        "put_twice",
        "put_each",
        "put_in_a_loop",
        "read_and_hand_over",
        "put_and_refuse",
        "guard_a_part",
        "guard_and_refuse",
        "of_any_type",
        "of_a_dynamic_type",
        "hand_over",
        "free",
    ];
    assert_eq!(found, wanted);
}
