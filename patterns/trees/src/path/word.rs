//! A label in a pattern, with what may follow it.

use std::fmt::{self, Write};

use super::next::NextLabel;
use super::syntax::{Cursor, write_label};

/// A label to compare with, and how.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Word {
    text: String,
    /// The text without regard to case, where that is asked for.
    folded: Option<String>,
    /// Labels that begin with the text count too.
    any_end: bool,
    /// Each word between underscores is compared for itself.
    by_words: bool,
}

/// Text as it is compared without regard to case.
fn folded(text: &str) -> String {
    // Character by character: as a whole, a sigma at the end of a word would become another one.
    text.chars().flat_map(char::to_lowercase).collect()
}

impl Word {
    /// Exactly this label.
    pub(super) fn exactly(text: String) -> Self {
        Self { text, folded: None, any_end: false, by_words: false }
    }

    /// The word of this label, with the modifiers that follow it.
    pub(super) fn with_modifiers(text: String, cursor: &mut Cursor<'_>) -> Self {
        let mut word = Self::exactly(text);
        loop {
            match cursor.peek() {
                Some('@') => word.folded = Some(folded(&word.text)),
                Some('*') => word.any_end = true,
                Some('%') => word.by_words = true,
                _ => return word,
            }
            cursor.bump();
        }
    }

    /// Whether a label is meant.
    pub(super) fn matches(&self, label: &str) -> bool {
        match &self.folded {
            Some(text) => self.compare(text, &folded(label)),
            None => self.compare(&self.text, label),
        }
    }

    fn compare(&self, text: &str, label: &str) -> bool {
        let is_equal = |text: &str, label: &str| match self.any_end {
            true => label.starts_with(text),
            false => label == text,
        };
        match self.by_words {
            true => words(text).all(|word| words(label).any(|of_label| is_equal(word, of_label))),
            false => is_equal(text, label),
        }
    }

    /// The labels that match, if they are one range.
    pub(super) fn next_label(&self) -> NextLabel<'_> {
        match self {
            Self { folded: None, by_words: false, any_end: false, text } => {
                NextLabel::Exactly(text.into())
            }
            Self { folded: None, by_words: false, any_end: true, text } => {
                NextLabel::Prefix(text.into())
            }
            _ => NextLabel::Any,
        }
    }
}

fn words(label: &str) -> impl Iterator<Item = &str> {
    label.split('_').filter(|word| !word.is_empty())
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_label(f, &self.text)?;
        let modifiers = [('%', self.by_words), ('@', self.folded.is_some()), ('*', self.any_end)];
        modifiers.iter().filter(|(_, is_set)| *is_set).try_for_each(|(c, _)| f.write_char(*c))
    }
}
