//! Selects the fragments of a text around its marks.

use std::cmp::Reverse;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::occurrences::{Mark, merged};

/// A sentence, or a part of a long sentence. Fragments begin and end between pieces.
struct Piece {
    range: Range<usize>,
    /// The indexes of the marks of the piece.
    marks: Range<usize>,
}

/// The pieces of a fragment, and the numbers that rank it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    pieces: Range<usize>,
    terms: usize,
    marks: usize,
}

/// The ranges of the `most` best fragments of at most `size` characters, in the order of the text.
pub(super) fn best(text: &str, marks: &[Mark], size: usize, most: usize) -> Vec<Range<usize>> {
    let pieces = pieces(text, marks, size);
    let mut windows = windows(text, &pieces, marks, size);
    windows.sort_by_key(|one| (Reverse(one.terms), Reverse(one.marks), one.pieces.start));
    let mut chosen: Vec<Window> = Vec::new();
    for window in windows {
        if chosen.len() >= most {
            break;
        }
        let is_apart = |other: &Window| {
            window.pieces.end <= other.pieces.start || other.pieces.end <= window.pieces.start
        };
        if chosen.iter().all(is_apart) {
            chosen.push(window);
        }
    }
    chosen.sort_by_key(|window| window.pieces.start);
    chosen.into_iter().map(|window| trimmed(text, marks, &pieces, &window)).collect()
}

/// Cuts a text at the ends of sentences, and cuts sentences of more than `size` characters between
/// words. Never cuts within a mark.
fn pieces(text: &str, marks: &[Mark], size: usize) -> Vec<Piece> {
    let marked = merged(marks);
    let mut ends = Vec::new();
    let sentences = joined(text.split_sentence_bound_indices(), &marked);
    for sentence in sentences {
        let of_sentence = text.get(sentence.clone()).unwrap_or_default();
        if of_sentence.chars().count() <= size {
            ends.push(sentence.end);
            continue;
        }
        let words = of_sentence.split_word_bound_indices();
        let words = words.map(|(at, word)| (sentence.start + at, word));
        let mut room = size;
        for word in joined(words, &marked) {
            let chars = text.get(word.clone()).unwrap_or_default().chars().count();
            if chars > room {
                ends.push(word.start);
                room = size;
            }
            room = room.saturating_sub(chars);
        }
        ends.push(sentence.end);
    }
    ends.dedup();
    let (mut start, mut next) = (0, 0);
    let mut piece = |end: usize| {
        let of_piece = marks.get(next..).unwrap_or_default();
        let count = of_piece.partition_point(|mark| mark.range.start < end);
        let piece = Piece { range: start..end, marks: next..next + count };
        (start, next) = (end, next + count);
        piece
    };
    ends.into_iter().filter(|end| *end > 0).map(&mut piece).collect()
}

/// The ranges of segments. Segments are joined if a mark crosses their boundary.
fn joined<'t>(
    segments: impl Iterator<Item = (usize, &'t str)>,
    marked: &[Range<usize>],
) -> Vec<Range<usize>> {
    let mut joined: Vec<Range<usize>> = Vec::new();
    for (start, segment) in segments {
        let next = marked.partition_point(|mark| mark.end <= start);
        let is_marked_across = marked.get(next).is_some_and(|mark| mark.start < start);
        match joined.last_mut() {
            Some(last) if is_marked_across => last.end = start + segment.len(),
            _ => joined.push(start..start + segment.len()),
        }
    }
    joined
}

/// Builds one fragment for each piece with a mark. Pieces after it are added while they fit, then
/// pieces before it.
fn windows(text: &str, pieces: &[Piece], marks: &[Mark], size: usize) -> Vec<Window> {
    // The number of characters before each piece, and of the whole text.
    let mut chars = vec![0];
    chars.extend(pieces.iter().scan(0, |sum, piece| {
        *sum += text.get(piece.range.clone()).unwrap_or_default().chars().count();
        Some(*sum)
    }));
    let before = |piece: usize| chars.get(piece).copied().unwrap_or(0);
    let mut counts = Counts::new(marks);
    let mut windows: Vec<Window> = Vec::new();
    // Both ends only move forward, so each piece is added and removed once.
    let (mut from, mut to) = (0, 0);
    for (at, _) in pieces.iter().enumerate().filter(|(_, piece)| !piece.marks.is_empty()) {
        let most = before(at).saturating_add(size);
        let until = chars.partition_point(|sum| *sum <= most).saturating_sub(1).max(at + 1);
        let least = before(until).saturating_sub(size);
        let start = chars.partition_point(|sum| *sum < least).min(at);
        pieces.get(to..until).unwrap_or_default().iter().for_each(|piece| counts.add(piece));
        pieces.get(from..start).unwrap_or_default().iter().for_each(|piece| counts.remove(piece));
        (from, to) = (start, until);
        windows.push(Window { pieces: start..until, terms: counts.terms, marks: counts.marks });
    }
    windows.dedup();
    windows
}

/// The marks of a window.
struct Counts<'m> {
    all: &'m [Mark],
    by_term: Vec<usize>,
    terms: usize,
    marks: usize,
}

impl<'m> Counts<'m> {
    fn new(all: &'m [Mark]) -> Self {
        let ids = all.iter().map(|mark| mark.term + 1).max().unwrap_or(0);
        Self { all, by_term: vec![0; ids], terms: 0, marks: 0 }
    }

    fn of(&self, piece: &Piece) -> &'m [Mark] {
        self.all.get(piece.marks.clone()).unwrap_or_default()
    }

    fn add(&mut self, piece: &Piece) {
        for mark in self.of(piece) {
            self.marks += 1;
            if let Some(count) = self.by_term.get_mut(mark.term) {
                self.terms += usize::from(*count == 0);
                *count += 1;
            }
        }
    }

    fn remove(&mut self, piece: &Piece) {
        for mark in self.of(piece) {
            self.marks -= 1;
            if let Some(count) = self.by_term.get_mut(mark.term) {
                *count -= 1;
                self.terms -= usize::from(*count == 0);
            }
        }
    }
}

/// The range of a window without spaces at its ends. Marked spaces are kept.
fn trimmed(text: &str, marks: &[Mark], pieces: &[Piece], window: &Window) -> Range<usize> {
    let of = pieces.get(window.pieces.clone()).unwrap_or_default();
    let (Some(first), Some(last)) = (of.first(), of.last()) else { return 0..0 };
    let (start, end) = (first.range.start, last.range.end);
    let marks = marks.get(first.marks.start..last.marks.end).unwrap_or_default();
    let first_mark = marks.iter().map(|mark| mark.range.start).min().unwrap_or(end);
    let last_mark = marks.iter().map(|mark| mark.range.end).max().unwrap_or(start);
    let inner = text.get(start..end).unwrap_or_default();
    let from = end - inner.trim_start().len();
    let until = start + inner.trim_end().len();
    from.min(first_mark)..until.max(last_mark)
}
