//! Paths of labels.

use std::fmt;
use std::str::FromStr;

use keyloom::key::{DecodeError, Pack, Packer, Unpack, Unpacker};

use super::error::PathError;
use super::syntax::{Cursor, MAX_LABEL_CHARS, MAX_LABELS, write_label};

/// The path from the root of a hierarchy to one of its nodes: a sequence of labels. The empty path
/// is the root itself.
///
/// As a key, a path is the tuple of its labels, one string each. So keys sort depth-first: a node,
/// its descendants, then the next sibling. `LabelPath` values compare in the same order.
///
/// ```
/// use keyloom::{Subspace, pack};
/// use keyloom_trees::path::LabelPath;
/// let path: LabelPath = "Top.Science.Astronomy".parse()?;
/// assert_eq!(path.labels().collect::<Vec<_>>(), ["Top", "Science", "Astronomy"]);
/// assert_eq!(pack(&path), pack(&("Top", "Science", "Astronomy")));
/// assert_eq!(Subspace::root().unpack::<LabelPath>(&pack(&path)).unwrap(), path);
/// # Ok::<(), keyloom_trees::path::PathError>(())
/// ```
///
/// # As text
///
/// The text of a path is its labels, joined by `.` as in PostgreSQL's `ltree`. A label of letters,
/// digits, `_` and `-` is written without quotes; `ltree` allows only such labels. Here a label may
/// be any text. A label that `ltree` does not allow, including the empty label, is written in
/// double quotes. Inside the quotes, `\"` and `\\` are a quote and a backslash, `\0` is a NUL, and
/// `\u{7f}` is the character with this code point. The empty path is the empty text.
///
/// ```
/// use keyloom_trees::path::LabelPath;
/// let path = LabelPath::new(["", "usr", "lib", "libm.so.6"])?;
/// assert_eq!(path.to_string(), r#""".usr.lib."libm.so.6""#);
/// assert_eq!(path.to_string().parse::<LabelPath>()?, path);
/// let error = "Top..Science".parse::<LabelPath>().unwrap_err();
/// assert!(error.to_string().contains("at character 5: '.' is not allowed there"), "{error}");
/// # Ok::<(), keyloom_trees::path::PathError>(())
/// ```
///
/// # Limits
///
/// A path has at most [`MAX_LABELS`] labels of at most [`MAX_LABEL_CHARS`] characters. A path used
/// as a key must also fit into 511 bytes: each label takes its bytes and two more.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabelPath {
    pub(super) labels: Vec<String>,
}

impl LabelPath {
    /// Returns the path without labels.
    pub fn root() -> Self {
        Self::default()
    }

    /// Creates a path of these labels; they may contain any characters.
    ///
    /// # Errors
    /// [`PathError::TooManyLabels`], [`PathError::LabelTooLong`].
    pub fn new<L: Into<String>>(labels: impl IntoIterator<Item = L>) -> Result<Self, PathError> {
        let mut path = Self::root();
        labels.into_iter().try_for_each(|label| path.push(label))?;
        Ok(path)
    }

    /// Appends a label.
    ///
    /// # Errors
    /// [`PathError::TooManyLabels`], [`PathError::LabelTooLong`].
    pub fn push(&mut self, label: impl Into<String>) -> Result<(), PathError> {
        let label = label.into();
        // A label with few bytes cannot have too many characters, so skip the count.
        let chars = if label.len() <= MAX_LABEL_CHARS { 0 } else { label.chars().count() };
        if chars > MAX_LABEL_CHARS {
            let label = label.chars().take(40).collect();
            return Err(PathError::LabelTooLong { label, chars, limit: MAX_LABEL_CHARS });
        }
        within_limit(self.labels.len() + 1)?;
        self.labels.push(label);
        Ok(())
    }

    /// Returns the path with one more label.
    ///
    /// # Errors
    /// [`PathError::TooManyLabels`], [`PathError::LabelTooLong`].
    pub fn child(&self, label: impl Into<String>) -> Result<Self, PathError> {
        let mut child = self.clone();
        child.push(label)?;
        Ok(child)
    }

    /// Returns the path without its last label, or `None` for the empty path.
    pub fn parent(&self) -> Option<Self> {
        let (_, labels) = self.labels.split_last()?;
        Some(Self { labels: labels.to_vec() })
    }

    /// The labels, from the root down.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator + Clone {
        self.labels.iter().map(String::as_str)
    }

    /// The number of labels.
    ///
    /// ```
    /// use keyloom_trees::path::LabelPath;
    /// assert_eq!("Top.Child1.Child2".parse::<LabelPath>()?.nlevel(), 3);
    /// # Ok::<(), keyloom_trees::path::PathError>(())
    /// ```
    pub fn nlevel(&self) -> usize {
        self.labels.len()
    }

    /// Whether this is the empty path.
    ///
    /// ```
    /// use keyloom_trees::path::LabelPath;
    /// assert!("".parse::<LabelPath>()?.is_root());
    /// assert!(!"Top".parse::<LabelPath>()?.is_root());
    /// # Ok::<(), keyloom_trees::path::PathError>(())
    /// ```
    pub fn is_root(&self) -> bool {
        self.labels.is_empty()
    }
}

/// Refuses a path with too many labels.
pub(super) fn within_limit(labels: usize) -> Result<(), PathError> {
    match labels <= MAX_LABELS {
        true => Ok(()),
        false => Err(PathError::TooManyLabels { labels, limit: MAX_LABELS }),
    }
}

impl FromStr for LabelPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        parse(text)
    }
}

fn parse(text: &str) -> Result<LabelPath, PathError> {
    let mut cursor = Cursor::new("path", text);
    let mut labels = Vec::new();
    while !text.is_empty() {
        cursor.room_for_more(labels.len())?;
        let Some(label) = cursor.label()? else { return Err(cursor.unexpected()) };
        labels.push(label);
        if cursor.peek().is_none() {
            break;
        }
        if !cursor.eat('.') {
            return Err(cursor.unexpected());
        }
    }
    Ok(LabelPath { labels })
}

impl fmt::Display for LabelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, label) in self.labels.iter().enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            write_label(f, label)?;
        }
        Ok(())
    }
}

/// Packs the labels as elements of the tuple, one string each.
impl Pack for LabelPath {
    fn pack(&self, out: &mut Packer) {
        for label in &self.labels {
            out.push(label);
        }
    }
}

keyloom_tables::impl_parts!(LabelPath as keyloom::List<Vec<String>>);

/// Unpacks all elements up to the end of the tuple; they must be strings.
impl<'k> Unpack<'k> for LabelPath {
    fn unpack(input: &mut Unpacker<'k>) -> Result<Self, DecodeError> {
        let mut labels = Vec::new();
        while !input.is_at_end() {
            labels.push(String::unpack(input)?);
        }
        Ok(Self { labels })
    }
}
