//! keyloom compared with its alternatives.
//!
//! The speed of one machine varies within a second, with its clock and with the load of its
//! neighbours. So contenders are not measured one after the other but in turns, in small batches,
//! and compared within a round. The median over the rounds is the result; times are printed for
//! orientation.

pub mod peers;
pub mod places;
pub mod rmat;
pub mod rows;
pub mod text;

use std::time::{Duration, Instant};

/// A name, and a closure that runs one batch of the common work.
pub type Contender<'c> = (&'c str, &'c mut dyn FnMut());

/// The comparison of the first contender with another one.
#[derive(Clone, Debug)]
pub struct Ratio {
    /// The name of the other contender.
    pub peer: String,
    /// The first contender's time divided by the other's, in the median round. Below 1 the first
    /// one is faster.
    pub median: f64,
    /// The first and third quartile of the rounds.
    pub quartiles: (f64, f64),
}

/// A name, and a closure that runs one batch and returns its time.
pub type Timed<'c> = (&'c str, &'c mut dyn FnMut() -> Duration);

/// Lets the contenders run in turns for `rounds` rounds and prints how the first one compares with
/// each of the others.
///
/// One call of a closure runs one batch of `operations`. A batch should take some tens of
/// microseconds, short enough that all contenders of a round find the machine in the same state.
pub fn compare(
    name: &str,
    operations: usize,
    rounds: usize,
    contenders: &mut [Contender<'_>],
) -> Vec<Ratio> {
    let mut clocked: Vec<_> = contenders
        .iter_mut()
        .map(|(name, batch)| {
            let timed = move || {
                let start = Instant::now();
                batch();
                start.elapsed()
            };
            (*name, timed)
        })
        .collect();
    let mut timed: Vec<Timed<'_>> =
        clocked.iter_mut().map(|(name, batch)| (*name, batch as &mut dyn FnMut() -> _)).collect();
    compare_timed(name, operations, rounds, &mut timed)
}

/// Like [`compare`], for contenders that measure their own time, such as a server that reports it.
pub fn compare_timed(
    name: &str,
    operations: usize,
    rounds: usize,
    contenders: &mut [Timed<'_>],
) -> Vec<Ratio> {
    let rounds = rows::most_rounds().map_or(rounds, |most| rounds.min(most));
    let mut times: Vec<Vec<Duration>> = vec![Vec::with_capacity(rounds); contenders.len()];
    // Untimed rounds (a tenth, at least one) warm the caches and branch predictors.
    let untimed = rounds.div_ceil(10);
    for round in 0..rounds + untimed {
        let turns = contenders.len();
        for turn in 0..turns {
            // Each round starts with a different contender, so that no contender always follows the
            // same one.
            let who = (round + turn) % turns;
            let (Some((_, batch)), Some(times)) = (contenders.get_mut(who), times.get_mut(who))
            else {
                continue;
            };
            let time = batch();
            if round >= untimed {
                times.push(time);
            }
        }
    }
    let names: Vec<&str> = contenders.iter().map(|(name, _)| *name).collect();
    report(name, operations, &names, &times)
}

fn report(
    name: &str,
    operations: usize,
    contenders: &[&str],
    times: &[Vec<Duration>],
) -> Vec<Ratio> {
    let Some((first, own)) = contenders.first().zip(times.first()) else {
        return Vec::new();
    };
    println!("{name:<38} {first} {:.1} ns", nanoseconds(own) / operations as f64);
    let (mut ratios, rounds) = (Vec::new(), own.len());
    for (peer, theirs) in contenders.iter().zip(times).skip(1) {
        let each = own.iter().zip(theirs).map(|(a, b)| a.as_secs_f64() / b.as_secs_f64()).collect();
        let [low, median, high] = quartiles(each);
        let time = nanoseconds(theirs) / operations as f64;
        println!(
            "    {median:>6.2} of {peer:<26} {time:>7.1} ns   (quartiles {low:.2} .. {high:.2})"
        );
        rows::append(&rows::Row {
            bench: rows::bench(),
            what: name.to_owned(),
            first: (*first).to_owned(),
            peer: (*peer).to_owned(),
            ratio: median,
            quartiles: (low, high),
            nanoseconds: (nanoseconds(own) / operations as f64, time),
            rounds,
        });
        ratios.push(Ratio { peer: (*peer).to_owned(), median, quartiles: (low, high) });
    }
    ratios
}

fn nanoseconds(times: &[Duration]) -> f64 {
    quartiles(times.iter().map(|time| time.as_secs_f64() * 1e9).collect())[1]
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values.get(values.len() * quarter / 4).copied().unwrap_or(f64::NAN))
}
