//! The evaluation of a step query: all walks advance together.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Error, Reader, Result};
use keyloom_kit::Explain;

use super::{Body, EdgeTest, Sort, Step, VertexTest, Walk};
use crate::GraphError;
use crate::expand::{Along, EDGES, expand};
use crate::keys::VertexId;
use crate::search::Searched;
use crate::view::GraphView;

/// The number of vertices that are read together.
// The backends for PostgreSQL and FoundationDB take 1,024 ranges in one request.
const VERTICES: usize = 1_024;

/// The state of a query during its evaluation.
pub(super) struct Run<'v, 'g, 'r, I: VertexId, V, E: 'static, C: Codec<E> + 'static, R> {
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

/// Walks that are set aside while others continue.
enum Aside<I> {
    /// Their places, if all walks are kept.
    Places(Vec<usize>),
    /// Their last vertices, if steps replace the walks.
    Ends(Vec<I>),
}

impl<'v, 'g, 'r, I: VertexId, V, E: 'static, C: Codec<E> + 'static, R>
    Run<'v, 'g, 'r, I, V, E, C, R>
{
    pub(super) fn new(
        view: &'v GraphView<'g, 'r, I, V, E, C, R>,
        begin: &[I],
        max_walks: usize,
        keeps_walks: bool,
    ) -> Self {
        let walk = |vertex: &I| Walk { vertex: vertex.clone(), before: None };
        let (walks, last) = (begin.iter().map(walk).collect(), (0..begin.len()).collect());
        Self { view, walks, keeps_walks, last, max_walks, explain: Explain::default() }
    }

    pub(super) fn end<T>(mut self, found: impl FnOnce(&[Walk<I>], &[usize]) -> T) -> Searched<T> {
        self.explain.keys_returned = self.last.len() as u64;
        Searched { found: found(&self.walks, &self.last), explain: self.explain }
    }

    fn none_aside(&self) -> Aside<I> {
        if self.keeps_walks { Aside::Places(Vec::new()) } else { Aside::Ends(Vec::new()) }
    }

    /// Sets the walks at these places aside.
    fn add_aside(&self, aside: &mut Aside<I>, places: &[usize]) -> Result<()> {
        let ends = places.iter().filter_map(|n| Some(self.walks.get(*n)?.vertex.clone()));
        let walks = match aside {
            Aside::Places(all) => {
                all.extend(places);
                all.len()
            }
            Aside::Ends(all) => {
                all.extend(ends);
                all.len()
            }
        };
        refuse_more(walks, self.max_walks)
    }

    /// Continues with the walks that were set aside.
    fn resume(&mut self, aside: Aside<I>) {
        match aside {
            Aside::Places(places) => self.last = places,
            Aside::Ends(ends) => {
                self.last = (0..ends.len()).collect();
                self.walks = ends.into_iter().map(|vertex| Walk { vertex, before: None }).collect();
            }
        }
    }
}

