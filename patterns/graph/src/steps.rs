//! Step-by-step traversal queries with the step names of Gremlin.
//!
//! Each step is evaluated for all walks at once. A remote store reads the edges of up to 1,024
//! vertices in one round trip, and the properties of up to 1,024 vertices in another. A vertex that
//! many walks have reached is read once.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Error, Pack, Reader, Result};
use keyloom_kit::Explain;

use crate::GraphError;
use crate::direction::Direction;
use crate::expand::{Along, EDGES, Hop, expand};
use crate::keys::VertexId;
use crate::search::Searched;
use crate::view::GraphView;

/// The default for the largest number of walks that a query keeps.
// All walks are kept in memory, and their number can multiply at each step.
const WALKS: usize = 1_000_000;
/// The number of vertices that are read together.
// The backends for PostgreSQL and FoundationDB take 1,024 ranges in one request.
const VERTICES: usize = 1_024;

type EdgeTest<'q, I, E> = Box<dyn Fn(&Hop<'_, I, E>) -> bool + 'q>;
type VertexTest<'q, I, V> = Box<dyn Fn(&I, &V) -> bool + 'q>;

enum Step<'q, I, V, E> {
    Move(Along),
    /// Keeps walks whose last edge passes the test.
    Edge(EdgeTest<'q, I, E>),
    Vertex(VertexTest<'q, I, V>),
    Dedup,
    Limit(usize),
    Repeat(usize, Vec<Step<'q, I, V, E>>),
}

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
        self.step(Step::Vertex(Box::new(test)))
    }

    /// Keeps the first walk that reached each vertex.
    #[must_use]
    pub fn dedup(self) -> Self {
        self.step(Step::Dedup)
    }

    /// Keeps the first `walks` walks. Directly after a step along edges, `limit` also bounds the
    /// reads of that step: for each vertex, direction and label, up to 128 edges at first, and at
    /// most about nine times the limit.
    #[must_use]
    pub fn limit(self, walks: usize) -> Self {
        self.step(Step::Limit(walks))
    }

    /// Repeats the steps that `body` adds, `times` times.
    #[must_use]
    pub fn repeat(mut self, times: usize, body: impl FnOnce(Self) -> Self) -> Self {
        let before = std::mem::take(&mut self.steps);
        let mut repeated = body(self);
        let body = std::mem::replace(&mut repeated.steps, before);
        repeated.step(Step::Repeat(times, body))
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
    /// [`GraphError::TooManyWalks`]; [`Error::InvalidArgument`] for a [`has_edge`](Steps::has_edge)
    /// that does not follow a step along edges; any error of the store; an error if an edge or a
    /// vertex does not decode.
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
        let walk = |vertex: &I| Walk { vertex: vertex.clone(), before: None };
        let mut run = Run {
            view: self.view,
            walks: self.begin.iter().map(walk).collect(),
            last: (0..self.begin.len()).collect(),
            max_walks: self.max_walks,
            keeps_walks,
            explain: Explain::default(),
        };
        run.all(&self.steps)?;
        let found = found(&run.walks, &run.last);
        run.explain.keys_returned = run.last.len() as u64;
        Ok(Searched { found, explain: run.explain })
    }
}

/// The state of a query during its evaluation.
struct Run<'v, 'g, 'r, I: VertexId, V, E: 'static, C: Codec<E> + 'static, R> {
    view: &'v GraphView<'g, 'r, I, V, E, C, R>,
    /// The walks of the last step along edges; if `keeps_walks`, also the walks of all earlier
    /// steps.
    walks: Vec<Walk<I>>,
    keeps_walks: bool,
    /// The indexes of the walks that the last step kept.
    last: Vec<usize>,
    max_walks: usize,
    explain: Explain,
}

