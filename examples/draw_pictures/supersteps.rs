//! A small graph, its keys, and the state of a vertex program after each superstep, as stored.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use keyloom::key::display;
use keyloom::value::{Codec, Postcard};
use keyloom::{Memory, Order, Reader, Result, Store, Subspace};
use keyloom_patterns::Schema;
use keyloom_patterns::graph::Graph;
use keyloom_patterns::graph::messages::Computation;
use keyloom_patterns::graph::messages::programs::ShortestPaths;

use crate::Drawn;
use crate::card::Card;

/// The airports with their places in a drawing of the graph.
const AIRPORTS: [(&str, [u32; 2]); 4] =
    [("ATL", [24, 70]), ("BOS", [110, 24]), ("JFK", [110, 116]), ("SEA", [196, 70])];
/// Origin, destination, hours.
const FLIGHTS: [(&str, &str, f64); 5] = [
    ("ATL", "BOS", 2.5),
    ("ATL", "JFK", 2.2),
    ("BOS", "JFK", 1.3),
    ("BOS", "SEA", 6.3),
    ("JFK", "SEA", 6.2),
];
const WIDTH: u32 = 760;
/// Top left corner of the drawing of the flights.
const ORIGIN: [u32; 2] = [10, 54];
/// The width of the drawing of a superstep.
const STEP: u32 = 250;
/// Top edge of the drawings of the supersteps.
const STEPS_TOP: u32 = 250;

/// The states of the airports, and the messages to them.
#[derive(Clone, Debug, Default, PartialEq)]
struct Moment {
    states: BTreeMap<String, f64>,
    messages: BTreeMap<String, f64>,
}

pub fn picture() -> Drawn<String> {
    let store = Memory::new();
    let schema = Schema::open(&store, "travel")?;
    let flights = Graph::<String, (), f64>::directed(&schema, "flights")?;
    store.transact(|txn| {
        FLIGHTS
            .iter()
            .try_for_each(|(from, to, hours)| flights.put_edge(txn, *from, "flies to", *to, hours))
    })?;
    let program = ShortestPaths::new("ATL".to_owned(), |edge| edge.properties);
    let hours = Computation::declare(&schema, &flights, "hours", 1, program)?;
    // The first moment is before the first superstep. The last superstep sends no messages.
    let mut moments = Vec::new();
    let mut failed = Ok(());
    hours.run_with(&store, |_| match moment(&store, hours.space()) {
        Ok(moment) => {
            moments.push(moment);
            ControlFlow::Continue(())
        }
        Err(error) => {
            failed = Err(error);
            ControlFlow::Break(())
        }
    })?;
    failed?;
    let mut card = Card::new(
        WIDTH,
        STEPS_TOP + 215,
        "A graph, its keys, and three supersteps",
        "Four airports and five flights with their hours; the keys of the flights in both \
         directions; and the hours from ATL to each airport after each of three supersteps, with \
         the messages that were sent.",
    );
    graph(&mut card);
    let incoming = &flights.derived_spaces()[0];
    keys(&mut card, 270, "flights edges", &entries(&store, flights.edges().space())?);
    keys(&mut card, 515, "incoming", &entries(&store, incoming)?);
    for (n, (before, after)) in moments.iter().zip(moments.iter().skip(1)).enumerate() {
        superstep(&mut card, n as u32, before, after);
    }
    Ok(card.finish())
}

/// Reads the stored state of the run.
fn moment(store: &Memory, space: &Subspace) -> Result<Moment> {
    let snapshot = store.snapshot()?;
    let all = snapshot.range(space.self_and_children(), Order::Ascending)?;
    let mut moment = Moment::default();
    for entry in all {
        let (key, value) = entry?;
        if let Ok((2_u8, airport)) = space.unpack::<(u8, String)>(key) {
            // The state follows the byte that says whether the vertex has halted, and the hash of
            // its edges.
            let state = Postcard::decode(value.get(5..).unwrap_or_default())?;
            moment.states.insert(airport, state);
        }
        type MessageKey = (u8, u64, String, u64, u64);
        if let Ok((3_u8, _, airport, ..)) = space.unpack::<MessageKey>(key) {
            moment.messages.insert(airport, Postcard::decode(value)?);
        }
    }
    Ok(moment)
}

