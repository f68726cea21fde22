//! Claims: what a request puts on each resource, and which claims exclude each other.
//!
//! A lock on a resource claims its mode there and an intention on each ancestor. Claims are the
//! entries of an index of the requests, so that the claims on a resource are adjacent, by mode. A
//! request reads only the modes that exclude its own: a thousand intentions on the root cost
//! nothing to another intention.

use std::collections::BTreeMap;

use keyloom::key::Element;
use keyloom::{KeyRange, Result, pack};
use keyloom_tables::{IndexEntries, entry};

use crate::path::{PathPart, packed};
use crate::records::Request;
use crate::{Lock, Mode};

/// The parts of a claim in the index: the path, the kind, the first name of a range.
pub(crate) type ClaimParts = (PathPart, i64, Vec<u8>);

/// The covered fields: the fencing token, and the end of a range.
pub(crate) type ClaimFields = (u64, Vec<u8>);

/// The kind of a claim on a range of children: shared.
const RANGE_SHARED: i64 = 5;

/// The kind of a claim on a range of children: exclusive.
const RANGE_EXCLUSIVE: i64 = 6;

/// The kind of a claim on the resource itself.
fn kind(mode: Mode) -> i64 {
    mode as i64
}

fn range_kind(mode: Mode) -> i64 {
    if mode == Mode::Exclusive { RANGE_EXCLUSIVE } else { RANGE_SHARED }
}

/// The claims of a request.
#[derive(Debug)]
pub(crate) struct Claims {
    /// The mode on each resource, by the names of its path.
    pub(crate) modes: BTreeMap<Vec<Element>, Mode>,
    /// The ends of the ranges of children, by the names of the parent, the mode and the beginning.
    ranges: BTreeMap<(Vec<Element>, Mode, Vec<u8>), Vec<u8>>,
}

impl Claims {
    pub(crate) fn of(locks: &[Lock]) -> Result<Self> {
        let mut claims = Self { modes: BTreeMap::new(), ranges: BTreeMap::new() };
        for lock in locks {
            let names = lock.path.elements()?;
            let at_path = match &lock.range {
                None => lock.mode,
                Some((from, to)) => {
                    let key = (names.clone(), lock.mode, from.clone());
                    let end = claims.ranges.entry(key).or_default();
                    *end = to.clone().max(std::mem::take(end));
                    lock.mode.intention()
                }
            };
            claims.add(&names, at_path);
            for length in 0..names.len() {
                claims.add(names.get(..length).unwrap_or_default(), lock.mode.intention());
            }
        }
        Ok(claims)
    }

    fn add(&mut self, names: &[Element], mode: Mode) {
        let all = self.modes.entry(names.to_vec()).or_insert(mode);
        *all = all.with(mode);
    }

    /// The entries of the index.
    fn entries(self, token: u64) -> IndexEntries<ClaimParts> {
        let on_resources = self.modes.into_iter().map(|(names, mode)| {
            entry((PathPart(names), kind(mode), Vec::new())).covering((token, Vec::new()))
        });
        let on_ranges = self.ranges.into_iter().map(|((names, mode, from), to)| {
            entry((PathPart(names), range_kind(mode), from)).covering((token, to))
        });
        on_resources.chain(on_ranges).collect()
    }

    /// Whether a claim of these excludes one of the others.
    pub(crate) fn exclude(&self, other: &Self) -> bool {
        let on_resources = self.modes.iter().any(|(names, mode)| {
            other.modes.get(names).is_some_and(|held| !mode.is_compatible(*held))
        });
        on_resources || self.ranges_exclude(other) || other.ranges_exclude(self)
    }

