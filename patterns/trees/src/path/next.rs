//! The labels that can come next, where a walk continues.

use std::borrow::Cow;
use std::cmp::Ordering;

/// A set of labels that can come next in a walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NextLabel<'q> {
    /// Any label.
    Any,
    /// Only this label.
    Exactly(Cow<'q, str>),
    /// The labels with this prefix.
    Prefix(Cow<'q, str>),
}

impl<'q> NextLabel<'q> {
    /// The labels of this set that come after `after`, if `after` is given.
    fn behind(self, after: Option<&str>) -> Option<Self> {
        let Some(after) = after else { return Some(self) };
        match &self {
            Self::Any => Some(self),
            Self::Exactly(label) => (**label > *after).then_some(self),
            Self::Prefix(prefix) if after.starts_with(&**prefix) => Some(Self::Any),
            Self::Prefix(prefix) => (**prefix > *after).then_some(self),
        }
    }

    /// The labels of this set that come before `before`, if `before` is given.
    fn before(self, before: Option<&str>) -> Option<Self> {
        let Some(before) = before else { return Some(self) };
        match &self {
            Self::Any => Some(self),
            Self::Exactly(text) | Self::Prefix(text) if **text >= *before => None,
            Self::Prefix(prefix) if before.starts_with(&**prefix) => Some(Self::Any),
            _ => Some(self),
        }
    }

    /// Compares two sets by their first labels.
    fn compare_starts(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Any, Self::Any) => Ordering::Equal,
            (Self::Any, _) => Ordering::Less,
            (_, Self::Any) => Ordering::Greater,
            (Self::Exactly(a) | Self::Prefix(a), Self::Exactly(b) | Self::Prefix(b)) => {
                let is_exact = |next: &Self| matches!(next, Self::Exactly(_));
                a.cmp(b).then(is_exact(self).cmp(&is_exact(other)))
            }
        }
    }

    /// Compares two sets by their last labels.
    fn compare_ends(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Any, Self::Any) => Ordering::Equal,
            (Self::Any, _) => Ordering::Greater,
            (_, Self::Any) => Ordering::Less,
            (Self::Prefix(a), Self::Prefix(b)) if a == b => Ordering::Equal,
            (Self::Prefix(a), Self::Exactly(b) | Self::Prefix(b)) if b.starts_with(&**a) => {
                Ordering::Greater
            }
            (Self::Exactly(a) | Self::Prefix(a), Self::Prefix(b)) if a.starts_with(&**b) => {
                Ordering::Less
            }
            (Self::Exactly(a) | Self::Prefix(a), Self::Exactly(b) | Self::Prefix(b)) => a.cmp(b),
        }
    }
}

/// The set with the least first label after `after`.
pub(super) fn least_behind<'q>(
    labels: impl Iterator<Item = NextLabel<'q>>,
    after: Option<&str>,
) -> Option<NextLabel<'q>> {
    labels.filter_map(|next| next.behind(after)).min_by(NextLabel::compare_starts)
}

/// The set with the greatest last label before `before`.
pub(super) fn greatest_before<'q>(
    labels: impl Iterator<Item = NextLabel<'q>>,
    before: Option<&str>,
) -> Option<NextLabel<'q>> {
    labels.filter_map(|next| next.before(before)).max_by(NextLabel::compare_ends)
}
