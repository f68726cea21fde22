//! Users, their messages, and their groups.

use std::collections::BTreeMap;

use keyloom::{Store, Subspace};
use keyloom_tables::join::Links;
use keyloom_tables::{Index, IndexEntries, Table, entry};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

use keyloom_testing::ids::number;
use keyloom_testing::laws::clear;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Message {
    /// `None` for announcements of the publisher.
    pub author: Option<u16>,
    pub text: String,
}

#[derive(Clone)]
pub struct Chat {
    pub users: Table<u16, String>,
    pub by_name: Index<u16, String, String>,
    pub messages: Table<u32, Message>,
    pub by_author: Index<u32, Message, u16>,
    pub members: Links<String, u16>,
    pub space: Subspace,
}

impl Chat {
    pub fn new() -> Self {
        let space = Subspace::new("chat");
        let by_name = Index::new(&space.child("by_name"), |_, name: &String| entry(name));
        let by_author = Index::new(&space.child("by_author"), |_, m: &Message| {
            m.author.map_or(IndexEntries::none(), entry)
        });
        Self {
            users: Table::new(&space.child("users")).with(&by_name),
            messages: Table::new(&space.child("messages")).with(&by_author),
            members: Links::new(&space.child("members")),
            by_name,
            by_author,
            space,
        }
    }

    /// Puts all data in one transaction.
    pub fn fill(&self, store: &impl Store, data: &Data) {
        clear(store);
        store
            .transact(|txn| {
                self.users.put_many(txn, data.users.clone())?;
                self.messages.put_many(txn, data.messages.clone())?;
                let links = data.members.iter().map(|link| (link.clone(), ()));
                self.members.table().put_many(txn, links)
            })
            .unwrap();
    }
}

#[derive(Clone, Debug, Default)]
pub struct Data {
    pub users: BTreeMap<u16, String>,
    pub messages: BTreeMap<u32, Message>,
    pub members: Vec<(String, u16)>,
}

/// Few users and names, so that many share a name; some messages belong to deleted users.
pub fn data() -> impl Strategy<Value = Data> {
    let name = prop::sample::select(vec!["John", "Mary", "", "a\0"]).prop_map(String::from);
    let user = || (0..12u64).prop_map(|n| number(n) as u16);
    let author = prop::option::weighted(0.9, user());
    let message = (author, "[a-c]{0,2}").prop_map(|(author, text)| Message { author, text });
    let group = prop::sample::select(vec!["", "go", "go\0", "o"]).prop_map(String::from);
    let users = prop::collection::btree_map(user(), name, 0..10);
    let messages =
        prop::collection::btree_map((0..1_000u64).prop_map(|n| number(n) as u32), message, 0..30);
    let members = prop::collection::btree_set((group, user()), 0..15);
    (users, messages, members).prop_map(|(users, messages, members)| Data {
        users,
        messages,
        members: members.into_iter().collect(),
    })
}
