//! A label in a pattern, with its modifiers.

use std::fmt::{self, Write};

use super::next::NextLabel;
use super::syntax::{Cursor, write_label};

/// A label of a pattern, and how to compare labels with it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Word {
    text: String,
    /// The case-folded text, if case is ignored.
    folded: Option<String>,
    /// Whether labels with this prefix match too.
    any_end: bool,
    /// Whether words between underscores are compared separately.
    by_words: bool,
}

/// Folds the case of a text.
fn folded(text: &str) -> String {
    // Convert character by character: converting the whole text would map a final sigma
    // differently.
    text.chars().flat_map(char::to_lowercase).collect()
}

impl Word {
    /// A word that matches exactly this label.
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

    /// Whether a label matches.
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

    /// The matching labels, if they are one range.
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
