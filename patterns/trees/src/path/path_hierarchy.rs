//! The path hierarchy of search engines, as an index of any table.

use std::fmt;

use keyloom::{Order, Reader, Result, Subspace, pack};
use keyloom_kit::parts::AnyParts;
use keyloom_kit::{InOrder, RecordKey, Scan, scan, starting_with};
use keyloom_tables::aggregate::Grouping;
use keyloom_tables::index::{Found, Index, IndexEntries, IndexQuery};
use keyloom_tables::stands_on_index;

use super::label_path::LabelPath;
use super::pattern::PathPattern;
use super::scan::Paths;
use super::tokenizer::PathTokenizer;

/// An index of the records of a table by paths in their texts. The records below a path, at any
/// depth, are one range.
///
/// A search engine stores one token per ancestor path of a record. This index stores one entry per
/// path, under its labels. Each token of the path is a prefix of that key:
///
/// | key | value |
/// |---|---|
/// | subspace, label, label, .., null, record key as one element | as in every [`Index`](keyloom_tables::index#layout) |
///
/// The null separates the labels from a record key that is a string. It also makes the records at a
/// path precede the records below that path.
///
/// ```
/// use keyloom::{Memory, Result, Store, Subspace};
/// use keyloom_tables::Table;
/// use keyloom_trees::path::{PathHierarchy, PathTokenizer};
/// let space = Subspace::new("files");
/// let by_path =
///     PathHierarchy::new(&space.child("by_path"), PathTokenizer::new(), |_, path: &String| {
///         Some(path.clone())
///     });
/// let files = Table::<u32, String>::new(&space.child("files")).with(&by_path);
/// let store = Memory::new();
/// let all = ["/clinton/projects/a.txt", "/clinton/projects/b.txt", "/clinton/mail", "/ada/notes"];
/// store.transact(|txn| files.put_many(txn, (0..).zip(all.map(String::from))))?;
/// let snapshot = store.snapshot()?;
/// let found = by_path.below("/clinton/projects").entries(&snapshot)?;
/// let found = found.map(|found| found?.record_key()).collect::<Result<Vec<u32>>>()?;
/// assert_eq!(found, [0, 1]);
/// let facets = by_path.facets(&snapshot, "/clinton")?;
/// let token = |path| by_path.tokenizer().token(path);
/// let facets: Vec<_> = facets.iter().map(|(path, count)| (token(path), *count)).collect();
/// assert_eq!(facets, [("/clinton/mail".into(), 1), ("/clinton/projects".into(), 2)]);
/// # Ok::<(), keyloom::Error>(())
/// ```
///
/// A record with several paths has one entry per path. Queries return and count such a record once
/// per path.
pub struct PathHierarchy<K, V> {
    index: Index<K, V, AnyParts>,
    tokenizer: PathTokenizer,
}

impl<K, V> Clone for PathHierarchy<K, V> {
    fn clone(&self) -> Self {
        Self { index: self.index.clone(), tokenizer: self.tokenizer }
    }
}

impl<K, V> PathHierarchy<K, V> {
    /// The options that determine the keys; a schema stores them.
    pub(crate) fn options(&self) -> String {
        self.tokenizer.to_string()
    }
}

impl<K, V> fmt::Debug for PathHierarchy<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { index, tokenizer } = self;
        f.debug_struct("PathHierarchy").field("index", index).field("tokenizer", tokenizer).finish()
    }
}

stands_on_index!(PathHierarchy; |_| "path hierarchy", options |paths| paths.options());

impl<K: RecordKey, V> PathHierarchy<K, V> {
    /// Creates an index in `space`. `paths` returns the path texts of a record, for example as an
    /// `Option` or a `Vec`.
    pub fn new<P, F>(space: &Subspace, tokenizer: PathTokenizer, paths: F) -> Self
    where
        P: IntoIterator<Item: AsRef<str>>,
        F: Fn(&K, &V) -> P + Send + Sync + 'static,
    {
        let index = Index::new(space, move |key: &K, value: &V| {
            let paths = paths(key, value).into_iter();
            IndexEntries::packed(paths.map(|path| {
                let path = tokenizer.path(path.as_ref());
                Subspace::new(&path).pack(&None::<bool>)
            }))
        });
        Self { index, tokenizer }
    }

    /// The tokenizer that converts texts to paths.
    pub fn tokenizer(&self) -> PathTokenizer {
        self.tokenizer
    }