impl<I, V, E, C, R> Run<'_, '_, '_, I, V, E, C, R>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    pub(super) fn all(&mut self, steps: &[Step<'_, I, V, E>]) -> Result<()> {
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
                    return Err(misplaced("has_edge", "directly after `out`, `in_` or `both`"));
                }
                Step::Until(_) => return Err(misplaced("until", "directly after `repeat`")),
                Step::Emit => return Err(misplaced("emit", "directly after `repeat`")),
                Step::Vertex(test) => {
                    let passed = self.passed(test)?;
                    self.last = passed.0;
                }
                Step::Order(sort) => self.order(sort)?,
                Step::Dedup => {
                    let (walks, mut seen) = (&self.walks, HashSet::new());
                    self.last.retain(|n| walks.get(*n).is_some_and(|w| seen.insert(&w.vertex)));
                }
                Step::Limit(walks) => self.last.truncate(*walks),
                Step::Repeat(times, body) => {
                    let mut ends = Ends { until: None, emits: false };
                    while let Some(step) =
                        steps.next_if(|next| matches!(next, Step::Until(_) | Step::Emit))
                    {
                        match step {
                            Step::Until(test) if ends.until.is_none() => ends.until = Some(test),
                            Step::Until(_) => {
                                return Err(misplaced("until", "once; join the conditions"));
                            }
                            _ => ends.emits = true,
                        }
                    }
                    self.repeat(*times, body, &ends)?;
                }
                Step::Union(bodies) => self.union(bodies)?,
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

    fn repeat(
        &mut self,
        times: usize,
        body: &Body<'_, I, V, E>,
        ends: &Ends<'_, '_, I, V>,
    ) -> Result<()> {
        if ends.until.is_none() && !ends.emits {
            return (0..times).try_for_each(|_| self.all(body));
        }
        let mut returned = self.none_aside();
        for _ in 0..times {
            if self.last.is_empty() {
                break;
            }
            self.all(body)?;
            if ends.emits {
                self.add_aside(&mut returned, &self.last)?;
            }
            if let Some(test) = ends.until {
                let (passed, others) = self.passed(test)?;
                if !ends.emits {
                    self.add_aside(&mut returned, &passed)?;
                }
                self.last = others;
            }
        }
        self.resume(returned);
        Ok(())
    }

    fn union(&mut self, bodies: &[Body<'_, I, V, E>]) -> Result<()> {
        let mut returned = self.none_aside();
        let begin = self.last.clone();
        let mut begins = Vec::new();
        for _ in bodies {
            let mut aside = self.none_aside();
            self.add_aside(&mut aside, &begin)?;
            begins.push(aside);
        }
        for (body, begin) in bodies.iter().zip(begins) {
            self.resume(begin);
            self.all(body)?;
            self.add_aside(&mut returned, &self.last)?;
        }
        self.resume(returned);
        Ok(())
    }

    /// The walks whose last vertex passes the test, and the others.
    fn passed(&mut self, test: &VertexTest<'_, I, V>) -> Result<(Vec<usize>, Vec<usize>)> {
        let passes = self.of_vertices(|id, properties| test(id, properties.as_ref()))?;
        let passed = |n: &usize| {
            self.walks.get(*n).is_some_and(|walk| passes.get(&walk.vertex) == Some(&true))
        };
        Ok(self.last.iter().partition(|n| passed(n)))
    }

    fn order(&mut self, sort: &Sort<'_, I, V>) -> Result<()> {
        let properties = self.of_vertices(|_, properties| properties)?;
        let vertex = |n: &usize| Some((*n, &self.walks.get(*n)?.vertex));
        let with_properties =
            |(n, vertex): (usize, _)| (n, vertex, properties.get(vertex).and_then(Option::as_ref));
        let mut walks = self.last.iter().filter_map(vertex).map(with_properties).collect();
        sort(&mut walks);
        self.last = walks.into_iter().map(|(n, ..)| n).collect();
        Ok(())
    }

    /// A result for each last vertex of the walks, computed from its properties.
    fn of_vertices<T>(&mut self, result: impl Fn(&I, Option<V>) -> T) -> Result<HashMap<I, T>> {
        let walks = self.last.iter().filter_map(|n| self.walks.get(*n));
        let ids: HashSet<&I> = walks.map(|walk| &walk.vertex).collect();
        let mut ids: Vec<I> = ids.into_iter().cloned().collect();
        ids.sort_unstable();
        let mut results = HashMap::with_capacity(ids.len());
        for part in ids.chunks(VERTICES) {
            let properties = self.view.graph.vertices.get_many(self.view.reader, part)?;
            self.explain.keys_scanned += part.len() as u64;
            let all = part.iter().zip(properties);
            results.extend(all.map(|(id, properties)| (id.clone(), result(id, properties))));
        }
        Ok(results)
    }
}

/// When the walks of a repetition are returned.
struct Ends<'s, 'q, I, V> {
    until: Option<&'s VertexTest<'q, I, V>>,
    emits: bool,
}

#[cold]
fn misplaced(step: &str, why: &'static str) -> Error {
    Error::InvalidArgument { what: "the place of a step", value: step.into(), why }
}

fn refuse_more(walks: usize, bound: usize) -> Result<()> {
    match walks <= bound {
        true => Ok(()),
        false => Err(GraphError::TooManyWalks { bound }.into()),
    }
}
