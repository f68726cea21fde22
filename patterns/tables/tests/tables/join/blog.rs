//! Blog posts of users with a very common name, John.

use keyloom::{Memory, Metered, Reader, Result, Store, Subspace};
use keyloom_tables::join::{Joins, KeySet};
use keyloom_tables::{BatchSize, Index, Table, entry};

use keyloom_testing::TemporaryLmdb;

/// The numbers of users and posts.
#[derive(Clone, Copy)]
struct Size {
    users: u32,
    posts: u32,
}

/// Two in five users are named John.
fn name(user: u32) -> &'static str {
    ["John", "Mary", "Ada", "John", "Bob"][user as usize % 5]
}

impl Size {
    /// Some posts belong to deleted users.
    fn author(self, post: u32) -> u32 {
        post.wrapping_mul(2_654_435_761) % (self.users + self.users / 10)
    }

    /// All pairs of a John and a post, by a loop over the posts and a function that computes their
    /// authors.
    fn expected(self) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        for post in 0..self.posts {
            let author = self.author(post);
            if author < self.users && name(author) == "John" {
                found.push((author, post));
            }
        }
        found
    }
}

struct Blog {
    by_name: Index<u32, String, String>,
    users: Table<u32, String>,
    by_author: Index<u32, u32, u32>,
    posts: Table<u32, u32>,
}

impl Blog {
    fn filled(store: &impl Store, of: Size) -> Self {
        let space = Subspace::new("blog");
        let by_name = Index::new(&space.child("by_name"), |_, name: &String| entry(name));
        let by_author = Index::new(&space.child("by_author"), |_, author: &u32| entry(author));
        let users = Table::new(&space.child("users")).with(&by_name);
        let posts = Table::new(&space.child("posts")).with(&by_author);
        let mut size = BatchSize::new(10_000);
        let ids: Vec<u32> = (0..of.users).collect();
        let user = |id: &u32| (*id, name(*id).to_owned());
        size.transact_all(store, &ids, |txn, ids| users.put_many(txn, ids.iter().map(user)))
            .unwrap();
        let ids: Vec<u32> = (0..of.posts).collect();
        let post = |id: &u32| (*id, of.author(*id));
        size.transact_all(store, &ids, |txn, ids| posts.put_many(txn, ids.iter().map(post)))
            .unwrap();
        Self { by_name, users, by_author, posts }
    }

    /// A merge join in user order, which both ranges have.
    fn merged<R: Reader>(&self, reader: &R) -> Result<Vec<(u32, u32)>> {
        let johns = self.by_name.range(reader, "John")?;
        let johns = johns.map(|found| found?.record_key());
        let posts = self.by_author.range(reader, ..)?.map(|found| {
            let found = found?;
            Ok((found.parts()?, found.record_key()?))
        });
        let joined = johns.merge_join(posts, |user| *user, |(user, _)| *user);
        joined.map(|row| row.map(|(_, post)| post)).collect()
    }
}

fn three_ways_to_the_posts_of_johns(store: impl Store, of: Size) {
    let store = Metered::new(store);
    let blog = Blog::filled(&store, of);
    let snapshot = store.snapshot().unwrap();
    let mut by_author = of.expected();
    let by_post = by_author.clone();
    by_author.sort_unstable();
    assert!(by_author.len() as u32 > of.posts / 3);

    let (merged, cost) = store.measure(|_| blog.merged(&snapshot));
    assert_eq!(merged.unwrap(), by_author);
    let johns = u64::from(of.users / 5 * 2);
    assert_eq!((cost.ranges, cost.gets, cost.round_trips), (2, 0, 2));
    assert!(cost.keys_read <= johns + u64::from(of.posts), "each entry once, up to the last John");

    // A lookup of the names, in batches of posts.
    let (joined, cost) = store.measure(|_| {
        let posts = blog.posts.range(&snapshot, ..).unwrap();
        let named = posts.lookup_join(&snapshot, &blog.users, |(_, author)| *author);
        let of_johns = named.filter(|row| row.as_ref().is_ok_and(|(_, name)| **name == "John"));
        of_johns
            .map(|row| row.map(|((post, author), _)| (author, post)))
            .collect::<Result<Vec<_>>>()
    });
    assert_eq!(joined.unwrap(), by_post);
    assert_eq!((cost.ranges, cost.round_trips), (1, 1 + u64::from(of.posts.div_ceil(1_000))));

    // A hash join, if the ids of the Johns fit in memory.
    let johns = blog.by_name.range(&snapshot, "John").unwrap();
    let johns = KeySet::read(johns.map(|found| found?.record_key()), of.users as usize).unwrap();
    let posts = blog.posts.range(&snapshot, ..).unwrap();
    let (joined, cost) = store.measure(|_| {
        let of_johns = posts.semi_join(&johns, |(_, author)| *author);
        of_johns.map(|row| row.map(|(post, author)| (author, post))).collect::<Result<Vec<_>>>()
    });
    assert_eq!(joined.unwrap(), by_post);
    assert_eq!((cost.gets, cost.keys_read), (0, u64::from(of.posts)));
    let posts = blog.posts.range(&snapshot, ..).unwrap();
    let others = posts.anti_join(&johns, |(_, author)| *author).count();
    assert_eq!(others + by_post.len(), of.posts as usize);
}

#[test]
fn the_posts_of_very_many_users_are_found_three_ways_in_memory() {
    three_ways_to_the_posts_of_johns(Memory::new(), Size { users: 20_000, posts: 40_000 });
}

#[test]
fn the_posts_of_very_many_users_are_found_three_ways_on_lmdb() {
    let store = TemporaryLmdb::new();
    three_ways_to_the_posts_of_johns((*store).clone(), Size { users: 4_000, posts: 8_000 });
}
