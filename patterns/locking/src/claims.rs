//! Claims: the modes that a request holds or awaits on each resource, and which claims exclude each
//! other.
//!
//! A lock on a resource claims its mode on that resource and an intention on each ancestor. Claims
//! are entries of an index on the requests. So the claims on a resource are adjacent, sorted by
//! mode. A request reads only the modes that exclude its own: a thousand intentions on the root
//! cost nothing to another intention.
//!
//! Held and waiting claims are stored separately. Waiting claims are sorted from the latest ticket
//! to the earliest, so a range that starts after a ticket starts with the predecessor of that
//! ticket.

use std::collections::BTreeMap;

use keyloom::key::Element;
use keyloom::{KeyRange, Result, pack};
use keyloom_tables::{IndexEntries, entry};

use crate::path::{PathPart, packed};
use crate::records::Request;
use crate::{Lock, Mode};

/// The parts of a claim in the index: the path, the group, the kind, the first name of a range, the
/// position in the group.
pub(crate) type ClaimParts = (PathPart, i64, i64, Vec<u8>, u64);

/// The covered fields: the fencing token, and the end of a range.
pub(crate) type ClaimFields = (u64, Vec<u8>);

/// The group of granted claims on the resource itself, from the earliest ticket.
const HELD: i64 = 0;

/// The group of waiting claims on the resource itself, from the latest ticket.
const WAITING: i64 = 1;

/// The group of claims on ranges of children, granted or waiting.
const RANGES: i64 = 2;

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
    /// The ends of the ranges of children, keyed by the names of the parent, the mode and the
    /// start.
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

    /// The index entries of these claims.
    fn entries(self, ticket: u64, token: u64) -> IndexEntries<ClaimParts> {
        let (group, position) = match token {
            0 => (WAITING, position_in_queue(ticket)),
            _ => (HELD, ticket),
        };
        let on_resources = self.modes.into_iter().map(|(names, mode)| {
            entry((PathPart(names), group, kind(mode), Vec::new(), position))
                .covering((token, Vec::new()))
        });
        let on_ranges = self.ranges.into_iter().map(|((names, mode, from), to)| {
            entry((PathPart(names), RANGES, range_kind(mode), from, 0_u64)).covering((token, to))
        });
        on_resources.chain(on_ranges).collect()
    }

    /// Whether any of these claims excludes a claim of `other`.
    pub(crate) fn exclude(&self, other: &Self) -> bool {
        let on_resources = self.modes.iter().any(|(names, mode)| {
            other.modes.get(names).is_some_and(|held| !mode.is_compatible(*held))
        });
        on_resources || self.ranges_exclude(other) || other.ranges_exclude(self)
    }

    /// Whether a range of these claims excludes a claim of `other`.
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

    /// Whether these claims hold the resource in a mode that excludes `mode`.
    pub(crate) fn exclude_mode(&self, (names, mode): &(Vec<Element>, Mode)) -> bool {
        self.modes.get(names).is_some_and(|held| !held.is_compatible(*mode))
    }

    /// The ranges to read to decide whether the claims of a request with this ticket can be
    /// granted. With the ticket 0, the ranges of waiting claims on resources are left out.
    pub(crate) fn questions(&self, ticket: u64) -> Vec<Question> {
        let mut all = Vec::new();
        for (names, mode) in &self.modes {
            all.extend(held_on_resource(names, *mode));
            if ticket > 0 {
                all.extend(waiting_for_resource(names, *mode, ticket));
            }
            all.extend(around(names, *mode));
        }
        for ((names, mode, from), to) in &self.ranges {
            all.extend(on_range(names, *mode, from, to));
        }
        all
    }
}

/// The index entries of a request. A request with a damaged path has none; a check reports it.
pub(crate) fn entries(ticket: u64, request: &Request) -> IndexEntries<ClaimParts> {
    match Claims::of(&request.locks) {
        Ok(claims) => claims.entries(ticket, request.token),
        Err(_) => IndexEntries::none(),
    }
}

/// The position in the queue: the later the ticket, the smaller the position.
fn position_in_queue(ticket: u64) -> u64 {
    u64::MAX - ticket
}

/// A range of claims to read, relative to the index, and which of its claims exclude the request.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Vec<u8>,
    excludes: Excludes,
    pub(crate) order: ClaimOrder,
}

/// The kind of claims in the range of a [`Question`], and the order in which they are read.
#[derive(Debug)]
pub(crate) enum ClaimOrder {
    /// Held claims: one of them suffices to block.
    Held,
    /// Claims that wait for this resource in this mode, from the nearest predecessor.
    Nearest((Vec<Element>, Mode)),
    /// Claims in the order of names: the nearest predecessor may be anywhere in the range.
    ByName,
}

