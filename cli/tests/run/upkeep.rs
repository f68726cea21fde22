//! `query`, `check`, `queues`, `locks`, `completions` and `man`.

use std::time::Duration;

use keyloom::{Lmdb, Order, Reader, Store, Subspace, Writer};
use keyloom_locking::queue::{NewJob, QueueOptions};
use keyloom_locking::{Lock, LockPath, Locks, Session, WorkQueue};
use keyloom_tables::aggregate::contribution;
use keyloom_tables::schema::TableInfo;
use keyloom_tables::{Index, Schema, entry};

use crate::support::{Directory, fine, run, town_hall};

fn lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn query_lists_records_in_the_order_of_an_index() {
    let directory = Directory::new();
    for address in [directory.lmdb(town_hall), directory.redb(town_hall)] {
        let query = |more: &[&str]| fine(&[&["query", &address, "people.by_town"], more].concat());
        let all = query(&[]);
        let names: Vec<_> =
            all.lines().map(|line| line.split("\"name\":\"").nth(1).unwrap()).collect();
        let begins = |line: &&str, name: &str| line.starts_with(name);
        assert!(names.iter().zip(["Ada", "Grace", "Jean"]).all(|(l, n)| begins(l, n)), "{all}");
        assert!(query(&["(\"New York\", \"J\"..)"]).starts_with("(-1, 3) = "));
        assert_eq!(query(&["\"London\"", "--json"]).lines().count(), 1);
        assert_eq!(query(&["(\"Paris\",)"]), "");
        let last = run(&["query", &address, "people.by_town", "--reverse", "-n", "1"]);
        assert!(last.out.contains("Jean") && last.err.contains("more than 1"), "{}", last.err);
        let object = &lines(&query(&["(_, \"Ada\")", "--json"]))[0];
        assert_eq!(object["key"], "(-1, 1)");
        assert_eq!(object["entry"].as_str().unwrap().matches("Ada").count(), 1);
    }
}

#[test]
fn query_of_what_is_no_index_is_refused() {
    let directory = Directory::new();
    let address = directory.lmdb(town_hall);
    for (name, parts, reason) in [
        ("people", "_", "is not an index"),
        ("absent", "_", "the store has \"slips\""),
        ("people.by_town", "0x00", "not bytes"),
        ("people.by_town", "(", "not a tuple"),
    ] {
        let refused = run(&["query", &address, name, parts]);
        assert!(refused.code == 2 && refused.err.contains(reason), "{name}: {}", refused.err);
    }
}

/// Two tables with composite keys and indexes of all forms.
fn shop(store: &impl Store) {
    let schema = Schema::open(store, "shop").unwrap();
    let orders = schema.table::<(String, u32), String>("orders").unwrap();
    let by_note = schema.index(&orders, "by_note", 1, |_, note: &String| entry(note));
    let unique = schema.unique_index(&orders, "unique", 1, |key, _| entry((key.1, &key.0)));
    by_note.unwrap();
    unique.unwrap();
    store
        .transact(|txn| {
            for (tenant, id) in [("a", 1), ("a", 2), ("a\0", 1), ("", 0)] {
                orders.put(txn, &(tenant.into(), id), &format!("note {id}"))?;
            }
            Ok(())
        })
        .unwrap();
}

fn space_of(store: &impl Store, table: &str, derived: Option<&str>) -> Subspace {
    let tables = Schema::open(store, "shop").unwrap().tables().unwrap();
    let TableInfo { space, derived: all, .. } =
        tables.into_iter().find(|one| one.name == table).unwrap();
    match derived {
        Some(name) => all.into_iter().find(|one| one.name == name).unwrap().space,
        None => space,
    }
}

fn keys(store: &impl Store, space: &Subspace) -> Vec<Vec<u8>> {
    let snapshot = store.snapshot().unwrap();
    let all = snapshot.range(space.self_and_children(), Order::Ascending).unwrap();
    all.map(|entry| entry.unwrap().0.to_vec()).collect()
}

#[test]
fn check_finds_nothing_in_sound_stores() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        town_hall(store);
        shop(store);
    });
    let checked = run(&["check", &address]);
    assert_eq!((checked.code, &checked.out[..]), (0, ""), "{}", checked.err);
    // 3 people with entries, a note, 3 of tickets, 4 orders with two entries each.
    assert!(checked.err.contains("22 entries checked, 0 faults"), "{}", checked.err);
    // What it cannot decide is said.
    assert!(checked.err.contains("records of tickets (Upgrading<Postcard>)"), "{}", checked.err);
    assert_eq!(run(&["check", &address, "people.by_town"]).code, 0);
    assert_eq!(run(&["check", &address, "nothing"]).code, 2);
}

