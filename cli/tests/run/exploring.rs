//! `explore`: the page of a running binary, over plain HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;

use keyloom::{Lmdb, Store, Writer, pack};
use keyloom_locking::WorkQueue;
use keyloom_tables::Schema;
use serde_json::Value;

use crate::support::{Directory, Person, orders, piped, run, town_hall};

/// A running explorer, which ends with the value.
struct Explorer {
    child: Child,
    /// The IP address and the port.
    host: String,
    /// The path of the page, with a slash at its end.
    path: String,
}

impl Drop for Explorer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Explorer {
    fn start(address: &str, more: &[&str]) -> Self {
        let mut child = piped(&[&["explore", address, "--json"], more].concat());
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let url: Value = serde_json::from_str(&line).unwrap();
        let url = url["url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let (host, path) = url.split_once('/').unwrap();
        Self { child, host: host.to_owned(), path: format!("/{path}") }
    }

    fn send(&self, method: &str, path: &str, host: &str) -> Answer {
        let port = self.host.rsplit_once(':').unwrap().1;
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Answer {
        self.send("GET", &format!("{}{path}", self.path), &self.host)
    }

    /// The data of a view.
    fn view(&self, view: &str) -> Value {
        let Answer { status, body, .. } = self.get(&format!("api/{view}"));
        assert_eq!(status, 200, "{view}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// All keys that a view lists, page by page.
    fn keys(&self, select: &str) -> Vec<String> {
        let (mut keys, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.view(&format!("browse?select={}&after={after}", encoded(select)));
            keys.extend(page["entries"].as_array().unwrap().iter().map(|row| text(&row["key"])));
            match page["next"].as_str() {
                Some(next) => after = next.to_owned(),
                None => return keys,
            }
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

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

#[test]
fn hostile_keys_and_values_are_shown_as_text() {
    let directory = Directory::new();
    let (script, odd) = ("<script>alert(1)</script>", "\u{1b}[2J\u{202e}\0");
    let address = directory.lmdb(|store: &Lmdb| {
        orders(store);
        store
            .transact(|txn| {
                txn.put(&pack(&("html", script)), script.as_bytes())?;
                txn.put(&pack(&("odd", odd)), odd.as_bytes())?;
                txn.put(b"\xFE\xFF<b>", b"\xFF\xFE")?;
                txn.put(&pack("long"), &[b'x'; 1 << 20])
            })
            .unwrap();
    });
    let explorer = Explorer::start(&address, &[]);
    let listed = explorer.get("api/browse");
    assert!(!listed.body.contains(['<', '>', '\u{1b}', '\u{202e}', '\0']), "{}", listed.body);
    assert!(listed.body.len() < 20_000);
    assert!(listed.head.contains("content-type: application/json"), "{}", listed.head);
    let entry = |key: &[u8]| explorer.view(&format!("entry?key={}", hex(key)));
    let html = entry(&pack(&("html", script)));
    assert_eq!(html["key"], format!("(\"html\", \"{script}\")"));
    assert_eq!(html["value"], format!("\"{script}\""));
    assert_eq!(entry(&pack(&("odd", odd)))["value"], "\"\\u{1b}[2J\\u{202e}\\0\"");
    let raw = entry(b"\xFE\xFF<b>");
    assert_eq!((text(&raw["key"]), text(&raw["value"])), ("0xfeff3c623e".into(), "0xfffe".into()));
    let long = entry(&pack("long"));
    assert_eq!((&long["bytes"], &long["cut"]), (&(1 << 20).into(), &true.into()));
    let ending = "x… (1048576 bytes)";
    assert!(text(&long["value"]).ends_with(ending));
    assert_eq!(text(&long["value"]).chars().count(), 4_095 + ending.chars().count());
    assert_eq!(text(&long["value_hex"]), "78".repeat(2_048));
}

#[test]
fn only_reads_of_the_own_host_are_answered() {
    let directory = Directory::new();
    let explorer = Explorer::start(&directory.lmdb(orders), &[]);
    let Explorer { host, path, .. } = &explorer;
    assert_eq!(path, "/");
    let port = host.strip_prefix("127.0.0.1:").unwrap();
    for own in [host.clone(), format!("localhost:{port}")] {
        assert_eq!(explorer.send("GET", "/api/overview", &own).status, 200, "{own}");
    }
    for foreign in [format!("evil.example:{port}"), "localhost:1".into(), String::new()] {
        for path in ["/", "/explore.js", "/api/overview", "/nothing"] {
            let refused = explorer.send("GET", path, &foreign);
            assert_eq!(refused.status, 403, "{foreign} {path}");
            assert!(!refused.body.contains("keyloom"), "{}", refused.body);
        }
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        for path in ["/", "/api/overview", "/api/entry?key=fe"] {
            let refused = explorer.send(method, path, host);
            assert_eq!(refused.status, 405, "{method} {path}");
            assert!(refused.head.contains("allow: get"), "{}", refused.head);
        }
    }
}

#[test]
fn every_answer_has_the_headers_of_a_safe_page() {
    let directory = Directory::new();
    let explorer = Explorer::start(&directory.lmdb(orders), &[]);
    for path in ["", "explore.js", "explore.css", "api/overview", "api/browse?after=x", "nothing"] {
        let Answer { head, .. } = explorer.get(path);
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
        ] {
            assert!(head.contains(header), "{path}: {header}: {head}");
        }
        assert!(!head.contains("access-control"), "{head}");
    }
    let page = explorer.get("").body;
    assert!(page.starts_with("<!doctype html>") && page.contains("src=\"explore.js\""), "{page}");
    let script = explorer.get("explore.js").body;
    for name in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
        assert!(!script.contains(name), "{name}");
    }
}

#[test]
fn all_networks_need_the_token() {
    let directory = Directory::new();
    let address = directory.lmdb(orders);
    let explorer = Explorer::start(&address, &["--listen", "0.0.0.0:0"]);
    let token = explorer.path.trim_matches('/');
    assert_eq!(token.len(), 32, "{token}");
    for path in ["", "explore.js", "api/overview"] {
        assert_eq!(explorer.get(path).status, 200, "{path}");
        let wrong = token.chars().rev().collect::<String>();
        for wrong in [format!("/{path}"), format!("/{wrong}/{path}"), format!("/x{token}/{path}")] {
            assert_eq!(explorer.send("GET", &wrong, &explorer.host).status, 403, "{wrong}");
        }
    }
    let foreign = explorer.send("GET", &explorer.path, "evil.example");
    assert_eq!(foreign.status, 403);
}

#[test]
fn a_store_that_is_missing_is_an_error() {
    let directory = Directory::new();
    let path = directory.path().join("nothing");
    let ran = run(&["explore", &format!("lmdb:{}", path.display()), "--open", "no"]);
    assert!(ran.code == 2 && !path.exists(), "{}", ran.err);
    let ran = run(&["explore", &directory.lmdb(orders), "--listen", "127.0.0.1"]);
    assert!(ran.code == 2 && ran.err.contains("--listen"), "{}", ran.err);
}
