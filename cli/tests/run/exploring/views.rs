//! What the views show.

use keyloom::{Lmdb, Store, Writer, pack};
use keyloom_locking::WorkQueue;
use keyloom_tables::Schema;
use serde_json::Value;

use super::{Explorer, hex, text};
use crate::support::{Directory, Person, town_hall};

/// The part with this name in an overview.
fn part(overview: &Value, id: &str) -> Value {
    let parts = overview["parts"].as_array().unwrap();
    parts.iter().find(|part| part["id"] == id).unwrap_or_else(|| panic!("{overview}")).clone()
}

#[test]
fn the_overview_names_parts_and_all_other_keys() {
    let directory = Directory::new();
    for address in [directory.lmdb(town_hall), directory.redb(town_hall)] {
        let explorer = Explorer::start(&address, &[]);
        let overview = explorer.view("overview");
        let people = part(&overview, "town hall/people");
        assert_eq!((&people["kind"], &people["state"]), (&"table".into(), &"readable".into()));
        assert_eq!(part(&overview, "town hall/people.by_town")["kind"], "index");
        let size = explorer.view(&format!("size?prefix={}", text(&people["prefix_hex"])));
        assert_eq!((&size["entries"], &size["error_percent"]), (&3.into(), &Value::Null));
        let others: Vec<_> =
            overview["others"].as_array().unwrap().iter().map(|one| text(&one["prefix"])).collect();
        assert_eq!(others, ["(\"keyloom\",)", "(\"orders\",)"]);
    }
}

#[test]
fn pages_of_keys_lose_and_repeat_no_key() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        store
            .transact(|txn| {
                (0..123).try_for_each(|id| txn.put(&pack(&("a", id)), b""))?;
                txn.put(&pack(&("b", 7)), b"")
            })
            .unwrap();
    });
    let explorer = Explorer::start(&address, &[]);
    let expected: Vec<_> = (0..123).map(|id| format!("(\"a\", {id})")).collect();
    assert_eq!(explorer.keys("(\"a\",)"), expected);
    assert_eq!(explorer.keys("(\"a\", 100..)"), expected[100..]);
    assert_eq!(explorer.keys("(_, 7)"), ["(\"a\", 7)", "(\"b\", 7)"]);
    assert_eq!(explorer.keys("").len(), 124);
    let last = explorer.view("browse?reverse=yes");
    assert_eq!(last["entries"][0]["key"], "(\"b\", 7)");
    for wrong in ["browse?select=people", "browse?after=zz", "browse?unknown=1", "entry?key=ff"] {
        assert_eq!(explorer.get(&format!("api/{wrong}")).status, 400, "{wrong}");
    }
    assert_eq!(explorer.get("api/nothing").status, 404);
    assert_eq!(explorer.get("nothing").status, 404);
}

#[test]
fn an_entry_is_decoded_and_shown_in_hexadecimal_digits() {
    let directory = Directory::new();
    let explorer = Explorer::start(&directory.lmdb(town_hall), &[]);
    let listed = explorer.view("browse?select=people");
    let rows = listed["entries"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    let ada = explorer.view(&format!("entry?key={}", text(&rows[0]["key_hex"])));
    assert_eq!(ada["value"], "{\"name\":\"Ada\",\"town\":\"London\",\"age\":36}");
    assert_eq!((&ada["part"], &ada["form"]), (&"town hall/people".into(), &"postcard".into()));
    // Postcard: a length before each text, and 1 before an optional value.
    let stored = [&[3][..], b"Ada", &[6], b"London", &[1, 36]].concat();
    assert_eq!(ada["value_hex"], hex(&stored));
    let order = pack(&("orders", 7, 2026));
    let order = explorer.view(&format!("entry?key={}", hex(&order)));
    assert_eq!((text(&order["value"]), &order["part"]), ("{\"total\": 3}".into(), &Value::Null));
}

#[test]
fn a_table_is_shown_beside_its_indexes() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        town_hall(store);
        // A record that is deleted without its table leaves an orphaned entry.
        let schema = Schema::open(store, "town hall").unwrap();
        let people = schema.table::<u32, Person>("people").unwrap();
        store.transact(|txn| txn.delete(&people.space().pack(&3_u32))).unwrap();
    });
    let explorer = Explorer::start(&address, &[]);
    let joined = explorer.view("joined?name=people.by_town");
    let rows: Vec<_> = joined["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let of = |side: &str, field: &str| text(&row[side][field]);
            (of("entry", "key"), of("record", "key"), of("record", "state"))
        })
        .collect();
    let ends = |row: &(String, String, String), entry: &str, state: &str| {
        assert!(row.0.ends_with(entry) && row.2 == state, "{row:?}");
    };
    ends(&rows[0], "\"London\", \"Ada\", 1)", "found");
    ends(&rows[1], "\"New York\", \"Grace\", 2)", "found");
    ends(&rows[2], "\"New York\", \"Jean\", 3)", "orphaned");
    assert_eq!((rows.len(), &*rows[0].1, &*rows[2].1), (3, "(-1, 1)", "(-1, 3)"));

    let key = |row: usize, side: &str| text(&joined["rows"][row][side]["key_hex"]);
    let record = explorer.view(&format!("related?key={}", key(0, "record")));
    assert_eq!(record["indexes"][0]["index"], "town hall/people.by_town");
    assert_eq!(record["indexes"][0]["entries"][0]["key"], rows[0].0);
    assert_eq!(record["indexes"][0]["entries"].as_array().unwrap().len(), 1);
    let entry = explorer.view(&format!("related?key={}", key(1, "entry")));
    assert_eq!(
        (&entry["record"]["key"], &entry["record"]["state"]),
        (&"(-1, 2)".into(), &"found".into())
    );
    let orphan = explorer.view(&format!("related?key={}", key(2, "entry")));
    assert_eq!(orphan["record"]["state"], "orphaned");
    assert_eq!(explorer.get("api/joined?name=people").status, 400);
}

#[test]
fn jobs_of_a_queue_are_listed_by_state() {
    let directory = Directory::new();
    let address = directory.lmdb(|store: &Lmdb| {
        let schema = Schema::open(store, "shop").unwrap();
        let mails = WorkQueue::<String>::open(&schema, "mails").unwrap();
        for tenant in ["ada", "grace", "jean"] {
            store.transact(|txn| mails.enqueue(txn, (tenant, tenant.to_owned()))).unwrap();
        }
        let taken = mails.dequeue(store, 2).unwrap();
        store.transact(|txn| mails.bury(txn, &taken[0], "no <route>")).unwrap();
    });
    let explorer = Explorer::start(&address, &[]);
    assert_eq!(explorer.view("overview")["queues"][0], "shop/mails");
    let queue = explorer.view("queue?name=shop/mails");
    let states = queue["states"].as_array().unwrap();
    for (state, name) in states.iter().zip(["waiting", "leased", "dead"]) {
        assert_eq!((&state["state"], &state["more"]), (&name.into(), &false.into()));
        let [job] = &state["jobs"].as_array().unwrap()[..] else { panic!("{state}") };
        assert_eq!(job["state"], name);
        let error = if name == "dead" { "no <route>".into() } else { Value::Null };
        assert_eq!(job["error"], error, "{job}");
    }
}