#[test]
fn check_says_what_it_cannot_check() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        shop(store);
        let schema = Schema::open(store, "shop").unwrap();
        let orders = schema.table::<(String, u32), String>("orders").unwrap();
        let one = |_: &(String, u32), _: &String| contribution((), 1);
        schema.totals(&orders, "all", 1, one).unwrap();
        // The same names in another schema.
        Schema::open(store, "stall").unwrap().table::<u32, u32>("orders").unwrap();
    });
    let checked = run(&["check", &address]);
    assert!(checked.err.contains("orders.all (totals)"), "{}", checked.err);
    assert!(!checked.err.contains("outside of the schemas"), "{}", checked.err);
    let refused = run(&["check", &address, "orders.all"]);
    assert!(refused.code == 2 && refused.err.contains("only its program"), "{}", refused.err);
    // A name that is in two schemas names them.
    for command in [["check", "orders"], ["ls", "orders"], ["scan", "orders"], ["query", "orders"]]
    {
        let refused = run(&[command[0], &address, command[1]]);
        let names = "write \"shop/orders\" or \"stall/orders\"";
        assert!(refused.code == 2 && refused.err.contains(names), "{}", refused.err);
    }
    assert_eq!(run(&["check", &address, "stall/orders"]).code, 0);
    let refused = run(&["query", &address, "orders.by_nte"]);
    assert!(refused.err.contains("\"orders.by_note\""), "{}", refused.err);

    let store = Lmdb::open(directory.path().join("lmdb")).unwrap();
    store.transact(|txn| txn.put(b"\xFE", b"raw")).unwrap();
    drop(store);
    let checked = run(&["check", &address]);
    assert!(checked.err.contains("keys outside of the schemas"), "{}", checked.err);
}

type Change<'c> = dyn FnMut(&[u8], Option<&[u8]>) + 'c;
type Damage<'d> = &'d dyn Fn(&mut Change<'_>, &keyloom_redb::Redb);

#[test]
fn check_finds_each_kind_of_damage() {
    let directory = Directory::new();
    let address = directory.redb(shop);
    let path = address.strip_prefix("redb:").unwrap().to_owned();
    let damage = |damage: Damage<'_>| {
        std::fs::remove_file(&path).unwrap();
        let store = keyloom_redb::Redb::open(&path).unwrap();
        shop(&store);
        let mut change = |key: &[u8], value: Option<&[u8]>| {
            store
                .transact(|txn| match value {
                    Some(value) => txn.put(key, value),
                    None => txn.delete(key),
                })
                .unwrap();
        };
        damage(&mut change, &store);
        drop(store);
        let checked = run(&["check", &address, "--json"]);
        assert_eq!(checked.code, 1, "{}{}", checked.out, checked.err);
        lines(&checked.out)
    };
    // A record without its entries leaves both dangling.
    let found = damage(&|change, store| {
        change(&keys(store, &space_of(store, "orders", None))[2], None);
    });
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|fault| fault["fault"].as_str().unwrap().contains("dangles")));
    // A record that does not decode.
    let found = damage(&|change, store| {
        change(&keys(store, &space_of(store, "orders", None))[0], Some(&[0xFF]));
    });
    assert_eq!(found.len(), 1);
    assert!(found[0]["fault"].as_str().unwrap().contains("does not decode"), "{found:?}");
    // Entries that are none: a value of another form, and a key beside it.
    let found = damage(&|change, store| {
        let space = space_of(store, "orders", Some("by_note"));
        change(&keys(store, &space)[1], Some(b""));
        change(&space.pack(&("beside",)), Some(&[0xFF, 0xFF]));
    });
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|fault| fault["name"] == "orders.by_note"), "{found:?}");
    // A key that is not a tuple.
    let found = damage(&|change, store| {
        let space = space_of(store, "orders", None);
        change(&[space.prefix(), &[0xFF]].concat(), Some(b"\x01a"));
    });
    assert!(found[0]["fault"].as_str().unwrap().contains("not a tuple"), "{found:?}");
    let limited = run(&["check", &address, "--limit", "0"]);
    assert!(limited.out.is_empty() && limited.err.contains("1 fault, 0 of them shown"));
}

