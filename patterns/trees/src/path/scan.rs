//! Paths in keys, and scans for a pattern.

use std::fmt;
use std::ops::Deref;

use keyloom::key::{Unpacker, display};
use keyloom::value::Codec;
use keyloom::{Entry, Error, KeyBuf, KeyRange, Order, Pack, Reader, Result, Subspace, Unpack};
use keyloom_kit::{Continuation, Explain, Fnv, InOrder, Page, Reading, Scan, Walk, scan};

use super::label_path::LabelPath;
use super::pattern::PathPattern;
use super::trail::{Outcome, Trail, literal_range};

/// The keys of a subspace that begin with a path, one string per label; see the [module](super).
///
/// After the path, a key ends or continues with an element that is not a string. The keys may
/// belong to a [`Table`](keyloom_tables::Table) with record keys of type [`LabelPath`], to a
/// [`PathHierarchy`](super::PathHierarchy), or to the program.
///
/// ```
/// use keyloom::{Memory, Store, Subspace};
/// use keyloom_tables::Table;
/// use keyloom_trees::path::{LabelPath, Lquery, Paths};
/// let topics = Table::<LabelPath, u32>::new(&Subspace::new("topics"));
/// let store = Memory::new();
/// let all = ["Top", "Top.Hobbies.Astronomy", "Top.Science", "Top.Science.Astronomy.Stars"];
/// for (n, path) in (0..).zip(all) {
///     store.transact(|txn| topics.put(txn, &path.parse()?, &n))?;
/// }
/// let paths = Paths::new(topics.space());
/// let snapshot = store.snapshot()?;
/// let pattern = "Top.*{1}.Astro*.*".parse::<Lquery>()?.into();
/// let found = paths.matching(&snapshot, &pattern)?;
/// let found =
///     found.map(|found| Ok(found?.path()?.to_string())).collect::<keyloom::Result<Vec<_>>>()?;
/// assert_eq!(found, ["Top.Hobbies.Astronomy", "Top.Science.Astronomy.Stars"]);
/// # Ok::<(), keyloom::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Paths {
    space: Subspace,
}

impl Paths {
    /// The paths at the start of the keys of `space`.
    pub fn new(space: &Subspace) -> Self {
        Self { space: space.clone() }
    }

    /// The subspace of the keys.
    pub fn space(&self) -> &Subspace {
        &self.space
    }

    /// The key of a path followed by `rest`. `rest` is `()`, or elements the first of which is not
    /// a string.
    ///
    /// ```
    /// use keyloom::Subspace;
    /// use keyloom_trees::path::Paths;
    /// let space = Subspace::new("tags");
    /// assert_eq!(Paths::new(&space).key(&"a.b".parse()?, 7), space.pack(&("a", "b", 7)));
    /// # Ok::<(), keyloom_trees::path::PathError>(())
    /// ```
    pub fn key(&self, path: &LabelPath, rest: impl Pack) -> KeyBuf {
        self.space.child(path).pack(&rest)
    }

