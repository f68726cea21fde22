//! The parts of a pattern with wildcards.

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WildcardPart {
    /// Literal characters.
    Text(String),
    /// `?`: one character.
    One,
    /// `*`: any number of characters.
    Any,
}

impl WildcardPart {
    pub(super) fn literal(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::One | Self::Any => None,
        }
    }
}

/// The parts of `pattern`. A backslash at the end is literal.
pub(crate) fn parts(pattern: &str) -> Vec<WildcardPart> {
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        let c = match c {
            '*' => {
                // Two adjacent `*` are equivalent to one.
                if parts.last() != Some(&WildcardPart::Any) {
                    parts.push(WildcardPart::Any);
                }
                continue;
            }
            '?' => {
                parts.push(WildcardPart::One);
                continue;
            }
            '\\' => chars.next().unwrap_or('\\'),
            c => c,
        };
        match parts.last_mut() {
            Some(WildcardPart::Text(text)) => text.push(c),
            _ => parts.push(WildcardPart::Text(c.into())),
        }
    }
    parts
}

/// The pattern of these parts, with a backslash only where it is needed.
pub(crate) fn pattern_of(parts: &[WildcardPart]) -> String {
    let mut pattern = String::new();
    for part in parts {
        match part {
            WildcardPart::One => pattern.push('?'),
            WildcardPart::Any => pattern.push('*'),
            WildcardPart::Text(text) => {
                for c in text.chars() {
                    if matches!(c, '*' | '?' | '\\') {
                        pattern.push('\\');
                    }
                    pattern.push(c);
                }
            }
        }
    }
    pattern
}
