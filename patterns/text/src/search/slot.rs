//! A place of a phrase, which any of several terms may take.

use keyloom::{Reader, Result};

use super::cursor::Cursor;
use super::window::{END, Window};

/// A place of a phrase: alternative terms.
pub(crate) struct Slot<'r, R: Reader> {
    pub(super) terms: Vec<Cursor<'r, R>>,
    positions: Vec<u32>,
}

impl<'r, R: Reader> Slot<'r, R> {
    pub(crate) fn new(terms: Vec<Cursor<'r, R>>) -> Self {
        Self { terms, positions: Vec::new() }
    }

    pub(super) fn seek(&mut self, target: u32) -> Result<u32> {
        let mut doc = END;
        for term in &mut self.terms {
            doc = doc.min(term.seek(target)?);
        }
        Ok(doc)
    }

    /// Sets `all` to the positions of all terms in a document.
    pub(super) fn positions(&mut self, doc: u32, all: &mut Vec<u32>) -> Result<()> {
        if let [term] = &mut self.terms[..] {
            return term.positions(all);
        }
        all.clear();
        for term in self.terms.iter_mut().filter(|term| term.doc() == doc) {
            term.positions(&mut self.positions)?;
            all.append(&mut self.positions);
        }
        all.sort_unstable();
        all.dedup();
        Ok(())
    }

    /// The length of the field in a document.
    pub(super) fn length(&mut self, doc: u32) -> Result<u32> {
        let term = self.terms.iter_mut().find(|term| term.doc() == doc);
        Ok(term.map(Cursor::frequency_and_length).transpose()?.map_or(0, |(_, length)| length))
    }

    /// A bound of the score of a phrase that contains one of the terms. Together, the alternatives
    /// may occur at every token of the field, so only a single term has its own bound.
    pub(super) fn window(&mut self, target: u32, depth: usize) -> Result<Window> {
        if let [term] = &mut self.terms[..] {
            return term.window(target, depth);
        }
        let mut union = Window::NONE;
        for term in &mut self.terms {
            let window = term.window(target, depth)?;
            union.last = union.last.min(window.last);
            if window != Window::NONE {
                union.score = term.weight.limit();
            }
        }
        Ok(union)
    }
}
