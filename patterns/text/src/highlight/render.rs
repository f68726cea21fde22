//! Texts with tags.

use std::ops::Range;

/// The tags before and after a mark, and whether the text is escaped.
#[derive(Clone, Debug)]
pub(super) struct Tags {
    pub(super) before: String,
    pub(super) after: String,
    pub(super) is_html: bool,
}

impl Tags {
    /// The part of `text` in `range`, with tags around its marks.
    pub(super) fn render(&self, text: &str, range: Range<usize>, marks: &[Range<usize>]) -> String {
        let mut out = String::with_capacity(range.len() + 16 * marks.len());
        let mut at = range.start;
        for mark in marks {
            self.push(text.get(at..mark.start), &mut out);
            out.push_str(&self.before);
            self.push(text.get(mark.clone()), &mut out);
            out.push_str(&self.after);
            at = mark.end;
        }
        self.push(text.get(at..range.end), &mut out);
        out
    }

    fn push(&self, text: Option<&str>, out: &mut String) {
        let text = text.unwrap_or_default();
        if !self.is_html {
            return out.push_str(text);
        }
        for c in text.chars() {
            match c {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                c => out.push(c),
            }
        }
    }
}
