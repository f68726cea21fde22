//! Parts of an audience in memory.

use keyloom::{Order, Reader, Result};
use keyloom_kit::Explain;

use crate::{BitmapExpr, ChunkIds, Chunks, Container, Evaluation, Words};

/// The number of chunks of an audience that are in memory together: at most 16 MiB, for 133 million
/// ids.
const HELD: usize = 4_096;

/// An audience under evaluation.
pub(super) struct Audience<'r, R: Reader> {
    chunks: Evaluation<'r, R>,
    finished: bool,
}

impl<'r, R: Reader> Audience<'r, R> {
    pub(super) fn open(audience: &BitmapExpr, reader: &'r R) -> Result<Self> {
        let chunks = Evaluation::all(audience, reader, Order::Ascending)?;
        Ok(Self { chunks, finished: false })
    }

    /// The next chunks; `None` if there are no more.
    pub(super) fn next_window(&mut self) -> Result<Option<Window>> {
        let mut window = Window { chunks: Vec::new(), ids: 0 };
        while !self.finished && window.chunks.len() < HELD {
            match self.chunks.next_ids()? {
                Some((chunk, ids)) => window.push(chunk, ids),
                None => self.finished = true,
            }
        }
        Ok((!window.chunks.is_empty()).then_some(window))
    }

    /// Whether all chunks were returned.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    pub(super) fn explain(&self) -> Explain {
        self.chunks.explain()
    }
}

/// Chunks of an audience, in ascending order, none of them empty.
#[derive(Debug)]
pub(super) struct Window {
    chunks: Vec<(u64, ChunkIds)>,
    /// The number of ids in all chunks.
    pub(super) ids: u64,
}

impl Window {
    fn push(&mut self, chunk: u64, ids: &ChunkIds) {
        self.ids += u64::from(ids.len());
        self.chunks.push((chunk, ids.to_kept()));
    }

    /// The number of chunks.
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// The number of chunks whose ids are kept as plain words, because they are not few.
    pub(super) fn full(&self) -> usize {
        self.chunks.iter().filter(|(_, ids)| ids.few().is_none()).count()
    }

    /// The first place from `place` on whose chunk is not before `chunk`.
    pub(super) fn seek(&self, place: usize, chunk: u64) -> usize {
        let behind = self.chunks.get(place..).unwrap_or_default();
        let (mut end, is_before) = (1, |at: usize| behind.get(at).is_some_and(|c| c.0 < chunk));
        if !is_before(0) {
            return place;
        }
        while is_before(end) {
            end *= 2;
        }
        let near = behind.get(end / 2..end.min(behind.len())).unwrap_or_default();
        place + end / 2 + near.partition_point(|(other, _)| *other < chunk)
    }

    /// The chunk at a place, if there is one.
    pub(super) fn chunk(&self, place: usize) -> Option<u64> {
        self.chunks.get(place).map(|(chunk, _)| *chunk)
    }

    /// The number of ids of a container that are in the chunk at a place.
    pub(super) fn and_count(&self, place: usize, container: Container<'_>) -> u32 {
        self.chunks.get(place).map_or(0, |(_, ids)| ids.and_count(container))
    }

    /// The chunks in sequence.
    pub(super) fn chunks(&self) -> impl Chunks + '_ {
        WindowChunks(self.chunks.iter())
    }

    /// Visits the chunks in order, with the offsets of their ids.
    pub(super) fn visit(&self, mut visit: impl FnMut(u64, &[u16]) -> Result<()>) -> Result<()> {
        let mut many = Vec::new();
        self.chunks.iter().try_for_each(|(chunk, ids)| match ids.few() {
            Some(few) => visit(*chunk, few),
            None => {
                many.clear();
                many.extend(ids.iter());
                visit(*chunk, &many)
            }
        })
    }
}

struct WindowChunks<'w>(std::slice::Iter<'w, (u64, ChunkIds)>);

impl Chunks for WindowChunks<'_> {
    fn next_chunk(&mut self, words: &mut Words) -> Result<Option<u64>> {
        Ok(self.0.next().map(|(chunk, ids)| {
            ids.write_to(words);
            *chunk
        }))
    }
}
