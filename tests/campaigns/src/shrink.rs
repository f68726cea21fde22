//! Shortens a failing sequence.

/// The shortest sequence found that still fails, by removing ever smaller parts (Zeller and
/// Hildebrandt, *Simplifying and Isolating Failure-Inducing Input*, 2002). `fails` must be true for
/// `sequence`, and deterministic; it is called about `n log n` times.
pub fn shrink<T: Clone>(sequence: &[T], mut fails: impl FnMut(&[T]) -> bool) -> Vec<T> {
    let mut shortest = sequence.to_vec();
    let mut part = shortest.len().div_ceil(2);
    while part > 0 {
        let mut at = 0;
        while at < shortest.len() {
            let mut shorter = shortest.clone();
            shorter.drain(at..shortest.len().min(at + part));
            if fails(&shorter) {
                shortest = shorter;
            } else {
                at += part;
            }
        }
        part = if part == 1 { 0 } else { part.div_ceil(2) };
    }
    shortest
}

#[cfg(test)]
mod tests {
    use super::shrink;

    #[test]
    fn two_elements_that_fail_together_remain() {
        let fails = |sequence: &[u32]| sequence.contains(&3) && sequence.contains(&70);
        let all: Vec<u32> = (0..100).collect();
        assert_eq!(shrink(&all, fails), [3, 70]);
    }
}
