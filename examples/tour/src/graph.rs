//! Flights between the airports of the United States.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::File;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use keyloom::Store;
use keyloom_patterns::BatchSize;
use keyloom_patterns::graph::algorithms::{self, PageRankOptions};
use keyloom_patterns::graph::{Direction, EdgeList, Graph, GraphMl, Hop};
use serde::Deserialize;

use crate::options::Options;
use crate::report::{act, ask, grouped, say, some_of};
use crate::{About, Step, Tour, TourResult, TourStore};

pub const ABOUT: About = About {
    name: "adjacency lists",
    title: "Find friends of friends and shortest paths",
    chapter: "book/src/graph.md",
    layout: "(flights edges, from, label, to) -> number of flights",
    data: &[
        "flights edges",
        "flights edges.incoming",
        "flights edges.degrees",
        "flights vertices",
        "shuttles edges",
        "shuttles edges.incoming",
        "shuttles edges.degrees",
        "shuttles vertices",
    ],
    shown: "fewest flights",
};

const FLIES_TO: &str = "flies to";
/// Large airports.
const LARGE: [&str; 7] = ["ATL", "ORD", "DFW", "DEN", "IAH", "BOS", "SEA"];

/// Airports by their IATA code. The value of an edge is the number of flights in a year.
type Flights = Graph<String, (), u32>;

#[derive(Deserialize)]
struct Route {
    origin: String,
    destination: String,
    count: u32,
}

pub struct AdjacencyLists {
    flights: Flights,
    /// The routes between large airports.
    shuttles: Flights,
}

impl AdjacencyLists {
    pub fn new(tour: &Tour<'_>) -> keyloom::Result<Self> {
        let [flights, shuttles] =
            ["flights", "shuttles"].map(|name| Graph::directed(&tour.schema, name));
        Ok(Self { flights: flights?, shuttles: shuttles? })
    }
}

impl Step for AdjacencyLists {
    fn load(&self, store: &TourStore, options: &Options) -> TourResult {
        let snapshot = store.snapshot()?;
        if self.flights.at(&snapshot)?.edge("ATL", FLIES_TO, "BOS")?.is_some() {
            say!("flights    in the store already");
            return Ok(());
        }
        drop(snapshot);
        let routes = read(&options.data)?;
        let edges = routes.iter().map(|route| {
            let (from, to) = (route.origin.clone(), route.destination.clone());
            ((from, FLIES_TO.to_owned(), to), route.count)
        });
        let edges: Vec<_> = edges.collect();
        BatchSize::new(1_000).transact_all(store, &edges, |txn, part| {
            self.flights.put_edges(txn, part.iter().cloned())
        })?;
        say!("flights    {} routes", grouped(routes.len() as u64));
        Ok(())
    }