impl<I, V, E, C, R> Run<'_, '_, '_, I, V, E, C, R>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    fn all(&mut self, steps: &[Step<'_, I, V, E>]) -> Result<()> {
        let mut steps = steps.iter().peekable();
        while let Some(step) = steps.next() {
            match step {
                Step::Move(along) => {
                    let mut tests = Vec::new();
                    while let Some(Step::Edge(test)) =
                        steps.next_if(|next| matches!(next, Step::Edge(_)))
                    {
                        tests.push(test);
                    }
                    let limit = match steps.peek() {
                        Some(Step::Limit(walks)) => *walks,
                        _ => usize::MAX,
                    };
                    self.follow(along, &tests, limit)?;
                }
                Step::Edge(_) => {
                    return Err(Error::InvalidArgument {
                        what: "the step `has_edge`",
                        value: "without an edge before it".into(),
                        why: "let it stand directly after `out`, `in_` or `both`",
                    });
                }
                Step::Vertex(test) => self.keep_vertices(test)?,
                Step::Dedup => {
                    let (walks, mut seen) = (&self.walks, HashSet::new());
                    self.last.retain(|n| walks.get(*n).is_some_and(|w| seen.insert(&w.vertex)));
                }
                Step::Limit(walks) => self.last.truncate(*walks),
                Step::Repeat(times, body) => (0..*times).try_for_each(|_| self.all(body))?,
            }
        }
        Ok(())
    }

    /// Continues every walk along each of its edges, in the order of the walks.
    fn follow(&mut self, along: &Along, tests: &[&EdgeTest<'_, I, E>], limit: usize) -> Result<()> {
        let before = std::mem::take(&mut self.last);
        let (begin, walks) = (self.walks.len(), &self.walks);
        let mut places = HashMap::<&I, usize>::new();
        let mut vertices = Vec::new();
        for walk in before.iter().filter_map(|n| walks.get(*n)) {
            places.entry(&walk.vertex).or_insert_with(|| {
                vertices.push(walk.vertex.clone());
                vertices.len() - 1
            });
        }
        let mut targets = vec![Vec::new(); vertices.len()];
        // No vertex needs more than `limit` edges. So this number of vertices at a time cannot
        // exceed the allowed number of walks.
        let together = match limit <= self.max_walks {
            true => (self.max_walks / limit.max(1)).clamp(1, VERTICES),
            false => VERTICES,
        };
        let first = match along.ranges(self.view.graph) {
            1 if tests.is_empty() => limit,
            _ => EDGES,
        };
        let (mut found, mut begin_of_part) = (0, 0);
        for part in vertices.chunks(together).take_while(|_| limit > 0) {
            // Earlier parts already found some walks, so a vertex of this part needs only the rest.
            let rest = limit - found.min(limit);
            if rest == 0 {
                break;
            }
            expand(self.view, part, along, first, &mut self.explain, |place, hop| {
                let Some(own) = targets.get_mut(begin_of_part + place) else {
                    return Ok(ControlFlow::Continue(()));
                };
                if tests.iter().all(|test| test(&hop)) {
                    found += 1;
                    refuse_more(found, self.max_walks)?;
                    own.push(hop.to.clone());
                }
                match own.len() >= rest {
                    true => Ok(ControlFlow::Break(())),
                    false => Ok(ControlFlow::Continue(())),
                }
            })?;
            begin_of_part += part.len();
        }
        let mut next = Vec::new();
        for (n, walk) in before.iter().filter_map(|n| Some((*n, walks.get(*n)?))) {
            let own = places.get(&walk.vertex).and_then(|place| targets.get(*place));
            let left = limit.saturating_sub(next.len());
            let own = own.into_iter().flatten().take(left);
            next.extend(own.map(|vertex| Walk { vertex: vertex.clone(), before: Some(n) }));
            refuse_more(next.len(), self.max_walks)?;
        }
        if self.keeps_walks {
            refuse_more(begin + next.len(), self.max_walks)?;
            self.last = (begin..begin + next.len()).collect();
            self.walks.extend(next);
        } else {
            self.last = (0..next.len()).collect();
            self.walks = next;
        }
        Ok(())
    }

    /// Keeps the walks whose last vertex has properties that pass the test.
    fn keep_vertices(&mut self, test: &VertexTest<'_, I, V>) -> Result<()> {
        let mut passes = HashMap::<I, bool>::new();
        for walk in self.last.iter().filter_map(|n| self.walks.get(*n)) {
            passes.entry(walk.vertex.clone()).or_insert(false);
        }
        let mut ids: Vec<I> = passes.keys().cloned().collect();
        ids.sort_unstable();
        for part in ids.chunks(VERTICES) {
            let properties = self.view.graph.vertices.get_many(self.view.reader, part)?;
            self.explain.keys_scanned += part.len() as u64;
            for (id, properties) in part.iter().zip(properties) {
                let passed = properties.is_some_and(|properties| test(id, &properties));
                passes.insert(id.clone(), passed);
            }
        }
        let walks = &self.walks;
        self.last
            .retain(|n| walks.get(*n).is_some_and(|walk| passes.get(&walk.vertex) == Some(&true)));
        Ok(())
    }
}

fn refuse_more(walks: usize, bound: usize) -> Result<()> {
    match walks <= bound {
        true => Ok(()),
        false => Err(GraphError::TooManyWalks { bound }.into()),
    }
}