    /// Returns the keys whose paths match `pattern`, with their values, in the requested order.
    ///
    /// This is a skip scan: it reads the range of the literal prefix of the pattern. After a key
    /// that does not match, it continues at the next key that can match. Costs 1 range, the
    /// matches, and for each gap at most 16 steps and 1 range; see [`Scan::explain`].
    ///
    /// # Errors
    /// Any error of the store. The iterator also returns an error if a label is not valid text.
    pub fn matching<'r, 'p, R: Reader, N: Into<InOrder<&'p PathPattern>>>(
        &self,
        reader: &'r R,
        pattern: N,
    ) -> Result<impl Scan<Item = Result<PathMatch<R::Bytes<'r>>>> + use<'r, 'p, R, N>> {
        let InOrder { of: pattern, order } = pattern.into();
        PathMatches::scan(reader, &self.space, pattern, literal_range(pattern, &self.space), order)
    }

    /// Returns a page of [`matching`](Paths::matching): at most `limit` keys after the continuation
    /// `after`.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, Writer};
    /// use keyloom_trees::path::{Lquery, Paths};
    /// let paths = Paths::new(&Subspace::new("paths"));
    /// let store = Memory::new();
    /// for path in ["a.x", "a.y", "b.x", "c.d.x"] {
    ///     store.transact(|txn| txn.put(&paths.key(&path.parse()?, ()), b""))?;
    /// }
    /// let snapshot = store.snapshot()?;
    /// let pattern = "*.x".parse::<Lquery>()?.into();
    /// let one = paths.page(&snapshot, &pattern, 2, None)?;
    /// let two = paths.page(&snapshot, &pattern, 2, one.next.as_ref())?;
    /// assert_eq!(two.items[0].path()?.to_string(), "c.d.x");
    /// assert!(two.next.is_none());
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the continuation belongs to another query; any error of the
    /// store; an error if a label is not valid text.
    pub fn page<'r, 'p, R: Reader>(
        &self,
        reader: &'r R,
        pattern: impl Into<InOrder<&'p PathPattern>>,
        limit: usize,
        after: Option<&Continuation>,
    ) -> Result<Page<PathMatch<R::Bytes<'r>>>> {
        let InOrder { of: pattern, order } = pattern.into();
        // The continuation is the key, prefixed with an id of the pattern and the subspace, so that
        // no other query accepts it.
        let answers = Subspace::new(&pattern_id(pattern)).child(self.space.prefix());
        let whole = answers.self_and_children();
        let mut range = literal_range(pattern, &self.space);
        if let Some(after) = after {
            let last = after.last_key(&whole, order)?;
            range = range.resume(order, last.get(answers.prefix().len()..).unwrap_or_default());
        }
        let mut walk = PathMatches::scan(reader, &self.space, pattern, range, order)?;
        let items = walk.by_ref().take(limit.max(1)).collect::<Result<Vec<_>>>()?;
        let has_more = walk.next().transpose()?.is_some();
        let next = items.last().filter(|_| has_more).map(|last| {
            let last = [answers.prefix(), last.key()].concat();
            Continuation::behind(&last, &whole, order)
        });
        Ok(Page { items, next })
    }

    /// Returns the number of keys whose paths match `pattern`. Costs the same as
    /// [`matching`](Paths::matching).
    ///
    /// # Errors
    /// Any error of the store; an error if a label is not valid text.
    pub fn count(&self, reader: &impl Reader, pattern: &PathPattern) -> Result<u64> {
        let mut found = self.matching(reader, pattern)?;
        found.try_fold(0, |count, found| found.map(|_| count + 1))
    }
}

/// A hash that identifies a pattern.
fn pattern_id(pattern: &PathPattern) -> u64 {
    let mut hash = Fnv::new();
    hash.add(pattern.to_string().as_bytes());
    hash.finish()
}

/// The keys that a scan finds, in order.
struct PathMatches<'r, R: Reader> {
    walk: Walk<'r, R>,
    trail: Trail,
    range: KeyRange<'static>,
}

impl<'r, R: Reader> PathMatches<'r, R> {
    fn scan(
        reader: &'r R,
        space: &Subspace,
        pattern: &PathPattern,
        range: KeyRange<'_>,
        order: Order,
    ) -> Result<impl Scan<Item = Result<PathMatch<R::Bytes<'r>>>> + use<'r, R>> {
        let range = range.into_owned();
        let walk = Walk::open(reader, range.clone(), order)?;
        let trail = Trail::new(pattern, space);
        let matches = Self { walk, trail, range };
        let path_at = space.prefix().len();
        Ok(scan(matches, move |matches| {
            let found = matches.next_match().inspect_err(|_| matches.walk.end())?;
            Ok(found.map(|(key, value)| PathMatch { key, value, path_at }))
        }))
    }

