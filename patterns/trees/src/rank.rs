//! Ranks: sort keys of siblings (fractional indexing). A new rank fits between any two ranks.
//!
//! A rank is a number with a fraction. Encoded ranks sort bytewise in numeric order. The whole part
//! comes first, and its first byte encodes its length. The fraction follows, in base 256. A rank
//! before the first one decrements the whole part; a rank after the last one increments it. So
//! ranks at both ends stay short: 1 byte for the first 64, 4 bytes for millions. A rank between two
//! neighbours is a whole number if one fits between them; otherwise it gets a fraction.
//!
//! | first byte | whole part |
//! |---|---|
//! | `38`..=`3F` | 8 to 1 bytes follow, each inverted: less than -64 |
//! | `40`..=`BF` | -64 to 63 |
//! | `C0`..=`C7` | 1 to 8 bytes follow: 64 or more |
//!
//! A fraction never ends in a zero byte, so each number has exactly one encoding.

use smallvec::SmallVec;

/// The bytes of a rank.
pub(crate) type Rank = SmallVec<[u8; 16]>;

/// Siblings with ranks up to this length are not relabelled.
// Relabelling them would save only a few bytes, but rewrite them and, in paths, their subtrees.
pub(crate) const SHORT: usize = 4;

/// The number of places that are kept free between siblings for a number of new nodes.
// More nodes find room there, too: ranks in a gap of 1,000 places are at most a few bytes longer.
pub(crate) fn places(nodes: u64) -> usize {
    nodes.clamp(1, 1_000) as usize
}

/// A decoded rank.
struct Number<'r> {
    whole: i64,
    fraction: &'r [u8],
}

/// The valid whole parts. Counting up or down never reaches 2^62.
const WHOLE: std::ops::RangeInclusive<i64> = -(1 << 62)..=1 << 62;

fn parse(rank: &[u8]) -> Option<Number<'_>> {
    let (&head, rest) = rank.split_first()?;
    let (bytes, inverted) = match head {
        0x38..=0x3F => (0x40 - head, true),
        0x40..=0xBF => (0, head < 0x80),
        0xC0..=0xC7 => (head - 0xBF, false),
        _ => return None,
    };
    let (digits, fraction) = rest.split_at_checked(bytes.into())?;
    let whole = match (digits, inverted) {
        ([], _) => i64::from(head) - 0x80,
        (_, true) => -1 - big_endian(digits.iter().map(|digit| !digit))?,
        (_, false) => big_endian(digits.iter().copied())?,
    };
    // An encoding with more bytes than necessary would sort in the wrong place.
    let shortest = digits.is_empty() || rank.starts_with(&form(whole, &[]));
    let is_rank = shortest && WHOLE.contains(&whole) && fraction.last() != Some(&0);
    is_rank.then_some(Number { whole, fraction })
}

fn big_endian(digits: impl Iterator<Item = u8>) -> Option<i64> {
    let number = digits.fold(0_u64, |number, digit| number << 8 | u64::from(digit));
    i64::try_from(number).ok()
}

fn form(whole: i64, fraction: &[u8]) -> Rank {
    let mut rank = Rank::new();
    match whole {
        -64..=63 => rank.push((whole + 0x80) as u8),
        64.. => push_digits(&mut rank, whole.cast_unsigned(), |bytes| 0xBF + bytes, |digit| digit),
        _ => push_digits(&mut rank, !whole.cast_unsigned(), |bytes| 0x40 - bytes, |digit| !digit),
    }
    rank.extend_from_slice(fraction);
    rank
}

fn push_digits(rank: &mut Rank, number: u64, head: impl Fn(u8) -> u8, digit: impl Fn(u8) -> u8) {
    let digits = number.to_be_bytes();
    let zeros = number.leading_zeros() as usize / 8;
    rank.push(head(8 - zeros as u8));
    rank.extend(digits.iter().skip(zeros).map(|&byte| digit(byte)));
}

