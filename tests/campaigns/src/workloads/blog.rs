//! Joins and denormalized fields: posts with the names of their authors, and readers who are linked
//! to authors.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;
use keyloom::{DynWriter, Memory, Result, Subspace};
use keyloom_patterns::Progress;
use keyloom_patterns::denormalize::DenormalizedFields;
use keyloom_patterns::join::{Joins, Links, Lookup};
use keyloom_patterns::{Attached, Index, Schema, Table, entry};
use serde::{Deserialize, Serialize};

use crate::Workload;

/// A record with a denormalized field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Post {
    author: u8,
    author_name: Option<String>,
}

/// Users, their posts, and the links from readers to authors.
#[derive(Clone)]
pub struct Blog {
    users: Table<u8, String>,
    by_author: Attached<Index<u16, Post, u8>>,
    posts: Table<u16, Post>,
    names: Attached<DenormalizedFields<u8, String, u16, Post>>,
    readers: Links<u8, u8>,
}

/// One operation of the patterns.
#[derive(Clone, Debug)]
pub enum Change {
    PutUser(u8, &'static str),
    /// Deletes a user, with the links in both directions.
    DeleteUser(u8),
    PutPosts(Vec<(u16, u8)>),
    DeletePost(u16),
    Link(u8, u8),
    Unlink(u8, u8),
}

/// The expected data.
#[derive(Clone, Default)]
pub struct Model {
    users: BTreeMap<u8, String>,
    posts: BTreeMap<u16, u8>,
    readers: BTreeSet<(u8, u8)>,
}

/// So few users that each has many posts.
const USERS: u8 = 6;
const POSTS: u16 = 60;

impl Blog {
    pub fn new(schema: &Schema<'_, Memory>) -> Result<Self> {
        let (users, posts) = (schema.table("users")?, schema.table("posts")?);
        let by_author =
            schema.index(&posts, "by_author", 1, |_, post: &Post| entry(post.author))?;
        let names = schema.derive(&users, "names", 1, |space| {
            let name = |name: &String| name.clone();
            let set = |post: &mut Post, _: &u8, name| post.author_name = name;
            // A limit at which both ways occur: a refresh at once, and a mark.
            Ok(DenormalizedFields::in_schema(space, &users, &by_author, name, set)?.inline(4))
        })?;
        Ok(Self { users, by_author, posts, names, readers: Links::new(&Subspace::new("readers")) })
    }

    /// Propagates the remaining changes, in steps of the same transaction.
    fn propagate(&self, txn: &mut DynWriter<'_>) -> Result<()> {
        let mut done = Progress::default();
        while !done.finished {
            done = self.names.at(txn)?.propagate_batch(txn, 3, done)?;
        }
        Ok(())
    }
}

impl Workload for Blog {
    type Operation = Change;
    type Model = Model;

    fn name(&self) -> &'static str {
        "blog"
    }

    fn records(&self) -> Vec<Subspace> {
        // No check can derive the expected marks.
        vec![self.users.space().clone(), self.posts.space().clone(), self.names.space()]
    }

    fn derived(&self) -> Vec<Subspace> {
        vec![self.by_author.space(), Subspace::new("readers")]
    }

    fn operation(&self, rng: &mut Rng) -> Change {
        let (user, other, post) = (rng.u8(..USERS), rng.u8(..USERS), rng.u16(..POSTS));
        match rng.u8(..12) {
            0..3 => {
                Change::PutUser(user, rng.choice(["", "John", "Mary", "a\0"]).unwrap_or_default())
            }
            3 => Change::DeleteUser(user),
            4..8 => Change::PutPosts(
                (0..rng.usize(1..8)).map(|_| (rng.u16(..POSTS), rng.u8(..USERS))).collect(),
            ),
            8 => Change::DeletePost(post),
            9..11 => Change::Link(user, other),
            _ => Change::Unlink(user, other),
        }
    }

    fn perform(&self, operation: &Change, txn: &mut DynWriter<'_>) -> Result<()> {
        match operation {
            Change::PutUser(id, name) => self.users.put(txn, id, &(*name).to_owned())?,
            Change::DeleteUser(id) => {
                self.users.delete(txn, id)?;
                self.readers.unlink_left(txn, id, usize::from(USERS))?;
                self.readers.unlink_right(txn, id, usize::from(USERS))?;
            }
            Change::PutPosts(posts) => {
                let post =
                    |(id, author): &(u16, u8)| (*id, Post { author: *author, author_name: None });
                self.names.at(txn)?.put_many(txn, posts.iter().map(post))?;
            }
            Change::DeletePost(id) => drop(self.posts.delete(txn, id)?),
            Change::Link(reader, author) => self.readers.link(txn, reader, author)?,
            Change::Unlink(reader, author) => drop(self.readers.unlink(txn, reader, author)?),
        }
        self.propagate(txn)
    }

    fn imitate(&self, operation: &Change, model: &mut Model) {
        match operation {
            Change::PutUser(id, name) => drop(model.users.insert(*id, (*name).to_owned())),
            Change::DeleteUser(id) => {
                model.users.remove(id);
                model.readers.retain(|(reader, author)| reader != id && author != id);
            }
            Change::PutPosts(posts) => model.posts.extend(posts.iter().copied()),
            Change::DeletePost(id) => drop(model.posts.remove(id)),
            Change::Link(reader, author) => drop(model.readers.insert((*reader, *author))),
            Change::Unlink(reader, author) => drop(model.readers.remove(&(*reader, *author))),
        }
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        let mut wrong = super::reported(&self.names.check(txn)?);
        wrong.extend(super::reported(&self.readers.check(txn)?));
        wrong.extend(super::reported(&self.by_author.check(txn)?));
        Ok(wrong)
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        // The denormalized fields, the join and the model must agree.
        let posts = self.posts.range(txn, ..)?;
        let lookup = Lookup::new(&self.users).batch(7).remember(3);
        let joined = posts.left_lookup_join(txn, lookup, |(_, post)| post.author);
        let mut found = Vec::new();
        for row in joined {
            let ((id, post), name) = row?;
            found.push((id, post.author, post.author_name, name.map(|name| name.to_string())));
        }
        let name = |author: &u8| model.users.get(author).cloned();
        let wanted = model.posts.iter().map(|(id, by)| (*id, *by, name(by), name(by))).collect();
        super::compare(&mut wrong, "the posts", found, wanted);
        // The posts of each reader, through the links.
        let by_author = self.by_author.at(txn)?;
        for reader in 0..USERS {
            let authors = self.readers.rights_of(txn, &reader)?;
            let seen = authors.nested_loop_join(|author| by_author.range(txn, *author));
            let seen = seen.map(|row| row?.1.record_key()).collect::<Result<Vec<u16>>>()?;
            let mut wanted = Vec::new();
            for author in 0..USERS {
                let reads = model.readers.contains(&(reader, author));
                let posts = model.posts.iter().filter(|(_, by)| reads && **by == author);
                wanted.extend(posts.map(|(id, _)| *id));
            }
            super::compare(&mut wrong, "what a reader sees", seen, wanted);
        }
        Ok(wrong)
    }

    fn rebuild(&self, model: &Model, txn: &mut DynWriter<'_>) -> Result<()> {
        self.users.put_many(txn, model.users.clone())?;
        let post = |(id, author): (&u16, &u8)| (*id, Post { author: *author, author_name: None });
        self.names.at(txn)?.put_many(txn, model.posts.iter().map(post))?;
        self.readers.table().put_many(txn, model.readers.iter().map(|link| (*link, ())))
    }
}