    /// A query for the entries at the path of `token` and below that path. An empty `token` selects
    /// all entries. Costs the same as any [`IndexQuery`].
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_trees::path::{PathHierarchy, PathTokenizer};
    /// let by_path = PathHierarchy::new(
    ///     &Subspace::new("by_path"),
    ///     PathTokenizer::new(),
    ///     |_, path: &String| [path.clone()],
    /// );
    /// let files = Table::<u32, String>::new(&Subspace::new("files")).with(&by_path);
    /// let store = Memory::new();
    /// let all = ["/usr/bin/ls", "/usr/lib/libc", "/etc/hosts", "/usr/bin/cp"];
    /// store.transact(|txn| files.put_many(txn, (0..).zip(all.map(String::from))))?;
    /// let snapshot = store.snapshot()?;
    /// let first = by_path.below("/usr").limit(2).records(&snapshot, &files)?;
    /// assert_eq!(first.items, [(3, "/usr/bin/cp".into()), (0, "/usr/bin/ls".into())]);
    /// let rest = by_path.below("/usr").limit(2).after(first.next.as_ref()).keys(&snapshot)?;
    /// assert_eq!(rest.items, [1]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn below(&self, token: &str) -> IndexQuery<'_, K, V, AnyParts> {
        self.index.query().prefix(self.select(token))
    }

    fn select(&self, token: &str) -> LabelPath {
        self.tokenizer.path_of_token(token)
    }

    /// The children of the path of `token`, each with the number of entries at or below the child,
    /// in label order. Costs 1 range, and reads all entries below the path of `token`.
    /// [`PathTokenizer::token`] returns the text of a path.
    ///
    /// # Errors
    /// Any error of the store; an error if a key is not an entry.
    pub fn facets(&self, reader: &impl Reader, token: &str) -> Result<Vec<(LabelPath, u64)>> {
        let above = self.select(token);
        let children = Subspace::from_bytes(&pack(&above));
        let space =
            Subspace::from_bytes(&[self.index.space().prefix(), children.prefix()].concat());
        let by_child = Grouping::new(&space, 1);
        let range = starting_with("").key_range(&space);
        let entries = reader.range(range, Order::Ascending)?;
        let counts = by_child.fold(entries, 0_u64, |count, _| {
            *count += 1;
            Ok(())
        });
        let facet = |group: Result<(keyloom::KeyBuf, u64)>| {
            let (key, count) = group?;
            let mut labels = above.labels.clone();
            labels.push(by_child.group::<String>(&key)?);
            Ok((LabelPath { labels }, count))
        };
        counts.map(facet).collect()
    }

    /// The entries whose paths a pattern matches; see [`Paths::matching`].
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store, Subspace};
    /// use keyloom_tables::Table;
    /// use keyloom_trees::path::{Lquery, PathHierarchy, PathTokenizer};
    /// let hosts = PathTokenizer::new().delimiter('.').reverse();
    /// let by_host =
    ///     PathHierarchy::new(&Subspace::new("by_host"), hosts, |_, host: &String| [host.clone()]);
    /// let pages = Table::<u32, String>::new(&Subspace::new("pages")).with(&by_host);
    /// let store = Memory::new();
    /// let all = ["www.example.org", "mail.example.org", "www.example.com", "example.org"];
    /// store.transact(|txn| pages.put_many(txn, (0..).zip(all.map(String::from))))?;
    /// let snapshot = store.snapshot()?;
    /// let pattern = "*{2}.www".parse::<Lquery>()?.into();
    /// let found = by_host.matching(&snapshot, &pattern)?;
    /// let found = found.map(|found| found?.record_key()).collect::<Result<Vec<u32>>>()?;
    /// assert_eq!(found, [2, 0]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// Any error of the store. The iterator also returns an error if a label is not valid text.
    pub fn matching<'r, 'p, R: Reader, N: Into<InOrder<&'p PathPattern>>>(
        &self,
        reader: &'r R,
        pattern: N,
    ) -> Result<impl Scan<Item = Result<Found<R::Bytes<'r>, K>>> + use<'r, 'p, R, N, K, V>> {
        let space = self.index.space().clone();
        let matches = Paths::new(&space).matching(reader, pattern)?;
        Ok(scan(matches, move |matches| {
            let found = matches.next().transpose()?;
            found.map(|found| Found::new(&space, found.into_entry())).transpose()
        }))
    }
}
