//! `watch` and `explore`: commands that run until they are stopped.

use super::pair::{Pair, Side};
use crate::watching::Watch;

pub fn all(pair: &mut Pair) {
    watch(pair);
    #[cfg(feature = "explore")]
    explore(pair);
}

fn watch(pair: &mut Pair) {
    pair.seen.insert("watch".into());
    for side in [&pair.lmdb, &pair.other] {
        if side.engine.is_shared() {
            watch_key(side);
            watch_prefix(side);
        } else {
            let refused = side.run(&["watch", "STORE", "(1,)"], "");
            let says_why = refused.err.contains("no other program");
            assert!(refused.code == 2 && says_why, "{}", refused.err);
        }
    }
    pair.entries("STORE");
}

fn put(side: &Side, key: &str, value: &str) {
    let ran = side.run(&["put", "STORE", key, value, "--write"], "");
    assert_eq!(ran.code, 0, "{}", ran.err);
}

fn rm(side: &Side, key: &str) {
    assert_eq!(side.run(&["rm", "STORE", key, "--write"], "").code, 0);
}

fn watch_key(side: &Side) {
    let key = "(\"new\", 1)";
    let (mut watch, message) = Watch::begin(&[side.address("STORE"), key, "--count=3", "--for=60"]);
    assert_eq!(message, "keyloom: watches (\"new\", 1)\n");
    put(side, "(\"other\",)", "unseen");
    put(side, key, "1");
    assert_eq!(watch.line(), "+ (\"new\", 1) = 1\n", "{:?}", side.engine);
    put(side, key, "2");
    assert_eq!(watch.line(), "~ (\"new\", 1) = 2, was 1\n", "{:?}", side.engine);
    rm(side, key);
    assert_eq!(watch.line(), "- (\"new\", 1) = 2\n", "{:?}", side.engine);
    assert_eq!(watch.code(), Some(0));
    rm(side, "(\"other\",)");
    assert_eq!(side.run(&["watch", "STORE", key, "--for=0.05", "-n1"], "").code, 1);
}

fn watch_prefix(side: &Side) {
    let arguments = ["--prefix=(\"numbers\",)", "--every=0.02", "--for=60", "--count=2"];
    let (mut watch, message) = Watch::begin(&[&[side.address("STORE")], &arguments[..]].concat());
    assert_eq!(message, "keyloom: watches 1,500 keys\n", "{:?}", side.engine);
    put(side, "(\"numbers\", 1400)", "other");
    let line = watch.line();
    assert_eq!(line, "~ (\"numbers\", 1400) = \"other\", was 1400\n", "{:?}", side.engine);
    put(side, "(\"numbers\", 1400)", "1400");
    watch.line();
    assert_eq!(watch.code(), Some(0));
}

/// Removes the ages of jobs: the second store may be read a second later.
#[cfg(feature = "explore")]
fn remove_ages(view: &mut serde_json::Value) {
    if let Some(fields) = view.as_object_mut() {
        fields.retain(|name, value| {
            name != "time" || !value.as_str().is_some_and(|age| age.ends_with(" ago"))
        });
        fields.values_mut().for_each(remove_ages);
    } else if let Some(items) = view.as_array_mut() {
        items.iter_mut().for_each(remove_ages);
    }
}

/// The views of the explorer.
#[cfg(feature = "explore")]
fn explore(pair: &mut Pair) {
    use crate::exploring::{Explorer, hex};
    use keyloom::pack;

    pair.seen.insert("explore".into());
    let sides = [&pair.lmdb, &pair.other];
    let explorers = sides.map(|side| Explorer::start(side.address("STORE"), &[]));
    for explorer in &explorers {
        // Without the token of the address, no view is shown.
        let stranger = explorer.send("GET", "/api/overview", &explorer.host);
        assert_eq!(stranger.status, 403, "{}", stranger.body);
        assert_eq!(explorer.get("").status, 200);
    }
    let key = hex(&pack(&("numbers", 1_234)));
    let person = hex(&pack(&(-1, 1)));
    let prefix = hex(&pack(&("numbers",)));
    for view in [
        "overview",
        "browse?select=people",
        "browse?reverse=yes",
        "joined?name=people.by_town",
        "joined?name=parcels.by_note",
        "queue?name=shop/mails",
        &format!("entry?key={key}"),
        &format!("related?key={person}"),
        &format!("size?prefix={prefix}"),
    ] {
        let [expected, found] = [0, 1].map(|n: usize| {
            let mut view = explorers[n].view(view);
            view.as_object_mut().unwrap().remove("is_remote");
            remove_ages(&mut view);
            sides[n].unnamed(&view.to_string())
        });
        assert_eq!(found, expected, "{view} on {:?}", pair.other.engine);
        assert!(found.len() > 20, "{view}: {found}");
    }
    let keys = explorers.each_ref().map(|explorer| explorer.keys("(\"numbers\",)"));
    assert_eq!(keys[0].len(), 1_500);
    assert!(keys[0] == keys[1], "the keys on {:?} differ", pair.other.engine);
}
