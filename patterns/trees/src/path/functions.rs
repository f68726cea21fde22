//! The functions and operators of `ltree` on paths.

use std::ops::Range;

use super::error::PathError;
use super::label_path::{LabelPath, within_limit};
use super::syntax::MAX_LABELS;

impl LabelPath {
    /// Whether `other` is this path or a descendant of it: `self @> other`.
    ///
    /// ```
    /// use keyloom_trees::path::LabelPath;
    /// let science: LabelPath = "Top.Science".parse()?;
    /// assert!(science.is_ancestor_of(&"Top.Science.Astronomy".parse()?));
    /// assert!(science.is_ancestor_of(&science));
    /// assert!(!science.is_ancestor_of(&"Top.Sciences".parse()?));
    /// # Ok::<(), keyloom_trees::path::PathError>(())
    /// ```
    pub fn is_ancestor_of(&self, other: &Self) -> bool {
        other.labels.starts_with(&self.labels)
    }

    /// Whether this path is `other` or a descendant of it: `self <@ other`.
    pub fn is_descendant_of(&self, other: &Self) -> bool {
        other.is_ancestor_of(self)
    }

    /// The labels of this path followed by the labels of `other`: `self || other`.
    ///
    /// # Errors
    /// [`PathError::TooManyLabels`].
    pub fn concat(&self, other: &Self) -> Result<Self, PathError> {
        within_limit(self.labels.len() + other.labels.len())?;
        Ok(Self { labels: [&self.labels[..], &other.labels[..]].concat() })
    }

    /// The labels from `start` (included) to `end` (excluded), counted from 0. An `end` past the
    /// last label means the end of the path.
    ///
    /// ```
    /// use keyloom_trees::path::LabelPath;
    /// let path: LabelPath = "Top.Child1.Child2".parse()?;
    /// assert_eq!(path.subltree(1, 2)?.to_string(), "Child1");
    /// assert!(path.subltree(3, 4).is_err());
    /// # Ok::<(), keyloom_trees::path::PathError>(())
    /// ```
    ///
    /// # Errors
    /// [`PathError::InvalidPositions`] if `start` is not inside the path, or `end` is before
    /// `start`.
    pub fn subltree(&self, start: i32, end: i32) -> Result<Self, PathError> {
        self.part(start.into(), end.into())
    }

    fn part(&self, start: i64, end: i64) -> Result<Self, PathError> {
        let labels = positions(start, end, self.labels.len()).and_then(|at| self.labels.get(at));
        match labels {
            Some(labels) => Ok(Self { labels: labels.to_vec() }),
            None => Err(PathError::InvalidPositions {
                path: self.to_string(),
                labels: self.labels.len(),
                start,
                end,
            }),
        }
    }

    /// `len` labels starting at `offset`, as `subpath(path, offset, len)`. A negative offset counts
    /// from the end of the path; a negative length leaves out that many labels at the end.
    ///
    /// ```
    /// use keyloom_trees::path::LabelPath;
    /// let path: LabelPath = "Top.Child1.Child2".parse()?;
    /// assert_eq!(path.subpath(0, 2)?.to_string(), "Top.Child1");
    /// assert_eq!(path.subpath(-2, 1)?.to_string(), "Child1");
    /// assert_eq!(path.subpath(0, -1)?.to_string(), "Top.Child1");
    /// # Ok::<(), keyloom_trees::path::PathError>(())
    /// ```
    ///
    /// # Errors
    /// [`PathError::InvalidPositions`] if the part does not begin inside the path, or ends before
    /// it begins.
    pub fn subpath(&self, offset: i32, len: i32) -> Result<Self, PathError> {
        let start = self.position_of(offset);
        let end = match len {
            ..0 => self.labels.len() as i64 + i64::from(len),
            len => start + i64::from(len),
        };
        self.part(start, end)
    }

    /// The labels from `offset` to the end, as `subpath(path, offset)`. A negative offset counts
    /// from the end.
    ///
    /// # Errors
    /// [`PathError::InvalidPositions`] if the part does not begin inside the path, or ends before
    /// it begins.
    pub fn subpath_from(&self, offset: i32) -> Result<Self, PathError> {
        self.part(self.position_of(offset), MAX_LABELS as i64)
    }

    /// The position for an offset. A negative offset that is before the start of the path is
    /// counted from the end a second time, as in PostgreSQL.
    fn position_of(&self, offset: i32) -> i64 {
        let labels = self.labels.len() as i64;
        let once = |offset: i64| if offset < 0 { labels + offset } else { offset };
        once(once(offset.into()))
    }

