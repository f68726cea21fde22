//! An audience in memory, some chunks at a time.

use keyloom::{Order, Reader, Result};

use crate::explain::Explain;
use crate::general::inverted_index::few::Few;
use crate::general::inverted_index::{BitmapExpr, Chunks, Container, Evaluation, Words};

/// How many chunks of an audience are in memory together: 16 MiB where all of them are full, of 133 million ids.
const HELD: usize = 4_096;

/// An audience that is being evaluated.
pub(super) struct Audience<'r, R: Reader> {
    chunks: Evaluation<'r, R>,
    words: Box<Words>,
    finished: bool,
}

impl<'r, R: Reader> Audience<'r, R> {
    pub(super) fn open(audience: &BitmapExpr, reader: &'r R) -> Self {
        let chunks = Evaluation::all(audience, reader, Order::Ascending);
        Self { chunks, words: Box::new(Words::new()), finished: false }
    }

    /// The next chunks, `None` when there are no more.
    pub(super) fn next_window(&mut self) -> Result<Option<Window>> {
        let mut window = Window { chunks: Vec::new(), ids: 0 };
        while !self.finished && window.chunks.len() < HELD {
            match self.chunks.next_chunk(&mut self.words)? {
                Some(chunk) => window.push(chunk, &self.words),
                None => self.finished = true,
            }
        }
        Ok((!window.chunks.is_empty()).then_some(window))
    }

    pub(super) fn explain(&self) -> Explain {
        self.chunks.explain()
    }
}

/// Chunks of an audience, in ascending order, none of them empty.
#[derive(Debug)]
pub(super) struct Window {
    chunks: Vec<(u64, Part)>,
    /// How many ids they have.
    pub(super) ids: u64,
}

/// The ids of a chunk.
#[derive(Debug)]
enum Part {
    Few(Few),
    Many(Box<Words>),
}

impl Window {
    fn push(&mut self, chunk: u64, words: &Words) {
        self.ids += u64::from(words.count());
        let part = Few::of(words).map_or_else(|| Part::Many(Box::new(words.clone())), Part::Few);
        self.chunks.push((chunk, part));
    }

    /// How many chunks there are.
    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// How many of them have more than a few ids.
    pub(super) fn full(&self) -> usize {
        self.chunks.iter().filter(|(_, part)| matches!(part, Part::Many(_))).count()
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

    /// How many ids of the chunk at a place a container has.
    pub(super) fn and_count(&self, place: usize, container: Container<'_>) -> u32 {
        match self.chunks.get(place) {
            Some((_, Part::Few(few))) => few.and_count(container),
            Some((_, Part::Many(words))) => container.and_count_words(words),
            None => 0,
        }
    }

    /// The chunks, one after the other.
    pub(super) fn chunks(&self) -> impl Chunks + '_ {
        WindowChunks(self.chunks.iter())
    }

    /// Visits the chunks in order, with the offsets of their ids.
    pub(super) fn visit(&self, mut visit: impl FnMut(u64, &[u16]) -> Result<()>) -> Result<()> {
        let mut many = Vec::new();
        self.chunks.iter().try_for_each(|(chunk, part)| match part {
            Part::Few(few) => visit(*chunk, few.ids()),
            Part::Many(words) => {
                many.clear();
                many.extend(words.iter());
                visit(*chunk, &many)
            }
        })
    }
}

struct WindowChunks<'w>(std::slice::Iter<'w, (u64, Part)>);

impl Chunks for WindowChunks<'_> {
    fn next_chunk(&mut self, words: &mut Words) -> Result<Option<u64>> {
        let Some((chunk, part)) = self.0.next() else { return Ok(None) };
        match part {
            Part::Many(many) => words.clone_from(many),
            Part::Few(few) => {
                words.clear();
                few.iter().for_each(|offset| _ = words.insert(offset));
            }
        }
        Ok(Some(*chunk))
    }
}
