//! A second implementation of the language, as simple as possible: patterns as printable values,
//! and matchers by exhaustive search.

use fastrand::Rng;

/// A label in a pattern, and its modifiers.
#[derive(Clone, Debug)]
pub struct Word {
    pub label: String,
    pub ignores_case: bool,
    pub is_beginning: bool,
    pub by_words: bool,
}

/// An item of an lquery; without words, a star.
#[derive(Clone, Debug)]
pub struct Item {
    pub is_not: bool,
    pub words: Vec<Word>,
    /// The bounds in the braces, if there are any.
    pub braces: Option<(Option<usize>, Option<usize>, bool)>,
}

#[derive(Clone, Debug)]
pub enum Condition {
    Word(Word),
    Not(Box<Condition>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

pub const LABELS: [&str; 14] =
    ["a", "b", "c", "ab", "abc", "A", "Ab", "a_b", "foo_bar", "Foo_baz", "b_a", "1", "é", "É"];

pub fn label(rng: &mut Rng) -> String {
    // Few labels, so that patterns match often.
    let many = if rng.u8(..3) == 0 { LABELS.len() } else { 4 };
    LABELS[rng.usize(..many)].into()
}

pub fn path(rng: &mut Rng) -> Vec<String> {
    (0..rng.usize(..7)).map(|_| label(rng)).collect()
}

impl Word {
    fn random(rng: &mut Rng) -> Self {
        let plain = rng.bool();
        let mut modified = || !plain && rng.u8(..3) == 0;
        let (ignores_case, is_beginning, by_words) = (modified(), modified(), modified());
        Self { label: label(rng), ignores_case, is_beginning, by_words }
    }

    fn text(&self, rng: &mut Rng) -> String {
        let mut modifiers = vec![];
        for (c, is_set) in
            [('@', self.ignores_case), ('*', self.is_beginning), ('%', self.by_words)]
        {
            if is_set {
                modifiers.push(c);
            }
        }
        rng.shuffle(&mut modifiers);
        format!("{}{}", self.label, modifiers.into_iter().collect::<String>())
    }

    pub fn matches(&self, label: &str) -> bool {
        let fold =
            |text: &str| if self.ignores_case { text.to_lowercase() } else { text.to_owned() };
        let (own, label) = (fold(&self.label), fold(label));
        let equal = |own: &str, of_label: &str| {
            own == of_label || self.is_beginning && of_label.starts_with(own)
        };
        if !self.by_words {
            return equal(&own, &label);
        }
        own.split('_').all(|own| label.split('_').any(|of_label| equal(own, of_label)))
    }
}

impl Item {
    fn random(rng: &mut Rng) -> Self {
        let is_star = rng.u8(..3) == 0;
        let words = if is_star { 0 } else { [1, 1, 1, 2, 3][rng.usize(..5)] };
        let braces = rng.u8(..3) == 0;
        let (low, more) = (rng.usize(..3), rng.usize(..3));
        let (has_low, has_high) = (rng.bool(), rng.bool());
        let braces = braces.then(|| match rng.u8(..3) {
            0 => (Some(low), None, false),
            _ => {
                let base = if has_low { low } else { 0 };
                (has_low.then_some(low), has_high.then_some(base + more), true)
            }
        });
        Self {
            is_not: !is_star && rng.u8(..4) == 0,
            words: (0..words).map(|_| Word::random(rng)).collect(),
            braces,
        }
    }

    fn text(&self, rng: &mut Rng) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.text(rng)).collect();
        let words = if words.is_empty() { "*".to_owned() } else { words.join("|") };
        let number = |number: Option<usize>| number.map_or(String::new(), |n| n.to_string());
        let braces = match self.braces {
            None => String::new(),
            Some((low, _, false)) => format!("{{{}}}", number(low)),
            Some((low, high, true)) => format!("{{{},{}}}", number(low), number(high)),
        };
        format!("{}{words}{braces}", if self.is_not { "!" } else { "" })
    }

    fn count(&self) -> (usize, usize) {
        match self.braces {
            None if self.words.is_empty() => (0, usize::MAX),
            None => (1, 1),
            Some((low, _, false)) => (low.unwrap(), low.unwrap()),
            Some((low, high, true)) => (low.unwrap_or(0), high.unwrap_or(usize::MAX)),
        }
    }

    fn matches_one(&self, label: &str) -> bool {
        self.words.is_empty() || self.is_not != self.words.iter().any(|word| word.matches(label))
    }
}

pub fn lquery(rng: &mut Rng) -> Vec<Item> {
    (0..rng.usize(1..5)).map(|_| Item::random(rng)).collect()
}

pub fn lquery_text(items: &[Item], rng: &mut Rng) -> String {
    let items: Vec<_> = items.iter().map(|item| item.text(rng)).collect();
    items.join(".")
}

/// Tries every number of labels for the first item, and matches the other items with the rest.
pub fn lquery_matches(items: &[Item], path: &[String]) -> bool {
    let Some((item, others)) = items.split_first() else { return path.is_empty() };
    let (low, high) = item.count();
    (low..=high.min(path.len())).any(|count| {
        let (taken, rest) = path.split_at(count);
        taken.iter().all(|label| item.matches_one(label)) && lquery_matches(others, rest)
    })
}

impl Condition {
    pub fn random(rng: &mut Rng, depth: u8) -> Self {
        let parts =
            |rng: &mut Rng| (0..rng.usize(2..4)).map(|_| Self::random(rng, depth - 1)).collect();
        match rng.u8(..6) {
            0 if depth > 0 => Self::Not(Box::new(Self::random(rng, depth - 1))),
            1 | 2 if depth > 0 => Self::All(parts(rng)),
            3 | 4 if depth > 0 => Self::Any(parts(rng)),
            _ => Self::Word(Word::random(rng)),
        }
    }

    /// Prints the query with as few parentheses as possible, or with some more.
    pub fn text(&self, rng: &mut Rng) -> String {
        self.text_within(0, rng)
    }

    fn text_within(&self, binding: u8, rng: &mut Rng) -> String {
        let space = |rng: &mut Rng| if rng.bool() { " " } else { "" };
        let mut joined = |parts: &[Self], operator: &str, own: u8| {
            let parts: Vec<_> = parts.iter().map(|part| part.text_within(own + 1, rng)).collect();
            let operator = format!("{}{operator}{}", space(rng), space(rng));
            (parts.join(&operator), own)
        };
        let (text, own) = match self {
            Self::Word(word) => (word.text(rng), 3),
            Self::Not(part) => (format!("!{}{}", space(rng), part.text_within(2, rng)), 2),
            Self::All(parts) => joined(parts, "&", 1),
            Self::Any(parts) => joined(parts, "|", 0),
        };
        match own < binding || rng.u8(..8) == 0 {
            true => format!("({}{text}{})", space(rng), space(rng)),
            false => text,
        }
    }

    pub fn matches(&self, path: &[String]) -> bool {
        match self {
            Self::Word(word) => path.iter().any(|label| word.matches(label)),
            Self::Not(part) => !part.matches(path),
            Self::All(parts) => parts.iter().all(|part| part.matches(path)),
            Self::Any(parts) => parts.iter().any(|part| part.matches(path)),
        }
    }
}
