//! Step-by-step traversal queries with the step names of Gremlin.
//!
//! Each step is evaluated for all walks at once. A remote store reads the edges of up to 1,024
//! vertices in one round trip, and the properties of up to 1,024 vertices in another. A vertex that
//! many walks have reached is read once.

mod run;

use std::collections::BTreeMap;
use std::fmt;

use keyloom::value::Codec;
use keyloom::{Pack, Reader, Result};

use crate::direction::Direction;
use crate::expand::{Along, Hop};
use crate::keys::VertexId;
use crate::search::Searched;
use crate::view::GraphView;
use run::Run;

/// The default for the largest number of walks that a query keeps.
// All walks are kept in memory, and their number can multiply at each step.
const WALKS: usize = 1_000_000;
type EdgeTest<'q, I, E> = Box<dyn Fn(&Hop<'_, I, E>) -> bool + 'q>;
type VertexTest<'q, I, V> = Box<dyn Fn(&I, Option<&V>) -> bool + 'q>;
/// Sorts walks by their last vertices. Each walk is given as its place, its last vertex and the
/// properties of this vertex.
type Sort<'q, I, V> = Box<dyn Fn(&mut Vec<(usize, &I, Option<&V>)>) + 'q>;

enum Step<'q, I, V, E> {
    Move(Along),
    /// Keeps walks whose last edge passes the test.
    Edge(EdgeTest<'q, I, E>),
    Vertex(VertexTest<'q, I, V>),
    Dedup,
    Limit(usize),
    Order(Sort<'q, I, V>),
    Repeat(usize, Body<'q, I, V, E>),
    /// Ends a walk of the preceding `Repeat` when the last vertex of the walk passes the test.
    Until(VertexTest<'q, I, V>),
    /// Returns the walks of each round of the preceding `Repeat`.
    Emit,
    Union([Body<'q, I, V, E>; 2]),
}

type Body<'q, I, V, E> = Vec<Step<'q, I, V, E>>;

/// A walk: its last vertex, and the walk that it continues.
struct Walk<I> {
    vertex: I,
    before: Option<usize>,
}

/// A query over a graph, returned by [`GraphView::from`]. See the [module](self).
pub struct Steps<'q, 'g, 'r, I: VertexId, V, E: 'static, C: Codec<E> + 'static, R> {
    view: &'q GraphView<'g, 'r, I, V, E, C, R>,
    begin: Vec<I>,
    steps: Vec<Step<'q, I, V, E>>,
    max_walks: usize,
}

impl<I: VertexId, V, E, C: Codec<E>, R> fmt::Debug for Steps<'_, '_, '_, I, V, E, C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Steps").field("steps", &self.steps.len()).finish_non_exhaustive()
    }
}

impl<'g, 'r, I, V, E, C, R> GraphView<'g, 'r, I, V, E, C, R>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    /// A query that begins at some vertices. Reads nothing yet.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::Graph;
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let people = Graph::<String, u8>::directed(&Schema::open(&store, "people")?, "people")?;
    /// store.transact(|txn| {
    ///     for (name, age) in [("marko", 29), ("vadas", 27), ("josh", 32), ("peter", 35)] {
    ///         people.put_vertex(txn, name, &age)?;
    ///     }
    ///     for (from, label, to) in [
    ///         ("marko", "knows", "vadas"), ("marko", "knows", "josh"),
    ///         ("marko", "created", "lop"), ("josh", "created", "lop"),
    ///         ("peter", "created", "lop"),
    ///     ] {
    ///         people.put_edge(txn, from, label, to, &())?;
    ///     }
    ///     Ok(())
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let view = people.at(&snapshot)?;
    /// // Who created something together with marko, and is over 30?
    /// let with_marko = view.from(["marko"])
    ///     .out(["created"])
    ///     .in_(["created"])
    ///     .has(|id, age| id != "marko" && *age > 30)
    ///     .dedup();
    /// assert_eq!(with_marko.vertices()?.found, ["josh", "peter"]);
    /// let made = view.from(["marko"]).repeat(2, |steps| steps.out([""; 0])).group_count()?.found;
    /// assert_eq!(made["lop"], 1);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    pub fn from<'q, Q>(
        &'q self,
        vertices: impl IntoIterator<Item = &'q Q>,
    ) -> Steps<'q, 'g, 'r, I, V, E, C, R>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized + 'q,
    {
        let begin = vertices.into_iter().map(ToOwned::to_owned).collect();
        Steps { view: self, begin, steps: Vec::new(), max_walks: WALKS }
    }
}

impl<'q, I, V, E, C, R> Steps<'q, '_, '_, I, V, E, C, R>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    /// Follows the outgoing edges with one of these labels; all outgoing edges if `labels` is
    /// empty.
    #[must_use]
    pub fn out<L: Into<String>>(self, labels: impl IntoIterator<Item = L>) -> Self {
        self.along(Direction::Out, labels)
    }

    /// Follows the incoming edges with one of these labels; all incoming edges if `labels` is
    /// empty.
    #[must_use]
    pub fn in_<L: Into<String>>(self, labels: impl IntoIterator<Item = L>) -> Self {
        self.along(Direction::In, labels)
    }

    /// Follows edges in both directions with one of these labels; all edges if `labels` is empty.
    #[must_use]
    pub fn both<L: Into<String>>(self, labels: impl IntoIterator<Item = L>) -> Self {
        self.along(Direction::Both, labels)
    }

    fn along<L: Into<String>>(
        self,
        direction: Direction,
        labels: impl IntoIterator<Item = L>,
    ) -> Self {
        self.step(Step::Move(Along::new(Some(direction), labels)))
    }

    /// Keeps the walks whose last edge passes `test`. Must directly follow [`out`](Steps::out),
    /// [`in_`](Steps::in_), [`both`](Steps::both) or another `has_edge`.
    #[must_use]
    pub fn has_edge(self, test: impl Fn(&Hop<'_, I, E>) -> bool + 'q) -> Self {
        self.step(Step::Edge(Box::new(test)))
    }

    /// Keeps the walks whose last vertex has properties that pass `test`. A vertex that is not in
    /// the table of vertices does not pass. Costs one get per vertex, up to 1,024 in one round
    /// trip.
    #[must_use]
    pub fn has(self, test: impl Fn(&I, &V) -> bool + 'q) -> Self {
        self.step(Step::Vertex(Box::new(move |id, properties| {
            properties.is_some_and(|properties| test(id, properties))
        })))
    }

    /// Keeps the first walk that reached each vertex. Within a [`repeat`](Steps::repeat) or a
    /// [`union`](Steps::union), only the walks of this round or branch are compared; use
    /// `.emit().dedup()` for all rounds.
    #[must_use]
    pub fn dedup(self) -> Self {
        self.step(Step::Dedup)
    }

    /// Keeps the first `walks` walks. Walks have the order of the walks that they continue: the
    /// edges of the first vertex come first. Directly after a step along edges, `limit` also bounds
    /// the reads of that step: for each vertex, direction and label, up to 128 edges at first, and
    /// at most about nine times the limit.
    #[must_use]
    pub fn limit(self, walks: usize) -> Self {
        self.step(Step::Limit(walks))
    }

    /// Sorts the walks by a key of their last vertex. Its properties are `None` if it is not in the
    /// table of vertices. Walks with equal keys keep their order. Costs as much as
    /// [`has`](Steps::has), and keeps the properties of all these vertices in memory.
    #[must_use]
    pub fn order_by<T: Ord>(self, key: impl Fn(&I, Option<&V>) -> T + 'q) -> Self {
        self.step(Step::Order(Box::new(move |walks| {
            walks.sort_by_cached_key(|(_, id, properties)| key(id, *properties));
        })))
    }

    /// Repeats the steps that `body` adds, `times` times. Followed by [`until`](Steps::until),
    /// returns the walks that meet a condition; followed by [`emit`](Steps::emit), those of every
    /// round.
    #[must_use]
    pub fn repeat(self, times: usize, body: impl FnOnce(Self) -> Self) -> Self {
        let (repeated, body) = self.body(body);
        repeated.step(Step::Repeat(times, body))
    }

    /// Returns only the walks of a [`repeat`](Steps::repeat) whose last vertex passes `test` after
    /// some round; such a walk takes no further round. The properties of a vertex are `None` if it
    /// is not in the table of vertices. Must follow `repeat` or its [`emit`](Steps::emit). Costs
    /// as much as [`has`](Steps::has) in every round.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::Graph;
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// // The properties of a person are the level.
    /// let staff = Graph::<String, u8>::directed(&Schema::open(&store, "staff")?, "staff")?;
    /// store.transact(|txn| {
    ///     for (name, level) in [("ada", 1), ("ben", 2), ("cy", 3), ("dee", 4)] {
    ///         staff.put_vertex(txn, name, &level)?;
    ///     }
    ///     for (from, to) in [("ada", "ben"), ("ben", "cy"), ("cy", "dee")] {
    ///         staff.put_edge(txn, from, "reports to", to, &())?;
    ///     }
    ///     Ok(())
    /// })?;
    /// let snapshot = store.snapshot()?;
    /// let view = staff.at(&snapshot)?;
    /// let managers = || view.from(["ada"]).repeat(10, |steps| steps.out(["reports to"]));
    /// // The first one of level 3 or above, and all up to that one.
    /// let first = managers().until(|_, level| level.is_some_and(|level| *level >= 3));
    /// assert_eq!(first.vertices()?.found, ["cy"]);
    /// let all = managers().emit().until(|_, level| level.is_some_and(|level| *level >= 3));
    /// assert_eq!(all.vertices()?.found, ["ben", "cy"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn until(self, test: impl Fn(&I, Option<&V>) -> bool + 'q) -> Self {
        self.step(Step::Until(Box::new(test)))
    }

    /// Also returns the walks of the earlier rounds of a [`repeat`](Steps::repeat), those of the
    /// first round first. The walks before the first round are not returned, so a `repeat` with 0
    /// rounds returns nothing. Must follow `repeat` or its [`until`](Steps::until).
    #[must_use]
    pub fn emit(self) -> Self {
        self.step(Step::Emit)
    }

    /// Continues each walk by the steps of `one`, and also by the steps of `other`: the walks of
    /// `one` first. A `union` within `other` makes three alternatives. The steps of `one` are
    /// evaluated before those of `other`, so their round trips add up.
    ///
    /// ```
    /// # use keyloom::{Memory, Store};
    /// # use keyloom_graph::Graph;
    /// # use keyloom_tables::Schema;
    /// # let store = Memory::new();
    /// # let people = Graph::<String>::directed(&Schema::open(&store, "people")?, "people")?;
    /// # store.transact(|txn| {
    /// #     people.put_edge(txn, "ada", "knows", "ben", &())?;
    /// #     people.put_edge(txn, "cy", "follows", "ada", &())
    /// # })?;
    /// # let snapshot = store.snapshot()?;
    /// # let view = people.at(&snapshot)?;
    /// let close = view.from(["ada"]).union(|s| s.out(["knows"]), |s| s.in_(["follows"]));
    /// assert_eq!(close.vertices()?.found, ["ben", "cy"]);
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    #[must_use]
    pub fn union(self, one: impl FnOnce(Self) -> Self, other: impl FnOnce(Self) -> Self) -> Self {
        let (with_one, one) = self.body(one);
        let (with_both, other) = with_one.body(other);
        with_both.step(Step::Union([one, other]))
    }

    /// The steps that `add` adds.
    fn body(mut self, add: impl FnOnce(Self) -> Self) -> (Self, Body<'q, I, V, E>) {
        let before = std::mem::take(&mut self.steps);
        let mut added = add(self);
        let body = std::mem::replace(&mut added.steps, before);
        (added, body)
    }

    /// Sets the largest number of walks at a time; a query that would have more returns an error.
    /// Default: 1,000,000, which bounds the memory. For [`paths`](Steps::paths), the walks of all
    /// steps count, since each path consists of them.
    #[must_use]
    pub fn max_walks(mut self, walks: usize) -> Self {
        self.max_walks = walks;
        self
    }

    fn step(mut self, step: Step<'q, I, V, E>) -> Self {
        self.steps.push(step);
        self
    }

    /// The last vertex of each walk. If several walks reached a vertex, it is returned once for
    /// each of them.
    ///
    /// # Errors
    /// [`TooManyWalks`](crate::GraphError::TooManyWalks);
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for a
    /// [`has_edge`](Steps::has_edge) that does not follow a step along edges, and for an
    /// [`until`](Steps::until) or [`emit`](Steps::emit) that does not follow a repetition; any
    /// error of the store; an error if an edge or a vertex does not decode.
    pub fn vertices(&self) -> Result<Searched<Vec<I>>> {
        self.run(false, |all, last| {
            last.iter().filter_map(|n| Some(all.get(*n)?.vertex.clone())).collect()
        })
    }

    /// The vertices of each walk, from the first to the last.
    ///
    /// # Errors
    /// The errors of [`vertices`](Steps::vertices).
    pub fn paths(&self) -> Result<Searched<Vec<Vec<I>>>> {
        self.run(true, |all, last| {
            let path = |n: &usize| {
                let mut path = Vec::new();
                let mut at = Some(*n);
                while let Some(walk) = at.and_then(|n| all.get(n)) {
                    path.push(walk.vertex.clone());
                    at = walk.before;
                }
                path.reverse();
                path
            };
            last.iter().map(path).collect()
        })
    }

    /// The number of walks.
    ///
    /// # Errors
    /// The errors of [`vertices`](Steps::vertices).
    pub fn count(&self) -> Result<Searched<usize>> {
        self.run(false, |_, last| last.len())
    }

    /// For each vertex, the number of walks that end there.
    ///
    /// # Errors
    /// The errors of [`vertices`](Steps::vertices).
    pub fn group_count(&self) -> Result<Searched<BTreeMap<I, u64>>> {
        self.run(false, |all, last| {
            let mut counts = BTreeMap::new();
            for walk in last.iter().filter_map(|n| all.get(*n)) {
                *counts.entry(walk.vertex.clone()).or_insert(0) += 1;
            }
            counts
        })
    }

    fn run<T>(
        &self,
        keeps_walks: bool,
        found: impl FnOnce(&[Walk<I>], &[usize]) -> T,
    ) -> Result<Searched<T>> {
        let mut run = Run::new(self.view, &self.begin, self.max_walks, keeps_walks);
        run.all(&self.steps)?;
        Ok(run.end(found))
    }
}