    fn ask(&self, store: &TourStore) -> TourResult {
        ask(store, "Which airports have flights to Key West (EYW)?", |snapshot| {
            let view = self.flights.at(snapshot)?;
            let from = view.neighbours("EYW", Direction::In, None)?;
            let from = from.map(|airport| Ok(airport?.into_vertex()));
            Ok((vec![from.collect::<keyloom::Result<Vec<_>>>()?.join(", ")], ()))
        })?;
        ask(store, "Which of the large airports have most routes?", |snapshot| {
            let view = self.flights.at(snapshot)?;
            let mut airports = Vec::new();
            for airport in LARGE {
                airports.push((view.degree(airport, Direction::Out, None)?, airport));
            }
            airports.sort_unstable_by(|a, b| b.cmp(a));
            let line = |(routes, airport): &(u64, &str)| format!("{airport}: {routes} routes");
            Ok((airports.iter().take(4).map(line).collect(), ()))
        })?;
        ask(
            store,
            "How does one get from Adak (ADK) to Key West with the fewest flights?",
            |snapshot| {
                let view = self.flights.at(snapshot)?;
                let path = view.search("ADK").shortest_path("EYW")?.found;
                Ok((vec![path.map_or("not at all".into(), |path| path.vertices.join(" → "))], ()))
            },
        )?;
        ask(
            store,
            "In how many ways from Boise (BOI) to Nantucket (ACK) with the fewest flights?",
            |snapshot| {
                let view = self.flights.at(snapshot)?;
                let paths = view.search("BOI").all_shortest_paths("ACK")?.found;
                let flights = paths.iter().next().map_or(0, |path| path.edges());
                Ok((vec![format!("{} ways of {flights} flights", paths.count())], ()))
            },
        )?;
        ask(
            store,
            "From Boise to Key West with at most two stops, on the busiest routes?",
            |snapshot| {
                let view = self.flights.at(snapshot)?;
                let rarity = |hop: &Hop<'_, String, u32>| 1.0 / f64::from(hop.properties.max(1));
                let paths =
                    view.search("BOI").max_depth(3).k_cheapest_paths("EYW", 3, rarity)?.found;
                Ok((paths.iter().map(|path| path.vertices.join(" → ")).collect(), ()))
            },
        )?;
        ask(
            store,
            "Which airports are two flights from Boise, and not one? (steps)",
            |snapshot| {
                let view = self.flights.at(snapshot)?;
                let near = view.from(["BOI"]).out([FLIES_TO]).dedup().vertices()?.found;
                let far = view.from(["BOI"]).repeat(2, |steps| steps.out([FLIES_TO]).dedup());
                let far = far.vertices()?;
                let new = far.found.iter().filter(|airport| !near.contains(airport));
                let line = format!("{} airports; {}", new.count(), far.explain);
                Ok((vec![line], ()))
            },
        )?;
        ask(
            store,
            "Which large airports are reached first from Adak? (steps until)",
            |snapshot| {
                let view = self.flights.at(snapshot)?;
                let flights = view.from(["ADK"]).repeat(5, |steps| steps.out([FLIES_TO]).dedup());
                let paths =
                    flights.until(|airport, _| LARGE.contains(&airport.as_str())).paths()?.found;
                let lines: Vec<_> = paths.iter().map(|path| path.join(" → ")).collect();
                Ok((some_of(&lines, 3, "ways"), ()))
            },
        )?;
        ask(
            store,
            "Which airports are the most central? (PageRank of the whole graph)",
            |snapshot| {
                let rows = self.flights.at(snapshot)?.to_csr()?;
                let ranks = algorithms::page_rank(&rows, &PageRankOptions::default())?;
                let mut airports = rows.zip(ranks).collect::<keyloom::Result<Vec<_>>>()?;
                airports.sort_by(|(_, a), (_, b)| b.total_cmp(a));
                let line = |(airport, rank): &(String, f64)| format!("{airport}: {rank:.4}");
                Ok((airports.iter().take(4).map(line).collect(), ()))
            },
        )?;
        ask(
            store,
            "And if a passenger takes busy routes more often? (weighted PageRank)",
            |snapshot| {
                let view = self.flights.at(snapshot)?;
                let rows = view.to_weighted_csr(|flights| f64::from(*flights))?;
                let ranks = algorithms::weighted_page_rank(&rows, &PageRankOptions::default())?;
                let airports = rows.zip(ranks).collect::<keyloom::Result<Vec<_>>>()?;
                let first = airports.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
                let line = |(airport, rank): &(String, f64)| format!("{airport}: {rank:.4}");
                Ok((first.into_iter().map(line).collect(), ()))
            },
        )?;
        ask(
            store,
            "How many airports are one or two flights from Boise? (steps, emit)",
            |snapshot| {
                let view = self.flights.at(snapshot)?;
                let flights = view.from(["BOI"]).repeat(2, |steps| steps.out([FLIES_TO]).dedup());
                let count = flights.emit().dedup().count()?.found;
                Ok((vec![format!("{count} airports in one or two flights")], ()))
            },
        )?;
        ask(store, "And from Adak? (steps, union)", |snapshot| {
            let view = self.flights.at(snapshot)?;
            let from = view.from(["ADK"]).union(
                |steps| steps.out([FLIES_TO]),
                |steps| steps.out([FLIES_TO]).out([FLIES_TO]),
            );
            Ok((vec![format!("{} airports from Adak", from.dedup().count()?.found)], ()))
        })?;
        ask(store, "Which airports have most flights among themselves? (Louvain)", |snapshot| {
            let view = self.flights.at(snapshot)?;
            let rows = view.to_weighted_csr(|flights| f64::from(*flights))?;
            let groups = algorithms::louvain(&rows, 1.0)?;
            let quality = algorithms::modularity(&rows, &groups, 1.0)?;
            let airports = rows.zip(groups).collect::<keyloom::Result<Vec<_>>>()?;
            let mut members = BTreeMap::<_, Vec<String>>::new();
            for (airport, group) in airports {
                members.entry(group).or_default().push(airport);
            }
            let of = |airport: &str| members.values().find(|all| all.iter().any(|a| a == airport));
            let adak = of("ADK").map_or(0, Vec::len);
            let line = format!(
                "{} groups of modularity {quality:.3}; that of Adak has {adak} airports",
                members.len()
            );
            Ok((vec![line], ()))
        })?;
        self.import(store)
    }
}

/// The format of the files: an edge list of integers, and GraphML with the attribute `flights`.
impl AdjacencyLists {
    fn import(&self, store: &TourStore) -> TourResult {
        let snapshot = store.snapshot()?;
        let view = self.flights.at(&snapshot)?;
        let (mut lines, mut xml) = (String::new(), String::new());
        for (from, to) in LARGE.iter().flat_map(|from| LARGE.map(|to| (*from, to))) {
            let Some(flights) = view.edge(from, FLIES_TO, to)? else { continue };
            writeln!(lines, "{from},{to},{flights}")?;
            let data = format!(r#"<data key="f">{flights}</data>"#);
            writeln!(xml, r#"<edge source="{from}" target="{to}">{data}</edge>"#)?;
        }
        drop(snapshot);
        act(store, "The routes between large airports are a file of edges, imported:", |store| {
            let list = EdgeList::new(FLIES_TO, |flights| flights.unwrap_or_default() as u32);
            let list = list.separator(',');
            let done = self.shuttles.import_edges(store, lines.as_bytes(), &list)?;
            Ok(vec![format!("{} routes from {} bytes", done.records, lines.len())])
        })?;
        act(store, "The same as GraphML adds nothing:", |store| {
            let key = r#"<key id="f" for="edge" attr.name="flights" attr.type="int"/>"#;
            let file =
                format!(r#"<graphml>{key}<graph edgedefault="directed">{xml}</graph></graphml>"#);
            let format = GraphMl::new(
                |_node| Ok(()),
                |edge| Ok((FLIES_TO.to_owned(), edge.parse("flights")?.unwrap_or_default())),
            );
            let done = self.shuttles.import_graphml(store, file.as_bytes(), &format)?;
            let edges = self.shuttles.edges().count(&store.snapshot()?, ..)?;
            Ok(vec![format!("{} edges read, {edges} stored", done.records)])
        })?;
        Ok(())
    }
}

fn read(data: &Path) -> TourResult<Vec<Route>> {
    let path = data.join("flights-airport.csv.gz");
    let file = File::open(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let rows = csv::Reader::from_reader(MultiGzDecoder::new(file)).into_deserialize();
    let routes = rows.collect::<Result<Vec<Route>, _>>();
    routes.map_err(|error| format!("{} is damaged: {error}", path.display()).into())
}