    /// The position of the first occurrence of `part` in this path, counted from 0.
    ///
    /// ```
    /// use keyloom_trees::path::LabelPath;
    /// let path: LabelPath = "0.1.2.3.5.4.5.6.8.5.6.8".parse()?;
    /// assert_eq!(path.index(&"5.6".parse()?), Some(6));
    /// assert_eq!(path.index_from(&"5.6".parse()?, -4), Some(9));
    /// # Ok::<(), keyloom_trees::path::PathError>(())
    /// ```
    pub fn index(&self, part: &Self) -> Option<usize> {
        self.index_from(part, 0)
    }

    /// The position of the first occurrence of `part` in this path at or after `offset`. A negative
    /// offset counts from the end of the path. The empty path never occurs.
    pub fn index_from(&self, part: &Self, offset: i32) -> Option<usize> {
        let from = match offset {
            ..0 => self.labels.len().saturating_sub(offset.unsigned_abs() as usize),
            offset => offset.unsigned_abs() as usize,
        };
        if part.is_root() {
            return None;
        }
        let mut places = self.labels.windows(part.labels.len()).enumerate().skip(from);
        places.find(|(_, labels)| *labels == part.labels).map(|(at, _)| at)
    }
}

fn positions(start: i64, end: i64, labels: usize) -> Option<Range<usize>> {
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    (start < labels && start <= end).then(|| start..end.min(labels))
}

/// The longest common ancestor of all `paths`; it is never one of the paths itself. `None` if there
/// are no paths, or if one of them is empty.
///
/// ```
/// use keyloom_trees::path::{LabelPath, lca};
/// let paths: Vec<LabelPath> = vec!["1.2.3".parse()?, "1.2.3.4.5.6".parse()?];
/// assert_eq!(lca(&paths).unwrap().to_string(), "1.2");
/// # Ok::<(), keyloom_trees::path::PathError>(())
/// ```
pub fn lca<'p>(paths: impl IntoIterator<Item = &'p LabelPath>) -> Option<LabelPath> {
    let mut paths = paths.into_iter();
    let (_, mut common) = paths.next()?.labels.split_last()?;
    for path in paths {
        let (_, above) = path.labels.split_last()?;
        let equal = common.iter().zip(above).take_while(|(a, b)| a == b).count();
        common = common.get(..equal)?;
    }
    Some(LabelPath { labels: common.to_vec() })
}

/// The first of `paths` that is `path` or an ancestor of it: `paths ?@> path`. The
/// result is `Some` exactly if `paths @> path`.
///
/// ```
/// use keyloom_trees::path::{LabelPath, first_ancestor};
/// let paths: Vec<LabelPath> = vec!["a.b".parse()?, "a.c".parse()?, "a".parse()?];
/// assert_eq!(first_ancestor(&paths, &"a.c.d".parse()?), Some(&paths[1]));
/// # Ok::<(), keyloom_trees::path::PathError>(())
/// ```
pub fn first_ancestor<'p>(
    paths: impl IntoIterator<Item = &'p LabelPath>,
    path: &LabelPath,
) -> Option<&'p LabelPath> {
    paths.into_iter().find(|candidate| candidate.is_ancestor_of(path))
}

/// The first of `paths` that is `path` or a descendant of it: `paths ?<@ path`. The
/// result is `Some` exactly if `paths <@ path`.
pub fn first_descendant<'p>(
    paths: impl IntoIterator<Item = &'p LabelPath>,
    path: &LabelPath,
) -> Option<&'p LabelPath> {
    paths.into_iter().find(|candidate| candidate.is_descendant_of(path))
}

/// The first of `paths` that matches a pattern: `paths ?~ lquery`, and `paths ?@ ltxtquery`. The
/// result is `Some` exactly if `paths ~ lquery`, or `paths @ ltxtquery`.
///
/// ```
/// use keyloom_trees::path::{LabelPath, Ltxtquery, first_match};
/// let paths: Vec<LabelPath> =
///     vec!["Top.Science".parse()?, "Top.Hobbies.Amateurs_Astronomy".parse()?];
/// let query: Ltxtquery = "Astro*% & !pictures@".parse()?;
/// assert_eq!(first_match(&paths, &query.into()), Some(&paths[1]));
/// # Ok::<(), keyloom_trees::path::PathError>(())
/// ```
pub fn first_match<'p>(
    paths: impl IntoIterator<Item = &'p LabelPath>,
    pattern: &super::PathPattern,
) -> Option<&'p LabelPath> {
    paths.into_iter().find(|path| pattern.matches(path))
}