    /// Whether a range of these excludes a claim of the others.
    fn ranges_exclude(&self, other: &Self) -> bool {
        self.ranges.iter().any(|((parent, mode, from), to)| {
            let is_inside = |names: &[Element]| match names.strip_prefix(parent.as_slice()) {
                Some([name, ..]) => (from.as_slice()..to.as_slice()).contains(&&*pack(name)),
                _ => false,
            };
            let on_children = other
                .modes
                .iter()
                .any(|(names, held)| is_inside(names) && !mode.is_compatible(*held));
            let on_ranges = other.ranges.iter().any(|((names, held, start), end)| {
                names == parent && !mode.is_compatible(*held) && start < to && from < end
            });
            on_children || on_ranges
        })
    }

    /// What must be read to know whether the claims can be granted.
    pub(crate) fn questions(&self) -> Vec<Question> {
        let mut all = Vec::new();
        for (names, mode) in &self.modes {
            all.extend(on_resource(names, *mode));
            all.extend(around(names, *mode));
        }
        for ((names, mode, from), to) in &self.ranges {
            all.extend(on_range(names, *mode, from, to));
        }
        all
    }
}

/// The index entries of a request. A damaged path has none; a check reports it.
pub(crate) fn entries(request: &Request) -> IndexEntries<ClaimParts> {
    match Claims::of(&request.locks) {
        Ok(claims) => claims.entries(request.token),
        Err(_) => IndexEntries::none(),
    }
}

/// A range of claims to read, relative to the index, and which claims in it exclude.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Vec<u8>,
    excludes: Excludes,
}

#[derive(Debug)]
enum Excludes {
    /// All.
    All,
    /// Ranges that end after this name.
    EndingAfter(Vec<u8>),
    /// Claims of kinds that exclude a range in this mode.
    Range(Mode),
}

impl Question {
    /// Whether a claim of this kind, with the end of its range, excludes.
    pub(crate) fn is_excluded_by(&self, claim: i64, to: &[u8]) -> bool {
        match &self.excludes {
            Excludes::All => true,
            Excludes::EndingAfter(name) => to > name.as_slice(),
            Excludes::Range(mode) => match Mode::ALL.iter().find(|mode| kind(**mode) == claim) {
                Some(other) => !mode.is_compatible(*other),
                None => *mode == Mode::Exclusive || claim == RANGE_EXCLUSIVE,
            },
        }
    }

    /// The range in the subspace with this prefix.
    pub(crate) fn range(&self, prefix: &[u8]) -> KeyRange<'static> {
        let [start, end] = [&self.start, &self.end].map(|bytes| [prefix, bytes].concat());
        KeyRange::half_open(&start, &end).into_owned()
    }
}

/// The bytes of the key of claims on a resource of this kind and after.
fn from_kind(names: &[Element], kind: i64) -> Vec<u8> {
    [packed(names, false).as_slice(), &pack(&kind)].concat()
}

/// The claims on the resource itself, in modes that exclude.
fn on_resource(names: &[Element], mode: Mode) -> impl Iterator<Item = Question> {
    // A test compares the runs with `Mode::is_compatible`.
    let runs: &[(i64, i64)] = match mode {
        Mode::IntentShared => &[(4, 5)],
        Mode::IntentExclusive => &[(2, 5)],
        Mode::Shared => &[(1, 2), (3, 5)],
        Mode::SharedIntentExclusive => &[(1, 5)],
        Mode::Exclusive => &[(0, 5)],
    };
    runs.iter().map(|&(first, end)| Question {
        start: from_kind(names, first),
        end: from_kind(names, end),
        excludes: Excludes::All,
    })
}

/// The ranges of children of the parent that contain the resource.
fn around(names: &[Element], mode: Mode) -> impl Iterator<Item = Question> {
    let found = names.split_last().map(|(name, parent)| {
        let name = pack(name).to_vec();
        let kinds = match mode {
            Mode::IntentShared | Mode::Shared => RANGE_EXCLUSIVE..=RANGE_EXCLUSIVE,
            _ => RANGE_SHARED..=RANGE_EXCLUSIVE,
        };
        kinds.map(move |kind| Question {
            start: from_kind(parent, kind),
            // The ranges that begin at the name have further elements after it.
            end: [from_kind(parent, kind).as_slice(), &pack(&name), &[0xFF]].concat(),
            excludes: Excludes::EndingAfter(name.clone()),
        })
    });
    found.into_iter().flatten()
}

