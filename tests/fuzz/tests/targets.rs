//! The fuzz targets without a fuzzer: the seed corpus and its mutations satisfy every law, and the
//! same inputs find the flaws of the controls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::LazyLock;

use keyloom_fuzz::{CONTROLS, TARGETS, Target};

/// The number of mutations per target. The environment variable `KEYLOOM_FUZZ_INPUTS` sets it.
fn inputs() -> usize {
    std::env::var("KEYLOOM_FUZZ_INPUTS").map_or(600, |count| count.parse().unwrap())
}

/// The seed of all random choices: a new one each time, or `KEYLOOM_FUZZ_SEED`.
fn seed() -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| match std::env::var("KEYLOOM_FUZZ_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) => fastrand::u64(..),
    });
    *SEED
}

/// The seeds of a target, sorted by name. A control uses the seeds of the target that it breaks.
fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let name = target.name.strip_prefix("control_").unwrap_or(target.name);
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut files: Vec<_> =
        directory.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// The seeds, and then seeds changed in up to four places; some inputs are completely random.
fn all_inputs(target: &Target, count: usize) -> impl Iterator<Item = Vec<u8>> {
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "{} has no seeds", target.name);
    let mut random = fastrand::Rng::with_seed(seed());
    let mutations = seeds.clone();
    let mutations = (0..count).map(move |_| mutated(&mutations, &mut random));
    seeds.into_iter().chain(mutations)
}

fn mutated(seeds: &[Vec<u8>], random: &mut fastrand::Rng) -> Vec<u8> {
    const TELLING: [u8; 10] = [0x00, 0x01, 0x02, 0x05, 0x14, 0x15, 0x40, 0x61, 0xFE, 0xFF];
    let mut input = seeds[random.usize(..seeds.len())].clone();
    if random.u8(..8) == 0 {
        input = (0..random.usize(..200)).map(|_| random.u8(..)).collect();
    }
    for _ in 0..random.usize(1..=4) {
        let at = random.usize(..=input.len());
        let byte = if random.bool() { TELLING[random.usize(..10)] } else { random.u8(..) };
        match random.u8(..6) {
            0 => input.insert(at, byte),
            1 => input.truncate(at.max(1)),
            2 => input.push(byte),
            3 => {
                let other = &seeds[random.usize(..seeds.len())];
                input.truncate(at);
                input.extend(&other[random.usize(..=other.len())..]);
            }
            4 if at < input.len() => input[at] ^= 1 << random.u8(..8),
            _ if at < input.len() => input[at] = byte,
            _ => input.push(byte),
        }
    }
    input
}

fn holds(name: &str) {
    let target = keyloom_fuzz::target(name).unwrap();
    let mut count = 0;
    for input in all_inputs(&target, inputs()) {
        count += 1;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(&input))) {
            println!("{name} does not hold for {}", input.escape_ascii());
            println!("again: KEYLOOM_FUZZ_SEED={} cargo test -p keyloom-fuzz {name}", seed());
            std::panic::resume_unwind(panic);
        }
    }
    println!("{name}: {count} inputs, seed {}", seed());
}

macro_rules! holds {
    ($($name:ident)+) => {
        $(#[test]
        fn $name() {
            holds(stringify!($name));
        })+

        #[test]
        fn every_target_has_a_test() {
            let tested = [$(stringify!($name)),+];
            assert_eq!(TARGETS.map(|target| target.name), tested);
        }
    };
}

holds! {
    key_bytes key_order ranges values continuations index_entries operations addresses bitmaps lmdb_files
    path_patterns trees queries posting_blocks
}

#[test]
fn what_is_broken_on_purpose_is_found() {
    for control in CONTROLS {
        let found = all_inputs(&control, 20_000)
            .position(|input| catch_unwind(AssertUnwindSafe(|| (control.run)(&input))).is_err());
        println!("{}: found by input {found:?}, seed {}", control.name, seed());
        assert!(found.is_some(), "{} is not found with seed {}", control.name, seed());
    }
}
