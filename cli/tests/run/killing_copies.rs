//! `copy`, killed again and again: it continues, and the copy is complete.
//!
//! The numbers of keys and of kills come from the environment. For a million keys:
//!
//! ```sh
//! KEYLOOM_COPY_KEYS=1000000 KEYLOOM_COPY_KILLS=10 tests/servers/with.sh \
//!     cargo test --release -p keyloom-cli --features postgres,etcd --test run \
//!     killing_copies -- --nocapture --test-threads=1
//! ```

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, Instant};

use keyloom::{KeyRange, Order, Reader, Store, Writer};

use crate::engines::{Engine, empty, open, set};
use crate::support::{Directory, Ran, fine, piped, run};

macro_rules! routes {
    ($($(#[$feature:meta])? $test:ident: $first:ident $(-> $next:ident)+;)*) => {$(
        $(#[$feature])?
        #[test]
        fn $test() {
            copy_along(Engine::$first, &[$(Engine::$next),+]);
        }
    )*};
}

routes! {
    killed_copies_from_lmdb_to_redb: Lmdb -> Redb;
    killed_copies_from_lmdb_to_fjall: Lmdb -> Fjall;
    killed_copies_from_redb_to_lmdb: Redb -> Lmdb;
    killed_copies_from_redb_to_fjall: Redb -> Fjall;
    killed_copies_from_fjall_to_lmdb: Fjall -> Lmdb;
    killed_copies_from_fjall_to_redb: Fjall -> Redb;
    #[cfg(feature = "postgres")]
    killed_copies_to_postgres_and_back: Lmdb -> Postgres -> Lmdb;
    #[cfg(feature = "etcd")]
    killed_copies_to_etcd_and_back: Lmdb -> Etcd -> Lmdb;
    #[cfg(feature = "postgres")]
    killed_copies_through_postgres: Redb -> Postgres -> Fjall -> Postgres -> Redb;
    #[cfg(all(feature = "postgres", feature = "etcd"))]
    killed_copies_between_servers: Redb -> Etcd -> Postgres -> Etcd -> Fjall;
    #[cfg(feature = "etcd")]
    killed_copies_through_etcd: Fjall -> Etcd -> Redb;
}

fn setting(name: &str, default: u32) -> u32 {
    std::env::var(name).map_or(default, |value| value.parse().unwrap())
}

/// The entries of the source. Each is a function of its number, so the copy is compared with them
/// and not with the source.
#[derive(Clone, Copy)]
struct Contents {
    keys: u32,
}

impl Contents {
    /// A key whose order is that of the numbers, and a value, both of many lengths.
    fn entry(n: u32) -> (Vec<u8>, Vec<u8>) {
        // The constant is that of Fibonacci hashing.
        let mixed = (u64::from(n) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let bytes = mixed.to_be_bytes();
        let some = |length: u64| bytes.iter().copied().cycle().take(length as usize);
        let key = n.to_be_bytes().into_iter().chain(some(mixed % 20)).collect();
        (key, some((mixed >> 20) % 120).collect())
    }

    fn fill(self, address: &str) {
        let store = open(address);
        for first in (0..self.keys).step_by(10_000) {
            let batch: Vec<_> = (first..self.keys.min(first + 10_000)).map(Self::entry).collect();
            let sorted: Vec<_> = batch.iter().map(|(key, value)| (&key[..], &value[..])).collect();
            store.transact(|txn| txn.put_sorted(&sorted)).unwrap();
        }
    }

    /// The number of entries of a store, which must be the first entries of the source.
    fn copied(self, address: &str) -> Result<u32, String> {
        let store = open(address);
        let snapshot = store.snapshot().unwrap();
        let mut copied = 0;
        for entry in snapshot.range(KeyRange::all(), Order::Ascending).unwrap() {
            let (key, value) = entry.unwrap();
            let expected = Self::entry(copied);
            if (&*key, &*value) != (&expected.0[..], &expected.1[..]) {
                return Err(format!("entry {copied} is {key:?}, {value:?}, not {expected:?}"));
            }
            copied += 1;
        }
        Ok(copied)
    }
}

/// Copies from engine to engine, with kills on each part of the way.
fn copy_along(first: Engine, rest: &[Engine]) {
    let contents = Contents { keys: setting("KEYLOOM_COPY_KEYS", 12_000) };
    let kills = setting("KEYLOOM_COPY_KILLS", 2);
    let directory = Directory::new();
    let Some(mut from) = first.address(&directory, "source") else { return };
    contents.fill(&from);
    let mut engine = first;
    for (part, next) in rest.iter().enumerate() {
        let begin = Instant::now();
        let mut target = 0;
        let mut fresh = || {
            target += 1;
            next.address(&directory, &format!("target {part} {target}"))
        };
        let Some(to) = fresh() else { return };
        let delays = Delays { shortest: 0.0, longest: 0.1 };
        let mut copy = KilledCopy { contents, from: &from, to, delays };
        let stops = copy.kill(kills as usize, || fresh().unwrap());
        let stopped = begin.elapsed().as_secs();
        copy.finish(*stops.last().unwrap());
        println!(
            "{engine:?} to {next:?}: {} keys, {} kills at {stops:?} keys in {stopped} s, {} s in all",
            contents.keys,
            stops.len(),
            begin.elapsed().as_secs()
        );
        controls(contents, &from, &copy.to);
        (from, engine) = (copy.to, *next);
    }
    if from.contains("://") {
        empty(&from);
    }
}

/// A copy that is killed before its end.
struct KilledCopy<'f> {
    contents: Contents,
    from: &'f str,
    to: String,
    delays: Delays,
}

/// The delays before the signal, in seconds: bounds that every attempt corrects.
#[derive(Clone, Copy)]
struct Delays {
    /// After this time, the copy had written nothing.
    shortest: f64,
    /// After this time, the copy was complete, or would be.
    longest: f64,
}

impl Delays {
    /// A random delay that leaves room for the kills after this one.
    fn some(self, kills_left: usize) -> f64 {
        let part = 2.0 * fastrand::f64() / (kills_left + 1) as f64;
        self.shortest + (self.longest - self.shortest) * part
    }

    /// The copy had written nothing.
    fn was_short(&mut self, delay: f64) {
        self.shortest = self.shortest.max(delay);
        // The times of two attempts differ.
        if self.longest < self.shortest * 1.1 {
            self.longest = self.shortest * 2.0;
        }
    }

    /// The copy was complete.
    fn was_long(&mut self, delay: f64) {
        self.longest = self.longest.min(delay);
        if self.shortest > self.longest * 0.9 {
            self.shortest = self.longest / 2.0;
        }
    }

    /// The copy had written `done` entries, and `left` entries are left.
    fn was_right(&mut self, delay: f64, done: u32, left: u32) {
        let time = (delay - self.shortest).max(delay / 10.0);
        self.longest = self.shortest + time * f64::from(left) / f64::from(done);
    }
}

impl KilledCopy<'_> {
    /// Kills the copy at random points. Returns the number of entries in the target after each
    /// kill. A copy that was complete before the signal is made again, to a new target.
    fn kill(&mut self, kills: usize, mut fresh: impl FnMut() -> String) -> Vec<u32> {
        let (keys, mut stops, mut attempts) = (self.contents.keys, Vec::new(), 0);
        while stops.len() < kills {
            attempts += 1;
            assert!(attempts < 40 * kills, "killed before the end: {stops:?}");
            let before = stops.last().copied().unwrap_or(0);
            let delay = self.delays.some(kills - stops.len());
            let is_killed = self.start_and_kill(Duration::from_secs_f64(delay));
            match self.copied() {
                copied if !is_killed || copied == keys => {
                    self.delays.was_long(delay);
                    self.to = fresh();
                    stops.clear();
                }
                copied if copied == before => self.delays.was_short(delay),
                copied => {
                    self.delays.was_right(delay, copied - before, keys - copied);
                    stops.push(copied);
                }
            }
        }
        stops
    }

    /// Whether the signal ended the copy.
    fn start_and_kill(&self, delay: Duration) -> bool {
        let mut child = piped(&self.arguments());
        std::thread::sleep(delay);
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        let is_killed = output.status.signal() == Some(9);
        assert!(is_killed || output.status.success(), "{output:?}");
        is_killed
    }

    fn arguments(&self) -> [&str; 5] {
        ["copy", self.from, &self.to, "--write", "--create"]
    }

    /// The number of entries that were copied.
    fn copied(&self) -> u32 {
        // A copy that is killed early leaves no store.
        match self.to.split_once(':') {
            Some((_, path)) if !path.starts_with("//") && !Path::new(path).exists() => 0,
            _ => self.contents.copied(&self.to).unwrap(),
        }
    }

    fn finish(&self, stop: u32) {
        let Ran { code, out, err } = run(&self.arguments());
        assert_eq!(code, 0, "{err}");
        assert!(stop == 0 || err.contains("continues after"), "{err}");
        let copied = out.split(' ').nth(1).unwrap().replace(',', "");
        // A transaction that the server had received may have been committed after the kill.
        assert!(copied.parse::<u32>().unwrap() <= self.contents.keys - stop, "{out} after {stop}");
    }
}

/// The copy is complete; with a changed value or without one of its keys, it is not.
fn controls(contents: Contents, from: &str, to: &str) {
    assert_eq!(contents.copied(to), Ok(contents.keys));
    assert_eq!(fine(&["diff", from, to]), "");
    // Not the last entry, after which a copy continues.
    let (key, value) = Contents::entry(fastrand::u32(..contents.keys - 1));
    let other = [&value[..], b"."].concat();
    for (new, sign) in [(Some(&other[..]), "~ "), (None, "- ")] {
        set(to, &key, new);
        assert_ne!(contents.copied(to), Ok(contents.keys));
        let ran = run(&["diff", from, to]);
        assert_eq!((ran.code, ran.out.lines().count()), (1, 1), "{}{}", ran.out, ran.err);
        assert!(ran.out.starts_with(sign), "{}", ran.out);
        let Ran { code, err, .. } = run(&["copy", from, to, "--write"]);
        assert!(code == 2 && err.contains("differ"), "{code}: {err}");
        set(to, &key, Some(&value));
    }
    assert_eq!(fine(&["diff", from, to]), "");
}