#[derive(Debug)]
enum Excludes {
    /// All claims.
    All,
    /// Ranges that end after this name.
    EndingAfter(Vec<u8>),
    /// Claims of kinds that exclude a range in this mode.
    Range(Mode),
}

impl Question {
    /// Whether a claim of the kind `claim`, whose range ends at `to`, excludes the request.
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

    /// The range of keys in the subspace with this prefix.
    pub(crate) fn range(&self, prefix: &[u8]) -> KeyRange<'static> {
        let [start, end] = [&self.start, &self.end].map(|bytes| [prefix, bytes].concat());
        KeyRange::half_open(&start, &end).into_owned()
    }
}

/// The first key of the claims on a resource in this group, from this kind on.
fn from_kind(names: &[Element], group: i64, kind: i64) -> Vec<u8> {
    [packed(names, false).as_slice(), &pack(&(group, kind))].concat()
}

/// The claims that wait for the resource itself before this ticket, in modes that exclude `mode`:
/// one range per mode, which starts with the nearest predecessor.
fn waiting_for_resource(
    names: &[Element],
    mode: Mode,
    ticket: u64,
) -> impl Iterator<Item = Question> {
    let excluding = Mode::ALL.into_iter().filter(move |other| !mode.is_compatible(*other));
    excluding.map(move |other| {
        let all = from_kind(names, WAITING, kind(other));
        let nearest = position_in_queue(ticket).saturating_add(1);
        Question {
            start: [all.as_slice(), &pack(&(Vec::<u8>::new(), nearest))].concat(),
            end: from_kind(names, WAITING, kind(other) + 1),
            excludes: Excludes::All,
            order: ClaimOrder::Nearest((names.to_vec(), other)),
        }
    })
}

/// The held claims on the resource itself, in modes that exclude `mode`.
fn held_on_resource(names: &[Element], mode: Mode) -> impl Iterator<Item = Question> {
    // Each run is a half-open range of the kinds that exclude `mode`. A test compares the runs with
    // `Mode::is_compatible`.
    let runs: &[(i64, i64)] = match mode {
        Mode::IntentShared => &[(4, 5)],
        Mode::IntentExclusive => &[(2, 5)],
        Mode::Shared => &[(1, 2), (3, 5)],
        Mode::SharedIntentExclusive => &[(1, 5)],
        Mode::Exclusive => &[(0, 5)],
    };
    runs.iter().map(|&(first, end)| Question {
        start: from_kind(names, HELD, first),
        end: from_kind(names, HELD, end),
        excludes: Excludes::All,
        order: ClaimOrder::Held,
    })
}

/// The claims on ranges of siblings that contain the resource, in modes that exclude `mode`.
fn around(names: &[Element], mode: Mode) -> impl Iterator<Item = Question> {
    let found = names.split_last().map(|(name, parent)| {
        let name = pack(name).to_vec();
        let kinds = match mode {
            Mode::IntentShared | Mode::Shared => RANGE_EXCLUSIVE..=RANGE_EXCLUSIVE,
            _ => RANGE_SHARED..=RANGE_EXCLUSIVE,
        };
        kinds.map(move |kind| Question {
            start: from_kind(parent, RANGES, kind),
            // The keys of ranges that begin at the name have further elements after the name.
            end: [from_kind(parent, RANGES, kind).as_slice(), &pack(&name), &[0xFF]].concat(),
            excludes: Excludes::EndingAfter(name.clone()),
            order: ClaimOrder::ByName,
        })
    });
    found.into_iter().flatten()
}

