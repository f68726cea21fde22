//! Routes between ports: a graph, walked in both directions.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use fastrand::Rng;
use keyloom::{DynWriter, Memory, Result, Subspace};
use keyloom_patterns::Schema;
use keyloom_patterns::graph::{Direction, EdgeKey, Graph};

use crate::Workload;

/// The graph, whose vertices are created by the edges that name them.
#[derive(Clone)]
pub struct Routes {
    graph: Graph<u8, u32, u32>,
}

/// One operation of the pattern.
#[derive(Clone, Debug)]
pub enum Change {
    PutPort(u8, u32),
    PutRoute(EdgeKey<u8>, u32),
    PutRoutes(Vec<(EdgeKey<u8>, u32)>),
    DeleteRoute(EdgeKey<u8>),
}

/// The expected data.
#[derive(Clone, Default)]
pub struct Model {
    ports: BTreeMap<u8, u32>,
    routes: BTreeMap<EdgeKey<u8>, u32>,
    /// All routes that ever existed: a degree of 0 remains stored.
    touched: BTreeSet<EdgeKey<u8>>,
}

const PORTS: u8 = 24;
/// The first label is a prefix of the others, and one label contains a NUL.
const LABELS: [&str; 3] = ["by", "by\0", "by sea"];

impl Routes {
    pub fn new(schema: &Schema<'_, Memory>) -> Result<Self> {
        Ok(Self { graph: Graph::directed(schema, "routes")?.create_missing_vertices() })
    }

    fn route(rng: &mut Rng) -> EdgeKey<u8> {
        let label = rng.choice(LABELS).unwrap_or_default();
        (rng.u8(..PORTS), label.to_owned(), rng.u8(..PORTS))
    }
}

impl Model {
    fn put(&mut self, (source, label, target): &EdgeKey<u8>, days: u32) {
        let route = (*source, label.clone(), *target);
        self.ports.entry(*source).or_default();
        self.ports.entry(*target).or_default();
        self.touched.insert(route.clone());
        self.routes.insert(route, days);
    }

    /// The labels and the other ends of the edges of a port.
    fn neighbours(&self, port: u8, direction: Direction) -> Vec<(String, u8)> {
        let mut found: Vec<_> = self
            .routes
            .keys()
            .filter_map(|(source, label, target)| match direction {
                Direction::Out if *source == port => Some((label.clone(), *target)),
                Direction::In if *target == port => Some((label.clone(), *source)),
                _ => None,
            })
            .collect();
        found.sort();
        found
    }

    /// The reachable ports, each with the required number of routes.
    fn reached(&self, from: u8) -> BTreeMap<u8, usize> {
        let mut depths = BTreeMap::from([(from, 0)]);
        let mut open = VecDeque::from([(from, 0)]);
        while let Some((port, depth)) = open.pop_front() {
            for (_, next) in self.neighbours(port, Direction::Out) {
                if let Entry::Vacant(unseen) = depths.entry(next) {
                    unseen.insert(depth + 1);
                    open.push_back((next, depth + 1));
                }
            }
        }
        depths
    }
}

impl Workload for Routes {
    type Operation = Change;
    type Model = Model;

    fn name(&self) -> &'static str {
        "routes"
    }

    fn records(&self) -> Vec<Subspace> {
        vec![self.graph.vertices().space().clone(), self.graph.edges().space().clone()]
    }

    fn derived(&self) -> Vec<Subspace> {
        self.graph.derived_spaces().into()
    }

    fn operation(&self, rng: &mut Rng) -> Change {
        match rng.u8(..10) {
            0 => Change::PutPort(rng.u8(..PORTS), rng.u32(..)),
            1..5 => Change::PutRoute(Self::route(rng), rng.u32(..5)),
            5..9 => Change::DeleteRoute(Self::route(rng)),
            _ => Change::PutRoutes(
                (0..rng.usize(..8)).map(|_| (Self::route(rng), rng.u32(..5))).collect(),
            ),
        }
    }

    fn perform(&self, operation: &Change, txn: &mut DynWriter<'_>) -> Result<()> {
        match operation {
            Change::PutPort(port, depth) => self.graph.vertices().put(txn, port, depth),
            Change::PutRoute((source, label, target), days) => {
                self.graph.put_edge(txn, source, label, target, days)
            }
            Change::PutRoutes(routes) => self.graph.put_edges(txn, routes.clone()),
            Change::DeleteRoute((source, label, target)) => {
                self.graph.delete_edge(txn, source, label, target).map(drop)
            }
        }
    }

    fn imitate(&self, operation: &Change, model: &mut Model) {
        match operation {
            Change::PutPort(port, depth) => drop(model.ports.insert(*port, *depth)),
            Change::PutRoute(route, days) => model.put(route, *days),
            Change::PutRoutes(routes) => {
                routes.iter().for_each(|(route, days)| model.put(route, *days));
            }
            Change::DeleteRoute(route) => drop(model.routes.remove(route)),
        }
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        Ok(super::reported(&self.graph.check(txn)?))
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let ports: BTreeMap<u8, u32> =
            self.graph.vertices().range(txn, ..)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the table of vertices", &ports, &model.ports);
        let routes: BTreeMap<EdgeKey<u8>, u32> =
            self.graph.edges().range(txn, ..)?.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the table of edges", &routes, &model.routes);
        let view = self.graph.at(txn)?;
        for port in [0, 7, PORTS - 1] {
            for direction in [Direction::Out, Direction::In] {
                let wanted = model.neighbours(port, direction);
                let degree = view.degree(&port, direction, None)?;
                super::compare(&mut wrong, "a degree", degree, wanted.len() as u64);
                let found = view.neighbours(&port, direction, None)?;
                let found = found.map(|n| n.map(|n| (n.label().into_owned(), n.into_vertex())));
                let found = found.collect::<Result<Vec<_>>>()?;
                super::compare(&mut wrong, "neighbours", found, wanted);
            }
            let visits = view.search(&port).breadth_first()?.found;
            let found: BTreeMap<u8, usize> =
                visits.into_iter().map(|visit| (visit.vertex, visit.depth)).collect();
            super::compare(&mut wrong, "a search", found, model.reached(port));
        }
        Ok(wrong)
    }

    fn rebuild(&self, model: &Model, txn: &mut DynWriter<'_>) -> Result<()> {
        // Each degree that was ever counted is stored, even if it is 0 again.
        for (source, label, target) in &model.touched {
            self.graph.put_edge(txn, source, label, target, &0)?;
            self.graph.delete_edge(txn, source, label, target)?;
        }
        self.graph.put_edges(txn, model.routes.clone())?;
        model.ports.iter().try_for_each(|(port, depth)| self.graph.vertices().put(txn, port, depth))
    }
}