/// A rank after `low` and before `high`; `None` means that the side is unbounded.
///
/// Returns `None` if no such rank exists: `low` is not before `high`, or one of them is not a rank.
pub(crate) fn between(low: Option<&[u8]>, high: Option<&[u8]>) -> Option<Rank> {
    let (Some(low), Some(high)) = (low, high) else { return spread(low, high, 1)?.pop() };
    let (from, to) = (parse(low)?, parse(high)?);
    if low >= high {
        return None;
    }
    let (first, last) = whole_between(&from, &to);
    if first <= last {
        return Some(form(first + (last - first) / 2, &[]));
    }
    // The neighbour with the longer fraction was inserted later. Inserts are often sequential: the
    // next node probably goes between the new node and the other neighbour. So leave more room on
    // the side of the other neighbour.
    let (least, most) = match significant_bits(from.fraction).cmp(&significant_bits(to.fraction)) {
        std::cmp::Ordering::Greater => (2, 6),
        std::cmp::Ordering::Equal => (12, 20),
        std::cmp::Ordering::Less => (26, 30),
    };
    let gap = Gap::new(&from, &to);
    let part = |parts: u64| gap.at(parts, 32);
    Some(gap.shortest(&part(least), &part(most)))
}

/// The order in which siblings can get new ranks one by one, so that none passes another: first
/// the siblings that move to the front, from the first to the last; then the others, from the last
/// to the first. `ranks` are the old and the new rank of each sibling, both in ascending order.
// A sibling that moves to the front ends behind the one before it, which is at its new rank, or at
// an old rank before its new one. The same holds in the other direction.
pub(crate) fn in_turn<'r>(ranks: impl Iterator<Item = (&'r [u8], &'r [u8])>) -> Vec<usize> {
    let (mut to_front, mut to_back) = (Vec::new(), Vec::new());
    for (n, (old, new)) in ranks.enumerate() {
        match new.cmp(old) {
            std::cmp::Ordering::Less => to_front.push(n),
            std::cmp::Ordering::Greater => to_back.push(n),
            std::cmp::Ordering::Equal => {}
        }
    }
    to_front.extend(to_back.into_iter().rev());
    to_front
}

/// `count` ranks in order, after `low` and before `high`, as evenly spaced as short ranks allow.
///
/// Returns `None` in the same cases as [`between`].
pub(crate) fn spread(low: Option<&[u8]>, high: Option<&[u8]>, count: usize) -> Option<Vec<Rank>> {
    let wholes = |first: i64| (first..).take(count).map(|whole| form(whole, &[])).collect();
    match (low, high) {
        (None, None) => Some(wholes(0)),
        (Some(low), None) => Some(wholes(parse(low)?.whole + 1)),
        (None, Some(high)) => Some(wholes(parse(high)?.whole - i64::try_from(count).ok()?)),
        (Some(low), Some(high)) if low < high => Some(within(&parse(low)?, &parse(high)?, count)),
        _ => None,
    }
}

fn within(from: &Number<'_>, to: &Number<'_>, count: usize) -> Vec<Rank> {
    let (first, last) = whole_between(from, to);
    let (there, wanted) = (i128::from(last) - i128::from(first) + 1, count as i128);
    if there >= wanted {
        let whole = |n: i128| first + ((2 * n + 1) * there / (2 * wanted)) as i64;
        return (0..wanted).map(|n| form(whole(n), &[])).collect();
    }
    let gap = Gap::new(from, to);
    let parts = 4 * (count as u64 + 1);
    let place = |n: u64| gap.shortest(&gap.at(4 * n - 1, parts), &gap.at(4 * n + 1, parts));
    (1..=count as u64).map(place).collect()
}

/// The first and the last whole number between two numbers. If there is none, the returned last
/// number is less than the first.
fn whole_between(from: &Number<'_>, to: &Number<'_>) -> (i64, i64) {
    (from.whole + 1, to.whole - i64::from(to.fraction.is_empty()))
}

fn significant_bits(fraction: &[u8]) -> u32 {
    let zeros = fraction.last().map_or(0, |byte| byte.trailing_zeros());
    8 * fraction.len() as u32 - zeros
}

