//! Cheapest paths: Dijkstra's algorithm, A* and Yen's algorithm.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::ops::ControlFlow;

use keyloom::value::Codec;
use keyloom::{Pack, Reader, Result};
use keyloom_kit::Explain;

use crate::csr::checked_weight;
use crate::expand::Hop;
use crate::keys::{VertexId, shown};
use crate::search::{GraphSearch, Searched};
use crate::{GraphError, Path};

/// The number of open vertices that are expanded together on a remote store.
// A lower number adds round trips. A higher number expands vertices needlessly: vertices beyond the
// target, and vertices to which a cheaper path is found later.
const TOGETHER: usize = 64;

/// Vertices and edges that a search must not use: those that Yen's algorithm removes from the
/// graph.
struct Avoid<I> {
    vertices: HashSet<I>,
    edges: HashSet<(I, String, I)>,
}

impl<I> Default for Avoid<I> {
    fn default() -> Self {
        Self { vertices: HashSet::new(), edges: HashSet::new() }
    }
}

impl<I: VertexId> Avoid<I> {
    fn has<E>(&self, hop: &Hop<'_, I, E>) -> bool {
        let has_edge = || !self.edges.is_empty() && self.edges.contains(&edge(hop));
        self.vertices.contains(hop.to) || has_edge()
    }
}

/// A vertex and the number of edges on the path to it. The number is 0 if the search does not bound
/// the edges. With a bound, the cheapest path to a vertex may leave too few edges for the rest, so
/// each number of edges is a separate state.
type State<I> = (I, usize);

/// An open state, ordered so that the heap returns the smallest estimate first, and the smaller
/// state for equal estimates.
struct Open<I> {
    estimate: f64,
    cost: f64,
    state: State<I>,
}

impl<I: Ord> Ord for Open<I> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.estimate.total_cmp(&self.estimate).then_with(|| other.state.cmp(&self.state))
    }
}

impl<I: Ord> PartialOrd for Open<I> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<I: Ord> PartialEq for Open<I> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<I: Ord> Eq for Open<I> {}

/// A path, and for each of its vertices the cost of the path up to this vertex.
#[derive(Clone, PartialEq)]
struct Costed<I> {
    path: Path<I>,
    costs: Vec<f64>,
}

/// For each state, the cheapest known path: its cost, the previous state, and the label of the last
/// edge.
type Ways<I> = HashMap<State<I>, (f64, Option<(State<I>, String)>)>;

/// The start and the target of a search, and the vertices and edges to avoid.
struct Task<'t, I> {
    from: &'t I,
    /// The cost of the path that leads to `from`. The weights of a path are added in path order:
    /// another order would round differently, and equal paths would have unequal costs.
    cost: f64,
    target: &'t I,
    max_edges: usize,
    avoid: &'t Avoid<I>,
}

