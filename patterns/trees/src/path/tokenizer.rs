//! Splits the text of a path into its hierarchy.

use std::fmt;

use super::label_path::LabelPath;
use super::syntax::{MAX_LABEL_CHARS, MAX_LABELS};

/// Converts a text to a path and its tokens: the path itself and all its ancestors. Supports the
/// options of the `path_hierarchy` tokenizer of Elasticsearch.
///
/// ```
/// use keyloom_trees::path::PathTokenizer;
/// let files = PathTokenizer::new();
/// assert_eq!(files.tokens("/one/two/three"), ["/one", "/one/two", "/one/two/three"]);
/// let hosts = PathTokenizer::new().delimiter('.').reverse();
/// assert_eq!(hosts.tokens("www.example.org"), ["www.example.org", "example.org", "org"]);
/// ```
///
/// # As labels
///
/// A path has one label per token, from the root: each token is a prefix of the labels. Delimiters
/// between labels are not part of the labels. A leading delimiter stays with the first label, since
/// `/one` and `one` are different tokens:
///
/// ```
/// use keyloom_trees::path::PathTokenizer;
/// let path = PathTokenizer::new().path("/one/two");
/// assert_eq!(path.labels().collect::<Vec<_>>(), ["/one", "two"]);
/// let host = PathTokenizer::new().delimiter('.').reverse().path("www.example.org");
/// assert_eq!(host.labels().collect::<Vec<_>>(), ["org", "example", "www"]);
/// ```
///
/// With a [replacement](PathTokenizer::replacement), a text that contains the replacement character
/// has ambiguous tokens: [`path_of_token`](PathTokenizer::path_of_token) splits such a token at
/// that character too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathTokenizer {
    delimiter: char,
    replacement: Option<char>,
    skip: usize,
    is_reverse: bool,
}

impl fmt::Display for PathTokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delimiter, replacement, skip, is_reverse } = self;
        write!(f, "split at {delimiter:?}, {skip} skipped")?;
        replacement.map_or(Ok(()), |with| write!(f, ", joined by {with:?}"))?;
        if *is_reverse { f.write_str(", reversed") } else { Ok(()) }
    }
}

impl Default for PathTokenizer {
    fn default() -> Self {
        Self::new()
    }
}

impl PathTokenizer {
    /// Creates a tokenizer that splits at `/`.
    pub fn new() -> Self {
        Self { delimiter: '/', replacement: None, skip: 0, is_reverse: false }
    }

    /// Sets the delimiter.
    #[must_use]
    pub fn delimiter(self, delimiter: char) -> Self {
        Self { delimiter, ..self }
    }

    /// Sets the character that the tokens contain instead of the delimiter.
    #[must_use]
    pub fn replacement(self, replacement: char) -> Self {
        Self { replacement: Some(replacement), ..self }
    }

    /// Skips the first `parts` parts of a text; in [reverse](PathTokenizer::reverse), the last
    /// ones.
    #[must_use]
    pub fn skip(self, parts: usize) -> Self {
        Self { skip: parts, ..self }
    }

    /// Expects the root at the end of the text, as in host names.
    #[must_use]
    pub fn reverse(self) -> Self {
        Self { is_reverse: true, ..self }
    }

    fn joint(&self) -> char {
        self.replacement.unwrap_or(self.delimiter)
    }

    /// The path of a text.
    ///
    /// Never fails: truncates a label to [`MAX_LABEL_CHARS`] characters and the path to
    /// [`MAX_LABELS`] labels, the limits of a [`LabelPath`]. A longer label or path does not fit
    /// into a key anyway.
    pub fn path(&self, text: &str) -> LabelPath {
        self.split(text, self.delimiter, self.skip)
    }

    /// The path whose [`token`](PathTokenizer::token) is this text.
    ///
    /// ```
    /// use keyloom_trees::path::PathTokenizer;
    /// let tokenizer = PathTokenizer::new().delimiter('-').replacement('/').skip(1);
    /// assert_eq!(tokenizer.tokens("one-two-three"), ["/two", "/two/three"]);
    /// assert_eq!(tokenizer.path_of_token("/two/three"), tokenizer.path("one-two-three"));
    /// ```
    pub fn path_of_token(&self, token: &str) -> LabelPath {
        self.split(token, self.joint(), 0)
    }

    fn split(&self, text: &str, delimiter: char, skip: usize) -> LabelPath {
        let mut parts: Vec<&str> = text.split(delimiter).collect();
        if self.is_reverse {
            parts.reverse();
        }
        // If the text has a delimiter at the root end, the first part is empty.
        let is_led = parts.first() == Some(&"");
        let led_by = usize::from(is_led);
        // In this case the first label includes the delimiter, which counts as one of its
        // characters.
        let has_joint = is_led || skip > 0;
        let room = |at: usize| MAX_LABEL_CHARS - usize::from(at == 0 && has_joint);
        let parts = parts.into_iter().skip(led_by + skip).take(MAX_LABELS).enumerate();
        let mut labels: Vec<String> = parts.map(|(at, part)| cut(part, room(at))).collect();
        if let Some(root) = labels.first_mut().filter(|_| has_joint) {
            let at = if self.is_reverse { root.len() } else { 0 };
            root.insert(at, self.joint());
        }
        LabelPath { labels }
    }

    /// The token of a path: its labels, joined as in the text.
    pub fn token(&self, path: &LabelPath) -> String {
        self.joined(path.labels())
    }

    fn joined<'l>(&self, labels: impl DoubleEndedIterator<Item = &'l str>) -> String {
        let labels: Vec<&str> = match self.is_reverse {
            true => labels.rev().collect(),
            false => labels.collect(),
        };
        labels.join(self.joint().encode_utf8(&mut [0; 4]))
    }

    /// The tokens of a text, from the root down. In [reverse](PathTokenizer::reverse), they go from
    /// the whole text up to the root.
    pub fn tokens(&self, text: &str) -> Vec<String> {
        let path = self.path(text);
        let tokens = (1..=path.nlevel())
            .map(|labels| self.joined(path.labels.iter().take(labels).map(String::as_str)));
        match self.is_reverse {
            true => tokens.rev().collect(),
            false => tokens.collect(),
        }
    }
}

fn cut(label: &str, chars: usize) -> String {
    label.chars().take(chars).collect()
}