/// What excludes a range of children: claims on the children, and other ranges.
fn on_range(names: &[Element], mode: Mode, from: &[u8], to: &[u8]) -> Vec<Question> {
    let open = packed(names, true);
    let children = Question {
        start: [&open, from].concat(),
        end: [&open, to].concat(),
        excludes: Excludes::Range(mode),
    };
    let kinds = match mode {
        Mode::Exclusive => RANGE_SHARED..=RANGE_EXCLUSIVE,
        _ => RANGE_EXCLUSIVE..=RANGE_EXCLUSIVE,
    };
    let others = kinds.map(|kind| Question {
        start: from_kind(names, kind),
        end: [from_kind(names, kind).as_slice(), &pack(&to)].concat(),
        excludes: Excludes::EndingAfter(from.to_vec()),
    });
    [children].into_iter().chain(others).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use keyloom::pack;

    use super::{Claims, Excludes, Mode, from_kind, kind, on_resource, range_kind};
    use crate::{Lock, LockPath};

    fn random(random: &mut fastrand::Rng) -> Lock {
        let path = LockPath::of((0..random.usize(0..3)).map(|_| random.u8(0..3)));
        let from = random.u8(0..3);
        match random.u8(0..3) {
            0 => Lock::exclusive_range(path, from, random.u8(from + 1..4)),
            1 => Lock::shared_range(path, from, random.u8(from + 1..4)),
            _ => Lock::new(path, Mode::ALL[random.usize(0..5)]),
        }
    }

    /// Whether a claim of `held` is in a range that a request of `wanted` reads, and excludes it.
    fn is_read(wanted: &Claims, held: &Claims) -> bool {
        let on_resources = held.modes.iter().map(|(names, mode)| {
            (from_kind(names, kind(*mode)), kind(*mode), Vec::new(), Vec::new())
        });
        let on_ranges = held.ranges.iter().map(|((names, mode, from), to)| {
            let kind = range_kind(*mode);
            (from_kind(names, kind), kind, from.clone(), to.clone())
        });
        let claims: Vec<_> = on_resources.chain(on_ranges).collect();
        wanted.questions().iter().any(|question| {
            claims.iter().any(|(start, kind, from, to)| {
                let key = [start.as_slice(), &pack(&(from, (7, 7)))].concat();
                (question.start <= key && key < question.end) && question.is_excluded_by(*kind, to)
            })
        })
    }

    /// The two ways to know what excludes: by the keys that a request reads, and by its claims.
    #[test]
    fn claims_exclude_what_a_request_reads() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut excluded = 0;
        for _ in 0..20_000 {
            let [one, two] = [(); 2].map(|()| [random(&mut rng), random(&mut rng)]);
            let [a, b] = [&one, &two].map(|locks| Claims::of(locks).unwrap());
            assert_eq!(a.exclude(&b), is_read(&a, &b), "{one:?} {two:?}");
            assert_eq!(a.exclude(&b), b.exclude(&a), "{one:?} {two:?}");
            excluded += usize::from(a.exclude(&b));
        }
        assert!((5_000..19_000).contains(&excluded), "{excluded}");
    }

    #[test]
    fn reads_exactly_the_modes_that_exclude() {
        for mode in Mode::ALL {
            let questions: Vec<_> = on_resource(&[], mode).collect();
            for other in Mode::ALL {
                let key = from_kind(&[], kind(other));
                let is_read = questions.iter().any(|q| q.start <= key && key < q.end);
                assert_eq!(is_read, !mode.is_compatible(other), "{mode} {other}");
            }
            assert!(questions.iter().all(|q| matches!(q.excludes, Excludes::All)));
        }
    }
}