impl<I, V, E, C, R> GraphSearch<'_, '_, '_, I, V, E, C, R>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    /// A path with the smallest sum of weights; `None` if there is no path (Dijkstra's algorithm).
    /// With [`max_depth`](GraphSearch::max_depth), the cheapest path with at most this number of
    /// edges. A remote store reads the edges of up to 64 open vertices in one round trip.
    ///
    /// # Errors
    /// [`GraphError::BadWeight`] for a weight that is negative or not a finite number;
    /// [`GraphError::CostOverflow`] if the cost of all paths is more than an `f64` can hold; the
    /// errors of [`breadth_first`](GraphSearch::breadth_first).
    pub fn cheapest_path<Q>(
        &self,
        target: &Q,
        weight: impl Fn(&Hop<'_, I, E>) -> f64,
    ) -> Result<Searched<Option<Path<I>>>>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        self.cheapest_path_with(target, weight, |_| 0.0)
    }

    /// [`cheapest_path`](GraphSearch::cheapest_path) with an estimate of the cost from a vertex to
    /// the target (A\*). The estimate must never be greater than the true cost (it must be
    /// admissible). Then the path is a cheapest one, and vertices that lead away from the target
    /// are expanded late or not at all.
    ///
    /// # Errors
    /// The errors of [`cheapest_path`](GraphSearch::cheapest_path); [`GraphError::BadEstimate`] for
    /// an estimate that is not a number.
    pub fn cheapest_path_with<Q>(
        &self,
        target: &Q,
        weight: impl Fn(&Hop<'_, I, E>) -> f64,
        estimate: impl Fn(&I) -> f64,
    ) -> Result<Searched<Option<Path<I>>>>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        let (target, mut explain) = (&target.to_owned(), Explain::default());
        let (from, max_edges, avoid) = (&self.from, self.max_depth, &Avoid::default());
        let task = Task { from, cost: 0.0, target, max_edges, avoid };
        let found = run(self, &task, &weight, &estimate, &mut explain)?.map(|found| found.path);
        Ok(Searched { found, explain })
    }

    /// The `k` cheapest simple paths, the cheapest first (Yen's algorithm). Costs up to k searches
    /// per vertex of a path.
    ///
    /// # Errors
    /// The errors of [`cheapest_path`](GraphSearch::cheapest_path).
    pub fn k_cheapest_paths<Q>(
        &self,
        target: &Q,
        k: usize,
        weight: impl Fn(&Hop<'_, I, E>) -> f64,
    ) -> Result<Searched<Vec<Path<I>>>>
    where
        Q: ToOwned<Owned = I> + Pack + ?Sized,
    {
        let (target, mut explain) = (&target.to_owned(), Explain::default());
        let (mut found, mut candidates) = (Vec::<Costed<I>>::new(), Vec::<Costed<I>>::new());
        let (from, max_edges, avoid) = (&self.from, self.max_depth, &Avoid::default());
        let task = Task { from, cost: 0.0, target, max_edges, avoid };
        candidates.extend(run(self, &task, &weight, &|_| 0.0, &mut explain)?);
        while found.len() < k {
            let cheaper = |a: &&Costed<I>, b: &&Costed<I>| {
                let (a, b) = (&a.path, &b.path);
                a.cost
                    .total_cmp(&b.cost)
                    .then_with(|| (&a.vertices, &a.labels).cmp(&(&b.vertices, &b.labels)))
            };
            let Some(next) = candidates.iter().min_by(cheaper).cloned() else { break };
            candidates.retain(|path| *path != next);
            // Each further path leaves an earlier path at some vertex, the spur, and does not
            // return to the vertices before the spur.
            for spur in 0..next.path.labels.len() {
                let path = spur_path(self, target, &weight, &found, &next, spur, &mut explain)?;
                if let Some(path) =
                    path.filter(|path| !candidates.contains(path) && !found.contains(path))
                {
                    candidates.push(path);
                }
            }
            found.push(next);
        }
        Ok(Searched { found: found.into_iter().map(|found| found.path).collect(), explain })
    }
}