/// The number of bytes of the whole part in [`Digits`].
const WHOLE_BYTES: usize = 8;

/// Base-256 digits, most significant first.
type Digits = SmallVec<[u8; 64]>;

/// The interval between two numbers, relative to the whole part of the lower number. So no number
/// in it is negative.
struct Gap {
    base: i64,
    from: Digits,
    width: Digits,
}

impl Gap {
    fn new(from: &Number<'_>, to: &Number<'_>) -> Self {
        // A gap is at least one unit of its last digit, and is divided into fewer than 2^64 parts,
        // so 8 more digits distinguish the parts.
        let length = WHOLE_BYTES + from.fraction.len().max(to.fraction.len()) + 8;
        let digits = |number: &Number<'_>| {
            let whole = number.whole.wrapping_sub(from.whole).cast_unsigned();
            let mut digits = Digits::from_slice(&whole.to_be_bytes());
            digits.extend_from_slice(number.fraction);
            digits.resize(length, 0);
            digits
        };
        let (from_digits, mut width) = (digits(from), digits(to));
        subtract(&mut width, &from_digits);
        Self { base: from.whole, from: from_digits, width }
    }

    /// The number at `part / parts` of the gap.
    fn at(&self, part: u64, parts: u64) -> Digits {
        let mut number = self.width.clone();
        scale(&mut number, part, parts);
        add(&mut number, &self.from);
        number
    }

    /// The shortest rank after `low` and not after `high`.
    fn shortest(&self, low: &[u8], high: &[u8]) -> Rank {
        let shared = low.iter().zip(high).take_while(|(a, b)| a == b).count();
        let mut digits = Digits::from_slice(high.get(..=shared).unwrap_or(high));
        match digits.last_mut() {
            // Choose the middle of the values possible for this digit.
            Some(last) if shared >= WHOLE_BYTES => {
                let least = low.get(shared).copied().unwrap_or_default();
                *last = least + (*last - least).div_ceil(2);
            }
            _ => digits = Digits::from_slice(high.get(..WHOLE_BYTES).unwrap_or(high)),
        }
        let (whole, fraction) = digits.split_at(WHOLE_BYTES.min(digits.len()));
        form(self.base + big_endian(whole.iter().copied()).unwrap_or_default(), fraction)
    }
}

fn add(sum: &mut [u8], other: &[u8]) {
    let mut carry = 0;
    for (digit, other) in sum.iter_mut().zip(other).rev() {
        let total = u16::from(*digit) + u16::from(*other) + carry;
        *digit = total as u8;
        carry = total >> 8;
    }
}

fn subtract(difference: &mut [u8], other: &[u8]) {
    let mut borrow = false;
    for (digit, other) in difference.iter_mut().zip(other).rev() {
        let (less, first) = digit.overflowing_sub(*other);
        let (less, second) = less.overflowing_sub(borrow.into());
        *digit = less;
        borrow = first || second;
    }
}

