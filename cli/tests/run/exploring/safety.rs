//! Which requests are answered, and what hostile data cannot do.

use keyloom::{Lmdb, Store, Writer, pack};

use super::{Answer, Explorer, hex, text};
use crate::support::{Directory, orders, run};

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
    let token = path.strip_suffix('/').unwrap();
    assert_eq!(token.len(), 33, "a slash and the token");
    let port = host.strip_prefix("127.0.0.1:").unwrap();
    for own in [host.clone(), format!("localhost:{port}")] {
        let view = |path: &str| explorer.send("GET", path, &own).status;
        assert_eq!(view(&format!("{token}/api/overview")), 200, "{own}");
        assert_eq!(view("/api/overview"), 403, "{own} without the token");
    }
    for foreign in [format!("evil.example:{port}"), "localhost:1".into(), String::new()] {
        for path in ["/", "/explore.js", "/api/overview", "/nothing"] {
            let refused = explorer.send("GET", &format!("{token}{path}"), &foreign);
            assert_eq!(refused.status, 403, "{foreign} {path}");
            assert!(!refused.body.contains("keyloom"), "{}", refused.body);
        }
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        for path in ["/", "/api/overview", "/api/entry?key=fe"] {
            let refused = explorer.send(method, &format!("{token}{path}"), host);
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
    for script in [
        "explore.js",
        "bitmaps.js",
        "common.js",
        "explain.js",
        "graph.js",
        "land.js",
        "places.js",
        "save.js",
        "text.js",
        "tree.js",
    ] {
        let Answer { status, body, .. } = explorer.get(script);
        assert_eq!(status, 200, "{script}");
        for name in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!body.contains(name), "{script}: {name}");
        }
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

/// Status 0, since Ctrl-C is how the command ends.
#[cfg(unix)]
#[test]
fn an_interrupt_ends_the_explorer() {
    let directory = Directory::new();
    let mut explorer = Explorer::start(&directory.lmdb(orders), &[]);
    assert_eq!(explorer.get("").status, 200);
    // A connection that a browser keeps open does not delay the end.
    let _open = std::net::TcpStream::connect(&explorer.host).unwrap();
    let id = explorer.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(explorer.child.wait().unwrap().code(), Some(0));
}