/// Runs one search. A state is expanded again if a cheaper path to it is found, so several states
/// can be expanded together.
fn run<I, V, E, C, R>(
    search: &GraphSearch<'_, '_, '_, I, V, E, C, R>,
    task: &Task<'_, I>,
    weight: &impl Fn(&Hop<'_, I, E>) -> f64,
    estimate: &impl Fn(&I) -> f64,
    explain: &mut Explain,
) -> Result<Option<Costed<I>>>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    let together = if search.view.reader.prefetched() > 0 { TOGETHER } else { 1 };
    let is_bounded = task.max_edges < usize::MAX;
    let begin = (task.from.clone(), 0);
    let mut ways = Ways::from([(begin.clone(), (task.cost, None))]);
    let mut end = (task.from == task.target).then(|| (task.cost, begin.clone()));
    let mut heap = BinaryHeap::from([Open { estimate: 0.0, cost: task.cost, state: begin }]);
    // A path whose cost overflows an `f64` is skipped: other paths may be cheaper.
    let mut overflows = false;
    let vertex = |id: &I| shown(&search.view.graph.vertices.space().pack(id));
    loop {
        let bound = end.as_ref().map_or(f64::INFINITY, |(cost, _)| *cost);
        let open = next_states(&mut heap, &ways, bound, task.max_edges, together);
        let Some(first) = open.first() else {
            if end.is_none() && overflows {
                return Err(GraphError::CostOverflow { vertex: vertex(task.target) }.into());
            }
            return Ok(end.map(|(_, end)| path(&ways, end)));
        };
        let mut vertices = vec![first.0.clone()];
        vertices.extend(open.iter().skip(1).map(|(vertex, _)| vertex.clone()));
        vertices.sort_unstable();
        vertices.dedup();
        search.expand(&vertices, explain, |_, hop| {
            if task.avoid.has(&hop) {
                return Ok(ControlFlow::Continue(()));
            }
            let edge = || shown(&search.view.graph.edges.space().pack(&hop.key()));
            let step = checked_weight(weight(&hop), edge)?;
            for before in open.iter().filter(|(vertex, _)| vertex == hop.from) {
                let Some((cost, _)) = ways.get(before) else { continue };
                let (cost, edges) = (cost + step, if is_bounded { before.1 + 1 } else { 0 });
                if cost.is_infinite() {
                    overflows = true;
                    continue;
                }
                let state = (hop.to.clone(), edges);
                if ways.get(&state).is_some_and(|(now, _)| *now <= cost) {
                    continue;
                }
                if hop.to == task.target && end.as_ref().is_none_or(|(now, _)| cost < *now) {
                    end = Some((cost, state.clone()));
                }
                let estimate = cost + estimate(hop.to);
                if estimate.is_nan() {
                    return Err(GraphError::BadEstimate { vertex: vertex(hop.to) }.into());
                }
                heap.push(Open { estimate, cost, state: state.clone() });
                ways.insert(state, (cost, Some((before.clone(), hop.label.to_owned()))));
                search.refuse_more(ways.len())?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
    }
}

/// The next states to expand: those whose estimate is below the cost of the best path so far.
fn next_states<I: VertexId>(
    heap: &mut BinaryHeap<Open<I>>,
    ways: &Ways<I>,
    bound: f64,
    max_edges: usize,
    most: usize,
) -> Vec<State<I>> {
    let mut open = Vec::new();
    while open.len() < most {
        let Some(next) = heap.pop().filter(|next| next.estimate < bound) else { break };
        let is_best = ways.get(&next.state).is_some_and(|(cost, _)| *cost == next.cost);
        if is_best && next.state.1 < max_edges {
            open.push(next.state);
        }
    }
    open
}

fn edge<I: Clone, E>(hop: &Hop<'_, I, E>) -> (I, String, I) {
    (hop.from.clone(), hop.label.to_owned(), hop.to.clone())
}

/// The path that ends in a state.
fn path<I: VertexId>(ways: &Ways<I>, end: State<I>) -> Costed<I> {
    let cost_of = |state: &State<I>| ways.get(state).map_or(0.0, |(cost, _)| *cost);
    let cost = cost_of(&end);
    let (mut vertices, mut labels, mut costs) = (vec![end.0.clone()], Vec::new(), vec![cost]);
    let mut at = &end;
    while let Some((_, Some((before, label)))) = ways.get(at) {
        vertices.push(before.0.clone());
        labels.push(label.clone());
        costs.push(cost_of(before));
        at = before;
    }
    vertices.reverse();
    labels.reverse();
    costs.reverse();
    Costed { path: Path { vertices, labels, cost }, costs }
}

/// The cheapest path that deviates from `path` at vertex number `spur`. The edge after the spur
/// differs from that of `path`, and of every path in `found` with the same vertices and labels up
/// to the spur.
fn spur_path<I, V, E, C, R>(
    search: &GraphSearch<'_, '_, '_, I, V, E, C, R>,
    target: &I,
    weight: &impl Fn(&Hop<'_, I, E>) -> f64,
    found: &[Costed<I>],
    path: &Costed<I>,
    spur: usize,
    explain: &mut Explain,
) -> Result<Option<Costed<I>>>
where
    I: VertexId,
    V: 'static,
    E: 'static,
    C: Codec<V> + Codec<E> + 'static,
    R: Reader,
{
    let root = |Costed { path, .. }: &Costed<I>| {
        Some((path.vertices.get(..=spur)?.to_vec(), path.labels.get(..spur)?.to_vec()))
    };
    let Some((vertices, labels)) = root(path) else { return Ok(None) };
    let mut avoid = Avoid::default();
    avoid.vertices.extend(vertices.iter().take(spur).cloned());
    for other in found.iter().chain([path]) {
        let Path { vertices: others, labels: between, .. } = &other.path;
        let steps = (others.get(spur), between.get(spur), others.get(spur + 1));
        let same_root =
            root(other).is_some_and(|other| other == (vertices.clone(), labels.clone()));
        if let (true, (Some(a), Some(label), Some(b))) = (same_root, steps) {
            avoid.edges.insert((a.clone(), label.clone(), b.clone()));
        }
    }
    let (Some(at), Some(costs)) = (vertices.last(), path.costs.get(..=spur)) else {
        return Ok(None);
    };
    let max_edges = match search.max_depth {
        usize::MAX => usize::MAX,
        bound => bound.saturating_sub(spur),
    };
    let cost = costs.last().copied().unwrap_or_default();
    let task = Task { from: at, cost, target, max_edges, avoid: &avoid };
    // A path whose cost overflows an `f64` is not among the cheapest.
    let rest = match run(search, &task, weight, &|_| 0.0, explain) {
        Err(error) if matches!(error.downcast_ref(), Some(GraphError::CostOverflow { .. })) => None,
        rest => rest?,
    };
    let Some(rest) = rest else { return Ok(None) };
    let vertices = vertices.into_iter().take(spur).chain(rest.path.vertices).collect();
    let labels = [labels, rest.path.labels].concat();
    let path = Path { vertices, labels, cost: rest.path.cost };
    Ok(Some(Costed { path, costs: [costs.get(..spur).unwrap_or_default(), &rest.costs].concat() }))
}
