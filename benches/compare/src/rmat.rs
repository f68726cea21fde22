//! Graphs of the Graph500 benchmark: recursive matrices (R-MAT), in which a few vertices have most
//! of the edges.

/// The probabilities of the first three quadrants of the matrix, in percent.
const QUADRANTS: [u8; 3] = [57, 19, 19];

/// Generates `2^scale` vertices and `each` times as many edges, in no order, with some duplicates.
/// The same seed gives the same edges.
pub fn edges(scale: u32, each: usize, seed: u64) -> Vec<(u32, u32)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let [a, b, c] = QUADRANTS;
    let mut edge = |_| {
        let (mut source, mut target) = (0, 0);
        for _ in 0..scale {
            let (down, right) = match random.u8(..100) {
                n if n < a => (0, 0),
                n if n < a + b => (0, 1),
                n if n < a + b + c => (1, 0),
                _ => (1, 1),
            };
            source = source << 1 | down;
            target = target << 1 | right;
        }
        (source, target)
    };
    (0..each << scale).map(&mut edge).collect()
}