/// The claims that exclude a range of children: claims on the children, and other ranges.
fn on_range(names: &[Element], mode: Mode, from: &[u8], to: &[u8]) -> Vec<Question> {
    let open = packed(names, true);
    let children = Question {
        start: [&open, from].concat(),
        end: [&open, to].concat(),
        excludes: Excludes::Range(mode),
        order: ClaimOrder::ByName,
    };
    let kinds = match mode {
        Mode::Exclusive => RANGE_SHARED..=RANGE_EXCLUSIVE,
        _ => RANGE_EXCLUSIVE..=RANGE_EXCLUSIVE,
    };
    let others = kinds.map(|kind| Question {
        start: from_kind(names, RANGES, kind),
        end: [from_kind(names, RANGES, kind).as_slice(), &pack(&to)].concat(),
        excludes: Excludes::EndingAfter(from.to_vec()),
        order: ClaimOrder::ByName,
    });
    [children].into_iter().chain(others).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use keyloom::pack;

    use super::{
        Claims, Excludes, HELD, Mode, RANGES, WAITING, from_kind, held_on_resource, kind,
        position_in_queue, range_kind, waiting_for_resource,
    };
    use crate::{Lock, LockPath};

    /// Names in the order of their keys, each a prefix of the next ones.
    const NAMES: [&str; 4] = ["", "a", "a\0", "a\0a"];

    fn random(random: &mut fastrand::Rng) -> Lock {
        let path = LockPath::of((0..random.usize(0..3)).map(|_| NAMES[random.usize(0..3)]));
        let from = random.usize(0..3);
        let [from, to] = [from, random.usize(from + 1..4)].map(|n| NAMES[n]);
        match random.u8(0..3) {
            0 => Lock::exclusive_range(path, from, to),
            1 => Lock::shared_range(path, from, to),
            _ => Lock::new(path, Mode::ALL[random.usize(0..5)]),
        }
    }

    /// Whether a request for `wanted` with the ticket 9 reads a claim of `other` that excludes it.
    /// `other` is held, or waits with the ticket `waits`.
    fn is_read(wanted: &Claims, other: &Claims, waits: Option<u64>) -> bool {
        let (group, position) = match waits {
            Some(ticket) => (WAITING, position_in_queue(ticket)),
            None => (HELD, 7),
        };
        let on_resources = other.modes.iter().map(|(names, mode)| {
            let start = from_kind(names, group, kind(*mode));
            (start, kind(*mode), Vec::new(), position, Vec::new())
        });
        let on_ranges = other.ranges.iter().map(|((names, mode, from), to)| {
            let kind = range_kind(*mode);
            (from_kind(names, RANGES, kind), kind, from.clone(), 0, to.clone())
        });
        let claims: Vec<_> = on_resources.chain(on_ranges).collect();
        wanted.questions(9).iter().any(|question| {
            claims.iter().any(|(start, kind, from, position, to)| {
                let key = [start.as_slice(), &pack(&(from, position, (7, 7)))].concat();
                (question.start <= key && key < question.end) && question.is_excluded_by(*kind, to)
            })
        })
    }

    /// Compares the two ways to find exclusion: the keys that a request reads, and its claims.
    #[test]
    fn claims_exclude_what_a_request_reads() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut excluded = 0;
        for _ in 0..20_000 {
            let [one, two] = [(); 2].map(|()| [random(&mut rng), random(&mut rng)]);
            let [a, b] = [&one, &two].map(|locks| Claims::of(locks).unwrap());
            assert_eq!(a.exclude(&b), is_read(&a, &b, None), "{one:?} {two:?}");
            assert_eq!(a.exclude(&b), is_read(&a, &b, Some(8)), "{one:?} {two:?}");
            assert_eq!(a.exclude(&b), b.exclude(&a), "{one:?} {two:?}");
            excluded += usize::from(a.exclude(&b));
        }
        assert!((5_000..19_000).contains(&excluded), "{excluded}");
    }

    #[test]
    fn reads_exactly_the_modes_that_exclude() {
        for mode in Mode::ALL {
            let questions: Vec<_> = held_on_resource(&[], mode).collect();
            for other in Mode::ALL {
                let key = from_kind(&[], HELD, kind(other));
                let is_read = questions.iter().any(|q| q.start <= key && key < q.end);
                assert_eq!(is_read, !mode.is_compatible(other), "{mode} {other}");
            }
            assert!(questions.iter().all(|q| matches!(q.excludes, Excludes::All)));
        }
    }

    /// A request reads only earlier tickets in excluding modes, the nearest ticket first.
    #[test]
    fn a_queue_is_read_from_the_nearest_predecessor() {
        let key = |mode, ticket: u64| {
            let after = pack(&(Vec::<u8>::new(), position_in_queue(ticket), (7, ticket)));
            [from_kind(&[], WAITING, kind(mode)).as_slice(), &after].concat()
        };
        let tickets = [1, 2, 254, 255, 256, 257, u64::MAX - 1];
        for (mode, ticket) in Mode::ALL.into_iter().flat_map(|mode| tickets.map(|t| (mode, t))) {
            let questions: Vec<_> = waiting_for_resource(&[], mode, ticket).collect();
            for other in Mode::ALL {
                let read = tickets.map(|other_ticket| {
                    let key = key(other, other_ticket);
                    questions.iter().any(|q| q.start <= key && key < q.end)
                });
                let expected = tickets.map(|t| t < ticket && !mode.is_compatible(other));
                assert_eq!(read, expected, "{mode} {ticket} {other}");
            }
        }
        assert!(key(Mode::Exclusive, 256) < key(Mode::Exclusive, 255));
    }
}
