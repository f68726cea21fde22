//! A pattern of a scan, as an automaton over labels.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use super::label_path::LabelPath;
use super::lquery::{Lquery, Positions};
use super::ltxtquery::{Ltxtquery, Seen};
use super::next::{NextLabel, greatest_before, least_behind};
use super::regex::{PathRegex, RegexState};

/// A compiled pattern of paths, used to search [`Paths`](super::Paths). A pattern is cheap to
/// clone.
///
/// | made from | matches | in PostgreSQL |
/// |---|---|---|
/// | an [`Lquery`] | the paths that it matches | `path ~ lquery` |
/// | [`any_of`](PathPattern::any_of) several [`Lquery`] | the paths that at least one of them matches | `path ? lquery[]` |
/// | an [`Ltxtquery`] | the paths that it matches | `path @ ltxtquery` |
/// | [`descendants_of`](PathPattern::descendants_of) a path | the path and its descendants | `path <@ ltree` |
/// | [`ancestors_of`](PathPattern::ancestors_of) a path | the path and its ancestors | `path @> ltree` |
/// | a [`PathRegex`] | the paths that it matches | |
///
/// ```
/// use keyloom_trees::path::{LabelPath, Lquery, PathPattern};
/// let path: LabelPath = "Top.Science.Astronomy".parse()?;
/// assert!(PathPattern::from("*.Astro*".parse::<Lquery>()?).matches(&path));
/// assert!(PathPattern::ancestors_of(&path).matches(&"Top.Science".parse()?));
/// assert!(!PathPattern::any_of(["Top".parse()?, "*.Stars".parse()?]).matches(&path));
/// # Ok::<(), keyloom_trees::path::PathError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PathPattern(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    AnyOf(Vec<Lquery>),
    Ltxtquery(Ltxtquery),
    Regex(PathRegex),
    AncestorsOf(LabelPath),
}

/// The state of a pattern after some labels.
#[derive(Clone, Debug)]
pub(super) enum State {
    /// One state per lquery.
    AnyOf(SmallVec<[Positions; 1]>),
    Ltxtquery(Seen),
    Regex(RegexState),
    /// The number of labels of the path that have matched; `None` after a label that did not match.
    AncestorsOf(Option<usize>),
}

/// The verdict on the labels so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The labels do not match, and no continuation matches.
    Dead,
    /// The labels match, and every continuation matches.
    Whole,
    /// The labels match; a continuation may or may not match.
    Match,
    /// The labels do not match; a continuation may match.
    Open,
}

impl PathPattern {
    /// Matches the paths that any of these patterns matches. Without patterns, matches nothing.
    pub fn any_of(patterns: impl IntoIterator<Item = Lquery>) -> Self {
        Self(Arc::new(Kind::AnyOf(patterns.into_iter().collect())))
    }

    /// Matches `path` and its descendants.
    pub fn descendants_of(path: &LabelPath) -> Self {
        Self::from(Lquery::descendants_of(path))
    }

    /// Matches `path` and its ancestors, including the empty path.
    pub fn ancestors_of(path: &LabelPath) -> Self {
        Self(Arc::new(Kind::AncestorsOf(path.clone())))
    }

    /// Whether `path` matches.
    pub fn matches(&self, path: &LabelPath) -> bool {
        let mut state = self.start();
        for label in path.labels() {
            match self.verdict(&state) {
                Verdict::Dead => return false,
                Verdict::Whole => return true,
                Verdict::Match | Verdict::Open => state = self.step(&state, label),
            }
        }
        matches!(self.verdict(&state), Verdict::Match | Verdict::Whole)
    }

    /// The state before the first label.
    pub(super) fn start(&self) -> State {
        match &*self.0 {
            Kind::AnyOf(patterns) => State::AnyOf(patterns.iter().map(Lquery::start).collect()),
            Kind::Ltxtquery(query) => State::Ltxtquery(query.start()),
            Kind::Regex(regex) => State::Regex(regex.start()),
            Kind::AncestorsOf(_) => State::AncestorsOf(Some(0)),
        }
    }

    /// The state after one more label.
    pub(super) fn step(&self, state: &State, label: &str) -> State {
        match (&*self.0, state) {
            (Kind::AnyOf(patterns), State::AnyOf(at)) => {
                let each = patterns.iter().zip(at);
                State::AnyOf(each.map(|(pattern, at)| pattern.step(at, label)).collect())
            }
            (Kind::Ltxtquery(query), State::Ltxtquery(seen)) => {
                State::Ltxtquery(query.step(seen, label))
            }
            (Kind::Regex(regex), State::Regex(state)) => State::Regex(regex.step(*state, label)),
            (Kind::AncestorsOf(path), State::AncestorsOf(depth)) => {
                let rest =
                    depth.filter(|depth| path.labels.get(*depth).is_some_and(|next| next == label));
                State::AncestorsOf(rest.map(|depth| depth + 1))
            }
            (_, state) => state.clone(),
        }
    }