#[test]
fn queues_show_dead_letters_and_overdue_jobs() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        let schema = Schema::open(store, "shop").unwrap();
        let options = QueueOptions {
            visibility: Duration::from_millis(1),
            grace: Duration::from_secs(3_600),
            ..QueueOptions::default()
        };
        let mails = WorkQueue::<String>::open_with(&schema, "mails", options).unwrap();
        let other = WorkQueue::<String>::open(&schema, "other").unwrap();
        store
            .transact(|txn| {
                for n in 0..4 {
                    mails.enqueue(txn, NewJob::new("acme\u{1b}", format!("mail {n}")))?;
                }
                other.enqueue(txn, ("acme", String::new())).map(drop)
            })
            .unwrap();
        let taken = mails.dequeue(store, 2).unwrap();
        store.transact(|txn| mails.bury(txn, &taken[0], "no such\u{202e} address")).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    });
    let listed = fine(&["queues", &address]);
    let rows: Vec<Vec<&str>> =
        listed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["shop", "mails", "2", "0", "1", "1"], "{listed}");
    assert_eq!(rows[2], ["shop", "other", "1", "0", "0", "0"], "{listed}");
    let row = &lines(&fine(&["queues", &address, "mails", "--json"]))[0];
    assert_eq!((row["dead"].as_u64(), row["waiting"].as_u64()), (Some(1), Some(2)));
    let dead = fine(&["queues", &address, "--state", "dead"]);
    assert!(dead.lines().count() == 1 && dead.contains("no such\\u202e address"), "{dead}");
    assert!(!dead.contains('\u{1b}'));
    let overdue = fine(&["queues", &address, "--state", "overdue"]);
    assert!(overdue.lines().count() == 1 && overdue.contains("1 attempts"), "{overdue}");
    assert_eq!(fine(&["queues", &address, "--state", "waiting", "-n", "2"]).lines().count(), 2);
    assert_eq!(run(&["queues", &address, "nothing"]).code, 2);
}

#[test]
fn locks_show_holders_and_waiters_with_their_leases() {
    let directory = Directory::new();
    let path = directory.path().join("lmdb");
    let address = format!("lmdb:{}", path.display());
    let store = Lmdb::open(&path).unwrap();
    let locks = Locks::open(&Schema::open(&store, "files").unwrap(), "locks").unwrap();
    let chapter = [Lock::exclusive(LockPath::of(["book", "chapter 1"]))];
    let session = Session::begin(&store, &locks, "editor \u{1b}1").unwrap();
    let guard = session.lock(&chapter).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let other = Session::begin(&store, &locks, "editor 2").unwrap();
            other.lock_within(&chapter, Duration::from_secs(60)).map(drop)
        });
        let waits = || fine(&["locks", &address]).contains("editor 2");
        while !waits() {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_locks(&address);
        guard.release().unwrap();
        waiter.join().unwrap().unwrap();
    });
}

fn assert_locks(address: &str) {
    let listed = fine(&["locks", address]);
    let waiting = listed.lines().find(|row| row.contains("editor 2")).unwrap();
    assert!(waiting.contains("waits"), "{listed}");
    let row = listed.lines().find(|row| row.contains("held")).unwrap();
    assert!(row.contains("editor \\u{1b}1") && row.contains("held"), "{listed}");
    assert!(row.contains("chapter 1") && row.contains("ends in"), "{listed}");
    let rows = lines(&fine(&["locks", address, "--json"]));
    let row = rows.iter().find(|row| row["held"] == true).unwrap();
    assert_eq!((row["held"].as_bool(), row["lease_ended"].as_bool()), (Some(true), Some(false)));
}

#[test]
fn completions_and_pages_name_every_command() {
    let (bash, page) = (fine(&["completions", "bash"]), fine(&["man"]));
    let moves =
        ["copy", "backup", "diff", "export", "import", "watch", "verify", "repair", "bench"];
    for command in ["ls", "scan", "query", "check", "queues", "locks"].into_iter().chain(moves) {
        assert!(bash.contains(command) && page.contains(command), "{command}");
        assert!(fine(&["man", command]).contains(".TH"), "{command}");
    }
    assert_eq!(run(&["man", "nothing"]).code, 2);
    assert_eq!(run(&["completions", "nothing"]).code, 2);
}

/// The pending changes of another schema's index say nothing about this one.
#[test]
fn check_of_one_schema_does_not_wait_for_another() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        shop(store);
        let other = Schema::open(store, "a shop").unwrap();
        let orders = other.table::<(String, u32), String>("orders").unwrap();
        let deferred = other.derive_deferred(&orders, "by_note", 1, |space| {
            Ok(Index::new(space, |_, note: &String| entry(note)))
        });
        let deferred = deferred.unwrap();
        store.transact(|txn| orders.put(txn, &("a".into(), 1), &"pending".into())).unwrap();
        assert_eq!(deferred.pending(&store.snapshot().unwrap()).unwrap(), 1);
        let record = &keys(store, &space_of(store, "orders", None))[0];
        store.transact(|txn| txn.delete(record)).unwrap();
    });
    let checked = run(&["check", &address, "--json"]);
    let names: Vec<_> = lines(&checked.out).iter().map(|fault| fault["name"].clone()).collect();
    assert_eq!(names, ["orders.by_note", "orders.unique"], "{}{}", checked.out, checked.err);
}
