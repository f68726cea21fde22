//! The documents that contain at least one of many terms.

/// The maximum distance between a fuzzy term and the terms that it matches.
const MOST_DISTANCE: usize = 2;

/// The number of 64-bit words of a chunk of 4,096 ids.
// Larger chunks need more memory for rare documents; smaller ones need a longer list of chunks.
const WORDS: usize = 64;

/// A bitmap of the ids for each distance.
type Chunk = [[u64; WORDS]; MOST_DISTANCE + 1];

/// Collects documents with the distances of their terms, in bitmaps. Takes 1.5 KiB for each chunk
/// of 4,096 ids with a document. Two alternatives were slower: sorting pairs took about as long as
/// reading them, and joining compressed bitmaps a third of this time.
#[derive(Default)]
pub(crate) struct Union {
    chunks: Vec<Option<Box<Chunk>>>,
}

impl Union {
    /// Adds documents of a term with this distance.
    pub(crate) fn extend(&mut self, docs: &[u32], distance: u8) {
        let distance = usize::from(distance).min(MOST_DISTANCE);
        for doc in docs {
            let (word, bit) = (*doc as usize / 64, doc % 64);
            let chunk = self.chunk(word / WORDS);
            if let Some(word) = chunk.get_mut(distance).and_then(|of| of.get_mut(word % WORDS)) {
                *word |= 1 << bit;
            }
        }
    }

    fn chunk(&mut self, number: usize) -> &mut Chunk {
        if number >= self.chunks.len() {
            self.chunks.resize_with(number + 1, || None);
        }
        #[allow(clippy::indexing_slicing, reason = "the list was extended to the number")]
        self.chunks[number].get_or_insert_with(|| Box::new([[0; WORDS]; MOST_DISTANCE + 1]))
    }

    /// The documents in ascending order with the smallest distance of each; the distances are
    /// `None` if all are 0.
    pub(crate) fn into_columns(self) -> (Vec<u32>, Option<Vec<u8>>) {
        let (mut docs, mut distances, mut is_exact) = (Vec::new(), Vec::new(), true);
        for (number, chunk) in self.chunks.iter().enumerate() {
            let Some([exact, near, far]) = chunk.as_deref() else { continue };
            for (word, ((exact, near), far)) in exact.iter().zip(near).zip(far).enumerate() {
                let first = 64 * (WORDS * number + word) as u32;
                let mut rest = exact | near | far;
                is_exact &= rest == *exact;
                while rest != 0 {
                    let bit = rest & rest.wrapping_neg();
                    rest ^= bit;
                    docs.push(first + bit.trailing_zeros());
                    distances
                        .push(u8::from(exact & bit == 0) + u8::from((exact | near) & bit == 0));
                }
            }
        }
        (docs, (!is_exact).then_some(distances))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_document_has_its_smallest_distance() {
        let lists: [(&[u32], u8); 6] = [
            (&[], 0),
            (&[1, 5, 70_000], 2),
            (&[0, 5, u32::MAX - 1], 1),
            (&[5, 9], 0),
            (&[0, 9, 70_000], 2),
            (&[1], 1),
        ];
        for some in 0..=lists.len() {
            let (mut union, mut all) = (Union::default(), BTreeMap::new());
            for (docs, distance) in lists.iter().take(some) {
                // Each list is added in two blocks.
                let (first, rest) = docs.split_at(docs.len() / 2);
                union.extend(first, *distance);
                union.extend(rest, *distance);
                for doc in *docs {
                    let least = all.entry(*doc).or_insert(*distance);
                    *least = (*least).min(*distance);
                }
            }
            let (ids, distances) = union.into_columns();
            let distances = distances.unwrap_or_else(|| vec![0; ids.len()]);
            assert!(ids.into_iter().zip(distances).eq(all), "{some} lists");
        }
    }
}
