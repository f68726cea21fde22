//! Counts the bits that two slices of words share, without storing the intersection.

/// A word, in memory or in stored bytes.
pub(super) trait Word: Copy {
    fn get(self) -> u64;
}

impl Word for u64 {
    fn get(self) -> u64 {
        self
    }
}

impl Word for [u8; 8] {
    fn get(self) -> u64 {
        u64::from_le_bytes(self)
    }
}

/// Four words, which many processors handle in one SIMD register.
type Lanes = [u64; LANES];
const LANES: usize = 4;
/// The number of words that are added up before their bits are counted.
const GROUP: usize = 8 * LANES;

/// The number of set bits that two slices of the same length share.
///
/// On a processor without a popcount instruction, counting the bits of a word takes a dozen
/// instructions. So words are first added up by the method of Harley and Seal (Warren, Hacker's
/// Delight, 5-1), with carry-save adders. Three bits of the same weight become one bit of that
/// weight and one bit of the next weight. Only the bits of weight eight are counted for each group.
pub(super) fn shared_bits<A: Word, B: Word>(a: &[A], b: &[B]) -> u32 {
    let ((groups, rest), (other_groups, other_rest)) =
        (a.as_chunks::<GROUP>(), b.as_chunks::<GROUP>());
    let (mut ones, mut twos, mut fours, mut eights) = ([0; LANES], [0; LANES], [0; LANES], 0);
    for (a, b) in groups.iter().zip(other_groups) {
        let [v0, v1, v2, v3, v4, v5, v6, v7] = both(a, b);
        let low = [add(&mut ones, v0, v1), add(&mut ones, v2, v3)];
        let high = [add(&mut ones, v4, v5), add(&mut ones, v6, v7)];
        let carried = [low, high].map(|[x, y]| add(&mut twos, x, y));
        eights += bits(add(&mut fours, carried[0], carried[1]));
    }
    let left = rest.iter().zip(other_rest).map(|(a, b)| (a.get() & b.get()).count_ones());
    8 * eights + 4 * bits(fours) + 2 * bits(twos) + bits(ones) + left.sum::<u32>()
}

/// The AND of two groups of words.
fn both<A: Word, B: Word>(a: &[A; GROUP], b: &[B; GROUP]) -> [Lanes; 8] {
    let mut both = [[0; LANES]; 8];
    let words = a.iter().zip(b).map(|(a, b)| a.get() & b.get());
    both.as_flattened_mut().iter_mut().zip(words).for_each(|(word, shared)| *word = shared);
    both
}

/// Adds two bits to each bit of `sum`, and returns the carry.
fn add(sum: &mut Lanes, b: Lanes, c: Lanes) -> Lanes {
    let mut carried = [0; LANES];
    for (((sum, carried), b), c) in sum.iter_mut().zip(&mut carried).zip(b).zip(c) {
        let half = *sum ^ b;
        *carried = (*sum & b) | (half & c);
        *sum = half ^ c;
    }
    carried
}

fn bits(lanes: Lanes) -> u32 {
    lanes.iter().map(|word| word.count_ones()).sum()
}