/// Multiplies by a fraction of at most 1.
fn scale(number: &mut [u8], numerator: u64, denominator: u64) {
    // Long division from the most significant digit; `remainder` carries over to the next digit.
    let (numerator, denominator) = (u128::from(numerator), u128::from(denominator));
    let mut product: Vec<u64> = Vec::with_capacity(number.len());
    let mut remainder = 0_u128;
    for digit in number.iter() {
        let total = (remainder << 8) + u128::from(*digit) * numerator;
        product.push((total / denominator) as u64);
        remainder = total % denominator;
    }
    // A quotient may exceed a digit: carry the excess to the next higher digit.
    let mut carry = 0_u64;
    for (digit, quotient) in number.iter_mut().zip(product).rev() {
        let total = quotient + carry;
        *digit = total as u8;
        carry = total >> 8;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use keyloom::key::pack;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::{Rank, between, form, in_turn, parse, spread};

    /// Inserts ranks at the given positions, modulo the current length, and checks the order after
    /// each insert.
    fn build(places: impl IntoIterator<Item = usize>) -> Vec<Rank> {
        let mut ranks: Vec<Rank> = Vec::new();
        for place in places {
            let place = place % (ranks.len() + 1);
            let low = place.checked_sub(1).map(|before| &*ranks[before]);
            let rank = between(low, ranks.get(place).map(|rank| &**rank)).unwrap();
            assert!(low.is_none_or(|low| low < &*rank), "{low:?} {rank:?}");
            assert!(
                ranks.get(place).is_none_or(|high| rank < *high),
                "{rank:?} {:?}",
                ranks[place]
            );
            assert!(parse(&rank).is_some(), "{rank:?}");
            ranks.insert(place, rank);
        }
        ranks
    }

    fn longest(ranks: &[Rank]) -> usize {
        ranks.iter().map(|rank| rank.len()).max().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn order_is_kept_wherever_ranks_are_put(places in vec(any::<usize>(), 1..200)) {
            build(places);
        }

        #[test]
        fn order_is_kept_where_they_are_put_close_together(
            places in vec(prop_oneof![Just(3_usize), Just(4), 0..8_usize], 1..300)
        ) {
            build(places);
        }

        #[test]
        fn spread_ranks_lie_in_order_between_their_neighbours(
            places in vec(any::<usize>(), 2..60), at in any::<prop::sample::Index>(), count in 0..700_usize
        ) {
            let ranks = build(places);
            let at = at.index(ranks.len() + 1);
            let low = at.checked_sub(1).map(|before| &*ranks[before]);
            let high = ranks.get(at).map(|rank| &**rank);
            let spread = spread(low, high, count).unwrap();
            prop_assert_eq!(spread.len(), count);
            let all: Vec<&[u8]> = low.into_iter().chain(spread.iter().map(|rank| &**rank)).chain(high).collect();
            prop_assert!(all.is_sorted_by(|a, b| a < b));
            prop_assert!(spread.iter().all(|rank| parse(rank).is_some()));
            // Two bytes for the count, one for rounding, plus the length of the neighbours.
            let neighbours = low.map_or(0, <[u8]>::len).max(high.map_or(0, <[u8]>::len));
            prop_assert!(longest(&spread) <= neighbours + 3);
        }

        #[test]
        fn whole_numbers_sort_as_they_count(a in -(1_i64 << 62)..1 << 62, b in -(1_i64 << 62)..1 << 62, shift in 0..62) {
            let [a, b] = [a >> shift, b >> shift];
            let [one, other] = [a, b].map(|whole| form(whole, &[]));
            prop_assert_eq!(one.cmp(&other), a.cmp(&b));
            prop_assert_eq!(parse(&one).unwrap().whole, a);
            // Ranks sort the same way as elements of a packed key.
            let keys = [&one, &other].map(|rank| pack(&(rank.as_slice(), 1_u64)));
            prop_assert_eq!(keys[0].cmp(&keys[1]), a.cmp(&b));
        }

        #[test]
        fn what_is_no_rank_has_nothing_beside_it(bytes in vec(any::<u8>(), 0..12), other in vec(any::<u8>(), 0..12)) {
            // For arbitrary bytes, a returned rank is still between the bounds.
            if let Some(rank) = between(Some(&bytes), Some(&other)) {
                prop_assert!(bytes[..] < rank[..] && rank[..] < other[..]);
            }
            if let Some(rank) = between(Some(&bytes), None) {
                prop_assert!(bytes[..] < rank[..]);
            }
            if let Some(rank) = between(None, Some(&bytes)) {
                prop_assert!(rank[..] < bytes[..]);
            }
        }
    }

    #[test]
    fn spread_ranks_are_whole_numbers_far_apart_where_there_is_room() {
        let spread = spread(Some(&form(0, &[])), Some(&form(101, &[])), 4).unwrap();
        let wholes: Vec<_> = spread.iter().map(|rank| parse(rank).unwrap().whole).collect();
        assert_eq!(wholes, [13, 38, 63, 88]);
        assert_eq!(spread.iter().map(|rank| rank.len()).max(), Some(form(88, &[]).len()));
    }

    #[test]
    fn a_number_has_one_form() {
        // -63 and 5, -65 and 65, each in one byte more than necessary.
        for long in [&[0x3F, 193][..], &[0xC0, 5], &[0x3E, 0xFF, 191], &[0xC1, 0, 65]] {
            assert!(parse(long).is_none(), "{long:?}");
            assert_eq!(between(None, Some(long)), None);
            assert_eq!(between(Some(long), None), None);
        }
        for whole in [-(1 << 62), -65_537, -65, -64, -63, 0, 63, 64, 255, 256, 1 << 62] {
            assert_eq!(parse(&form(whole, &[])).unwrap().whole, whole);
        }
    }

    #[test]
    fn ranks_at_both_ends_stay_short() {
        assert_eq!(longest(&build((0..500).map(|_| 0))), 3);
        assert_eq!(longest(&build(0..500)), 3);
        let mut rank = between(None, None).unwrap();
        for _ in 0..1_000_000 {
            rank = between(Some(&rank), None).unwrap();
        }
        assert_eq!(rank.len(), 4);
    }

    #[test]
    fn runs_in_one_place_grow_slowly_and_random_places_hardly() {
        // `up` always inserts after the latest rank and before a fixed rank; `down` does the
        // reverse.
        let up = build((0..1_000).map(|n| n.max(1)).map(|n| if n < 3 { n } else { n - 1 }));
        let down = build((0..1_000).map(|n: usize| n.min(1)));
        let mut seed = 7_u64;
        let random = build((0..20_000).map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize
        }));
        // Measured: 25, 27 and 9 bytes; 4.39 on average at random positions.
        let [up, down, at_random] = [&up, &down, &random].map(|ranks| longest(ranks));
        assert!(up <= 27 && down <= 29 && at_random <= 10, "{up} up, {down} down, {at_random}");
        let total: usize = random.iter().map(|rank| rank.len()).sum();
        let mean = total as f64 / random.len() as f64;
        assert!(mean <= 4.6, "random ranks have {mean} bytes on average");
    }

    /// Whether ranks that change one by one, in this order, always stay in order.
    fn stay_in_order(old: &[u8], new: &[u8], turns: &[usize]) -> bool {
        let mut ranks = old.to_vec();
        turns.iter().all(|n| {
            ranks[*n] = new[*n];
            ranks.is_sorted_by(|a, b| a < b)
        })
    }

    proptest! {
        #[test]
        fn no_sibling_passes_another(
            old in proptest::collection::btree_set(any::<u8>(), 1..40), new in proptest::collection::btree_set(any::<u8>(), 40),
        ) {
            let (old, new): (Vec<u8>, Vec<u8>) = old.into_iter().zip(new).unzip();
            let ranks = old.iter().zip(&new).map(|(old, new)| {
                (std::slice::from_ref(old), std::slice::from_ref(new))
            });
            let turns = in_turn(ranks);
            prop_assert!(stay_in_order(&old, &new, &turns));
            let changed = old.iter().zip(&new).filter(|(old, new)| old != new).count();
            prop_assert_eq!(turns.len(), changed);
        }
    }

    /// The negative control: in the order of the tree, a sibling passes the next one.
    #[test]
    fn the_order_of_the_tree_is_no_order_of_turns() {
        assert!(!stay_in_order(&[1, 2], &[3, 4], &[0, 1]));
        assert_eq!(in_turn([(&[1][..], &[3][..]), (&[2], &[4])].into_iter()), [1, 0]);
    }

    #[test]
    fn nothing_lies_between_equal_ranks_or_those_of_another_order() {
        let [one, two] = [form(1, &[]), form(2, &[])];
        assert_eq!(between(Some(&one), Some(&one)), None);
        assert_eq!(between(Some(&two), Some(&one)), None);
        assert_eq!(spread(Some(&two), Some(&one), 3), None);
        assert_eq!(between(Some(b""), None), None);
        assert_eq!(between(Some(&[0x80, 0]), None), None, "it ends in zero");
    }
}
