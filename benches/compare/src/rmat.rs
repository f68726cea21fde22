//! Graphs as the Graph500 benchmark makes them: recursive matrices (R-MAT), in which few vertices
//! have most of the edges.

/// The probabilities of the quadrants of the matrix, in hundredths; the fourth one has the rest.
const QUADRANTS: [u8; 3] = [57, 19, 19];

/// `2^scale` vertices and `each` times as many edges, in no order, some of them twice. The same
/// seed gives the same edges.
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
