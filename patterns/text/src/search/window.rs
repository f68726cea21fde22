//! The end of all cursors, and windows: ranges of documents with one bound of their scores.

/// The document of a cursor after its end. No document has this id.
pub(crate) const END: u32 = u32::MAX;

/// A bound of the scores of the documents up to `last`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    pub(crate) last: u32,
    pub(crate) score: f64,
}

impl Window {
    /// No document follows.
    pub(crate) const NONE: Self = Self { last: END, score: 0.0 };
}
