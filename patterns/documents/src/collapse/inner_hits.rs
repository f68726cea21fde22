//! The options that select the hits of each group.

use keyloom::Order;

/// The options of one level of groups.
#[derive(Clone, Debug)]
pub(super) struct Level {
    pub(super) field: String,
    pub(super) groups: usize,
    pub(super) keeps_missing: bool,
    pub(super) inner: InnerHits,
}

/// Selects which hits of each group a page returns. By default, a page returns none.
///
/// ```
/// use keyloom::Order;
/// use keyloom_documents::collapse::InnerHits;
/// // The second and third newest post of each author, and the newest post of three countries.
/// let inner = InnerHits::first(2)
///     .offset(1)
///     .sort_by("date", Order::Descending)
///     .groups("country", 3, InnerHits::default());
/// # let _ = inner;
/// ```
#[derive(Clone, Debug, Default)]
pub struct InnerHits {
    pub(super) size: usize,
    pub(super) offset: usize,
    pub(super) order: Option<(String, Order)>,
    pub(super) counts: bool,
    pub(super) groups: Option<Box<Level>>,
}

impl InnerHits {
    /// The first `size` hits of each group.
    pub fn first(size: usize) -> Self {
        Self { size, ..Self::default() }
    }

    /// Leaves out the first `offset` hits of each group.
    #[must_use]
    pub fn offset(self, offset: usize) -> Self {
        Self { offset, ..self }
    }

    /// Orders the hits of each group by a [field of integers](keyloom_text::TextIndex::integers),
    /// instead of the order of the search.
    #[must_use]
    pub fn sort_by(self, field: &str, order: Order) -> Self {
        Self { order: Some((field.to_owned(), order)), ..self }
    }

    /// Counts the matches of each group: [`Group::count`](super::Group::count).
    #[must_use]
    pub fn count(self) -> Self {
        Self { counts: true, ..self }
    }

    /// Also collapses the matches of each group by a second field, into at most `groups` groups
    /// with hits of their own: [`Group::groups`](super::Group::groups). These groups are ordered by
    /// their best hits. [`sort_by`](Self::sort_by) also changes this order.
    #[must_use]
    pub fn groups(self, field: &str, groups: usize, inner: InnerHits) -> Self {
        let level = Level { field: field.to_owned(), groups, keeps_missing: true, inner };
        Self { groups: Some(Box::new(level)), ..self }
    }

    /// The number of hits that must be known for a group: `size`, and the `offset` hits that are
    /// skipped; 0 if no hits are returned.
    pub(super) fn needed(&self) -> usize {
        match self.size {
            0 => 0,
            size => size.saturating_add(self.offset),
        }
    }
}