    /// The verdict on the labels so far.
    pub(super) fn verdict(&self, state: &State) -> Verdict {
        let of = |is_match| if is_match { Verdict::Match } else { Verdict::Open };
        match (&*self.0, state) {
            (Kind::AnyOf(patterns), State::AnyOf(at)) => {
                let each = || patterns.iter().zip(at);
                match () {
                    () if each().any(|(pattern, at)| pattern.is_whole(at)) => Verdict::Whole,
                    () if at.iter().all(Positions::is_empty) => Verdict::Dead,
                    () => of(each().any(|(pattern, at)| pattern.is_match(at))),
                }
            }
            (Kind::Ltxtquery(query), State::Ltxtquery(seen)) => match query.is_certain(seen) {
                Some(true) => Verdict::Whole,
                Some(false) => Verdict::Dead,
                None => of(query.is_match(seen)),
            },
            (Kind::Regex(regex), State::Regex(state)) if regex.is_alive(*state) => {
                of(regex.is_match(*state))
            }
            (_, State::AncestorsOf(Some(_))) => Verdict::Match,
            _ => Verdict::Dead,
        }
    }

    /// The first label after `after` with which a path can continue and match. If `after` is
    /// `None`, the first of all labels.
    pub(super) fn least_behind(&self, state: &State, after: Option<&str>) -> Option<NextLabel<'_>> {
        match self.next_labels(state) {
            Next::These(labels) => least_behind(labels.into_iter(), after),
            Next::Of(regex, state) => regex.least_behind(state, after),
        }
    }

    /// The last label before `before` with which a path can continue and match. If `before` is
    /// `None`, the last of all labels.
    pub(super) fn greatest_before(
        &self,
        state: &State,
        before: Option<&str>,
    ) -> Option<NextLabel<'_>> {
        match self.next_labels(state) {
            Next::These(labels) => greatest_before(labels.into_iter(), before),
            Next::Of(regex, state) => regex.greatest_before(state, before),
        }
    }

    fn next_labels(&self, state: &State) -> Next<'_> {
        Next::These(match (&*self.0, state) {
            (Kind::Regex(regex), State::Regex(state)) => return Next::Of(regex, *state),
            (Kind::AnyOf(patterns), State::AnyOf(at)) => {
                let each = patterns.iter().zip(at);
                each.flat_map(|(pattern, at)| pattern.next_labels(at)).collect()
            }
            (Kind::AncestorsOf(path), State::AncestorsOf(depth)) => {
                let next = depth.and_then(|depth| path.labels.get(depth));
                next.map(|label| NextLabel::Exactly(label.into())).into_iter().collect()
            }
            _ => SmallVec::from_iter([NextLabel::Any]),
        })
    }
}

/// The labels that can come next.
enum Next<'q> {
    These(SmallVec<[NextLabel<'q>; 2]>),
    Of(&'q PathRegex, RegexState),
}

impl From<Lquery> for PathPattern {
    fn from(pattern: Lquery) -> Self {
        Self::any_of([pattern])
    }
}

impl From<Ltxtquery> for PathPattern {
    fn from(query: Ltxtquery) -> Self {
        Self(Arc::new(Kind::Ltxtquery(query)))
    }
}

impl From<PathRegex> for PathPattern {
    fn from(regex: PathRegex) -> Self {
        Self(Arc::new(Kind::Regex(regex)))
    }
}

/// Writes the PostgreSQL operator of the pattern, and its operand.
impl fmt::Display for PathPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Kind::AnyOf(patterns) => match patterns.as_slice() {
                [pattern] => write!(f, "~ {pattern}"),
                patterns => {
                    f.write_str("? {")?;
                    for (at, pattern) in patterns.iter().enumerate() {
                        write!(f, "{}{pattern}", if at > 0 { ", " } else { "" })?;
                    }
                    f.write_str("}")
                }
            },
            Kind::Ltxtquery(query) => write!(f, "@ {query}"),
            Kind::Regex(regex) => write!(f, "regex {:?} {regex}", regex.separator()),
            Kind::AncestorsOf(path) => write!(f, "@> {path}"),
        }
    }
}