    fn next_match(&mut self) -> Result<Option<Entry<R::Bytes<'r>>>> {
        let mut entry = self.walk.step()?;
        while let Some((key, _)) = &entry {
            if self.trail.go_to(key)? == Outcome::Match {
                self.walk.explain.keys_returned += 1;
                return Ok(entry);
            }
            let rest = self.trail.rest(self.walk.order());
            let rest = rest.map(|rest| rest.intersect(self.range.clone()));
            entry = match rest.filter(|rest| rest.normalized().is_some()) {
                Some(rest) => self.walk.leave(rest)?,
                None => {
                    self.walk.end();
                    None
                }
            };
        }
        Ok(None)
    }
}

impl<R: Reader> Reading for PathMatches<'_, R> {
    fn reads(&self) -> Explain {
        self.walk.explain
    }
}

/// A key that matches a pattern, and its value.
#[derive(Clone, Debug)]
pub struct PathMatch<B> {
    key: B,
    value: B,
    path_at: usize,
}

impl<B: Deref<Target = [u8]>> PathMatch<B> {
    /// The whole key.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The value.
    pub fn value(&self) -> &[u8] {
        &self.value
    }

    /// Key and value, as returned by the reader.
    pub fn into_entry(self) -> Entry<B> {
        (self.key, self.value)
    }

    /// The path.
    ///
    /// # Errors
    /// [`Error::At`] with the key, if a label is not valid text.
    pub fn path(&self) -> Result<LabelPath> {
        self.parts().map(|(path, _)| path)
    }

    /// The elements after the path in the key.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, Writer};
    /// use keyloom_trees::path::{Lquery, Paths};
    /// let paths = Paths::new(&Subspace::new("readings"));
    /// let store = Memory::new();
    /// store.transact(|txn| txn.put(&paths.key(&"hall.lamp".parse()?, 1_700), b"on"))?;
    /// let snapshot = store.snapshot()?;
    /// let pattern = "hall.*".parse::<Lquery>()?.into();
    /// let found = paths.matching(&snapshot, &pattern)?.next().transpose()?;
    /// let found = found.expect("it is there");
    /// assert_eq!((found.path()?.to_string(), found.rest::<i64>()?), ("hall.lamp".into(), 1_700));
    /// assert_eq!(found.value(), b"on");
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::At`] with the key, if the rest is not a `T`.
    pub fn rest<'k, T: Unpack<'k>>(&'k self) -> Result<T> {
        let (_, rest_at) = self.parts()?;
        let rest = self.key.get(rest_at..).unwrap_or_default();
        keyloom::unpack(rest).map_err(|error| Error::from(error).at(&self.key))
    }

    /// The value, decoded with the codec `C` of a table.
    ///
    /// ```
    /// use keyloom::{Memory, Store, Subspace, value::Postcard};
    /// use keyloom_tables::Table;
    /// use keyloom_trees::path::{LabelPath, Lquery, Paths};
    /// let topics = Table::<LabelPath, u32>::new(&Subspace::new("topics"));
    /// let store = Memory::new();
    /// store.transact(|txn| topics.put(txn, &"Top.Science".parse()?, &7))?;
    /// let snapshot = store.snapshot()?;
    /// let pattern = "*.Science".parse::<Lquery>()?.into();
    /// let found = Paths::new(topics.space()).matching(&snapshot, &pattern)?;
    /// let records: Result<Vec<u32>, _> =
    ///     found.map(|found| found?.record::<Postcard, _>()).collect();
    /// assert_eq!(records?, [7]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::At`] with the key, if the value is not a `V`.
    pub fn record<C: Codec<V>, V>(&self) -> Result<V> {
        C::decode(&self.value).map_err(|error| error.at(&self.key))
    }

    /// The path, and the offset of its end in the key.
    fn parts(&self) -> Result<(LabelPath, usize)> {
        let path = self.key.get(self.path_at..).unwrap_or_default();
        let mut input = Unpacker::new(path);
        let labels = super::trail::labels(&mut input, path);
        let labels = labels.map_err(|error| Error::from(error).at(&self.key))?;
        Ok((LabelPath { labels }, self.path_at + input.offset()))
    }
}

impl<B: Deref<Target = [u8]>> fmt::Display for PathMatch<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path() {
            Ok(path) => path.fmt(f),
            Err(_) => display(&self.key).fmt(f),
        }
    }
}