/// The keys of a subspace in readable form.
fn entries(store: &Memory, space: &Subspace) -> Result<Vec<String>> {
    let snapshot = store.snapshot()?;
    let all = snapshot.range(space.self_and_children(), Order::Ascending)?;
    let shown = all.map(|entry| {
        let (key, _) = entry?;
        Ok(display(key.get(space.prefix().len()..).unwrap_or_default()).to_string())
    });
    shown.collect()
}

fn keys(card: &mut Card, x: u32, title: &str, keys: &[String]) {
    card.text(x, 30, title);
    for (n, key) in (0..).zip(keys) {
        card.text(x, 62 + n * 24, key);
    }
}

fn graph(card: &mut Card) {
    card.text(10, 30, "flights, in hours");
    for (from, to, hours) in FLIGHTS {
        let ends = [place(from, ORIGIN), place(to, ORIGIN)];
        card.path("curve", arrow(ends));
        let [x, y] = beside(ends);
        card.text(x, y, &hours.to_string());
    }
    for (name, _) in AIRPORTS {
        let [x, y] = place(name, ORIGIN);
        card.path("start", format!("M{x} {y}h0"));
        card.text(x - 14, below(name, y, 0), name);
    }
}

/// The graph in a superstep: states below the airports, messages at the receivers.
fn superstep(card: &mut Card, n: u32, before: &Moment, after: &Moment) {
    let origin = [10 + n * STEP, STEPS_TOP + 45];
    card.text(origin[0], STEPS_TOP, &format!("after superstep {n}"));
    let has_changed = |name: &str| before.states.get(name) != after.states.get(name);
    for (from, to, _) in FLIGHTS {
        let class = if has_changed(from) { "leap" } else { "grid" };
        card.path(class, arrow([place(from, origin), place(to, origin)]));
    }
    for (name, _) in AIRPORTS {
        let [x, y] = place(name, origin);
        let class = if has_changed(name) { "start" } else { "dots unread" };
        card.path(class, format!("M{x} {y}h0"));
        let state = after.states.get(name).copied().unwrap_or(f64::NAN);
        card.text(x - 14, below(name, y, 0), &format!("{name} {}", shown(state)));
        if let Some(message) = after.messages.get(name) {
            card.text(x - 14, below(name, y, 1), &format!("receives {}", shown(*message)));
        }
    }
}

fn shown(hours: f64) -> String {
    if hours.is_infinite() { "∞".into() } else { hours.to_string() }
}

fn place(name: &str, [left, top]: [u32; 2]) -> [u32; 2] {
    let found = AIRPORTS.iter().find(|(airport, _)| *airport == name);
    found.map_or([left, top], |(_, [x, y])| [left + x, top + y])
}

/// The position of a line of text for an airport: above the top airport, below the others.
fn below(name: &str, y: u32, line: u32) -> u32 {
    if name == "BOS" { y - 12 - line * 17 } else { y + 24 + line * 17 }
}

/// The position of a text beside the middle of a line, on the side away from the centre of the
/// graph.
fn beside([a, b]: [[u32; 2]; 2]) -> [u32; 2] {
    let [x, y] = [a[0].midpoint(b[0]), a[1].midpoint(b[1])];
    let ends = [a[1], b[1]];
    match (a[0] == b[0], ends.contains(&place("BOS", ORIGIN)[1])) {
        (true, _) => [x + 6, y + 4],
        (false, true) => [x - 10, y - 8],
        (false, false) => [x - 10, y + 18],
    }
}

/// An arrow between two airports, with a gap at both ends.
fn arrow([from, to]: [[u32; 2]; 2]) -> String {
    let [from, to] = [from, to].map(|at| at.map(f64::from));
    let along = [to[0] - from[0], to[1] - from[1]];
    let length = along[0].hypot(along[1]);
    let [dx, dy] = along.map(|part| part / length);
    let [x, y] = [from[0] + dx * 10.0, from[1] + dy * 10.0];
    let [end_x, end_y] = [to[0] - dx * 10.0, to[1] - dy * 10.0];
    let head = |turn: f64| {
        let back = [dx * 8.0 + turn * dy * 4.0, dy * 8.0 - turn * dx * 4.0];
        format!("L{:.1} {:.1}", end_x - back[0], end_y - back[1])
    };
    let end = format!("{end_x:.1} {end_y:.1}");
    format!("M{x:.1} {y:.1}L{end}{}M{end}{}", head(1.0), head(-1.0))
}
