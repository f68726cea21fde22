//! Circles of places, compared with the time that Redis reports for GEOSEARCH: its own time inside
//! of the server, without the client and the loopback.
//!
//! ```text
//! apt-get install redis-server
//! cargo bench -p keyloom-compare --features redis --bench redis [-- POINTS]
//! ```
//!
//! A million points, uniform on the sphere between 85 degrees south and north (the limit of Redis),
//! and the 135,233 cities of the world, around cities. The benchmark starts a server of its own,
//! which keeps its data in memory and writes no file; keyloom is on LMDB. The server counts whole
//! microseconds for each command, so the times of empty circles are rough.

#![allow(missing_docs, clippy::expect_used, clippy::unwrap_used, clippy::indexing_slicing)]

use std::cell::Cell;
use std::fs::File;
use std::hint::black_box;
use std::io::BufReader;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use flate2::read::MultiGzDecoder;
use keyloom::lmdb::Durability;
use keyloom::{Lmdb, Reader, Store, Subspace};
use keyloom_compare::compare_timed;
use keyloom_compare::places::uniform;
use keyloom_patterns::{Circle, LatLng, PointIndex, Table};
use redis::{Connection, cmd};

type Place = (f64, f64);

/// Queries per round and contender.
const AT_ONCE: usize = 100;
const ROUNDS: usize = 200;

/// A server on a free port of loopback, which ends with this value.
struct Server {
    process: Child,
    connection: Connection,
}

impl Server {
    fn start(directory: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port.to_string()])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(directory)
            .stdout(Stdio::null())
            .spawn()
            .expect("apt-get install redis-server");
        let client = redis::Client::open(format!("redis://127.0.0.1:{port}")).unwrap();
        let connection = (0..100).find_map(|_| {
            std::thread::sleep(Duration::from_millis(100));
            client.get_connection().ok()
        });
        Self { process, connection: connection.unwrap() }
    }

    fn add(&mut self, set: &str, places: &[Place]) {
        for (n, some) in places.chunks(1_000).enumerate() {
            let mut add = cmd("GEOADD");
            add.arg(set);
            for ((latitude, longitude), id) in some.iter().zip(n * 1_000..) {
                add.arg(*longitude).arg(*latitude).arg(id);
            }
            add.exec(&mut self.connection).unwrap();
        }
    }

    fn within(&mut self, set: &str, (latitude, longitude): Place, metres: f64) -> usize {
        let mut search = cmd("GEOSEARCH");
        search.arg(set).arg("FROMLONLAT").arg(longitude).arg(latitude);
        search.arg("BYRADIUS").arg(metres).arg("m");
        search.query::<Vec<String>>(&mut self.connection).unwrap().len()
    }

    /// The time of the searches since the last call.
    fn own_time(&mut self) -> Duration {
        let stats: String = cmd("INFO").arg("commandstats").query(&mut self.connection).unwrap();
        cmd("CONFIG").arg("RESETSTAT").exec(&mut self.connection).unwrap();
        let of_searches = stats.lines().find_map(|line| line.strip_prefix("cmdstat_geosearch:"));
        let micros = of_searches
            .and_then(|fields| fields.split(',').find_map(|field| field.strip_prefix("usec=")));
        Duration::from_micros(micros.map_or(0, |micros| micros.parse().unwrap()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn main() {
    let points = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    println!("ratios are keyloom on LMDB / Redis: below 1 keyloom is faster\n");
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(directory.path());
    let options = Lmdb::options().durability(Durability::MayLoseStore).map_bytes(4 << 30);
    let store = options.open(directory.path().join("lmdb")).unwrap();
    for (name, places) in [("uniform", evenly(points)), ("cities", cities())] {
        server.add(name, &places);
        let index = index(name);
        let table = Table::<u32, Place>::new(&Subspace::new(&(name, "places"))).with(&index);
        let records = (0..).zip(places.iter().copied()).collect::<Vec<(u32, Place)>>();
        for some in records.chunks(100_000) {
            store.transact(|txn| table.put_many(txn, some)).unwrap();
        }
        let snapshot = store.snapshot().unwrap();
        for kilometres in [1.0, 10.0, 50.0] {
            circles(&snapshot, &index, &mut server, (name, &places), kilometres * 1e3);
        }
    }
}

fn index(name: &str) -> PointIndex<u32, Place> {
    PointIndex::new(&Subspace::new(&(name, "index")), |_, (latitude, longitude): &Place| {
        LatLng::new(*latitude, *longitude).map(Some)
    })
}

/// Points, uniform on the sphere without its poles.
fn evenly(count: usize) -> Vec<Place> {
    uniform(7).filter(|(latitude, _)| latitude.abs() < 85.0).take(count).collect()
}

fn cities() -> Vec<Place> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/cities.csv.gz");
    let file = BufReader::new(File::open(path).unwrap());
    let mut rows = csv::Reader::from_reader(MultiGzDecoder::new(file));
    let place = |row: csv::StringRecord| (row[6].parse().unwrap(), row[7].parse().unwrap());
    rows.records().map(|row| place(row.unwrap())).collect()
}

fn circles(
    snapshot: &impl Reader,
    index: &PointIndex<u32, Place>,
    server: &mut Server,
    (set, places): (&str, &[Place]),
    metres: f64,
) {
    let found = Cell::new([0_usize; 2]);
    let count = |who: usize, more: usize| {
        let mut counts = found.get();
        counts[who] += more;
        found.set(counts);
    };
    let centres = |seed| {
        let mut random = fastrand::Rng::with_seed(seed);
        move || places[random.usize(..places.len())]
    };
    let (mut here, mut there) = (centres(5), centres(5));
    let mut own = || {
        let start = Instant::now();
        for _ in 0..AT_ONCE {
            let (latitude, longitude) = here();
            let at = LatLng::new(latitude, longitude).unwrap();
            let points = index.within(Circle::new(at, metres).unwrap()).points(snapshot).unwrap();
            let ids = points.map(|point| point.unwrap().record_key().unwrap());
            count(0, ids.filter(|id| black_box(*id) < u32::MAX).count());
        }
        start.elapsed()
    };
    server.own_time();
    let mut of_redis = || {
        (0..AT_ONCE).for_each(|_| count(1, server.within(set, there(), metres)));
        server.own_time()
    };
    let what = format!("{set}: within {} km", metres / 1e3);
    compare_timed(
        &what,
        AT_ONCE,
        ROUNDS,
        &mut [("keyloom", &mut own), ("Redis, its own time", &mut of_redis)],
    );
    let [here, there] = found.get();
    println!(
        "    {:.1} found in a circle",
        here as f64 / AT_ONCE as f64 / (ROUNDS * 11 / 10) as f64
    );
    // Redis rounds positions and has another radius of the earth.
    assert!(here.abs_diff(there) <= 2 + here / 100, "{here} {there}");
}
