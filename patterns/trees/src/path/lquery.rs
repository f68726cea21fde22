//! Patterns of labels: `lquery`.

use std::fmt;
use std::str::FromStr;

use smallvec::SmallVec;

use super::error::{PathError, SyntaxProblem};
use super::label_path::LabelPath;
use super::next::NextLabel;
use super::syntax::{Cursor, MAX_LABELS};
use super::word::Word;

/// A pattern of labels, like PostgreSQL's `lquery`: items joined by `.`. Each item matches a run of
/// labels. The pattern matches a path if the items in sequence match all labels of the path.
///
/// | item | matches |
/// |---|---|
/// | `foo` | the label `foo` |
/// | `foo\|bar` | one of these labels |
/// | `!foo`, `!foo\|bar` | one label that is none of these |
/// | `*` | any labels, or none |
/// | `*{n}`, `*{n,}`, `*{n,m}`, `*{,m}` | n labels, at least n, n to m, at most m |
/// | `foo{n,m}`, `!foo\|bar{n}` | that many labels, each of which matches the item; without a number, one label |
///
/// Modifiers follow a label, in any order. `foo*` is any label that begins with `foo`. `foo@` is
/// `foo` regardless of case. `foo_bar%` is any label that contains the words `foo` and `bar`, where
/// words are separated by underscores. In `foo_bar%*` the words match as prefixes.
///
/// ```
/// use keyloom_trees::path::{LabelPath, Lquery};
/// let query: Lquery = "Top.*{0,2}.sport*@.!football|tennis{1,}.Russ*|Spain".parse()?;
/// let path: LabelPath = "Top.Hobbies.SPORTS.Winter.Russia".parse()?;
/// assert!(query.matches(&path));
/// assert!(!query.matches(&"Top.SPORTS.tennis.Spain".parse()?));
/// # Ok::<(), keyloom_trees::path::PathError>(())
/// ```
///
/// A label that is quoted in a [path](LabelPath#as-text) is also quoted here, before its modifiers:
/// `"a.b"*`. Case-insensitive comparison converts each character to lower case, in any language;
/// texts are not normalized.
///
/// A pattern has at most 65,535 items. At most 1,000 of them may have a range of repetitions, not
/// counting `*`. So matching an untrusted pattern takes a few MB of memory, and per label a time
/// proportional to the number of items.
///
/// [`Display`](fmt::Display) writes the pattern as PostgreSQL does; parsing that text returns the
/// same pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lquery {
    items: Vec<Item>,
}

/// A run of labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Item {
    /// The alternatives for each label; if empty, any label.
    words: Vec<Word>,
    is_not: bool,
    /// The minimum and maximum number of labels; [`UNBOUNDED`] is no limit.
    low: u32,
    high: u32,
    /// Whether a number of labels was given for the words.
    is_counted: bool,
}

/// The maximum number of items with a range of repetitions. For each such item, positions are kept
/// for every label of a key. These positions take at most 3 MB.
const MAX_RANGES: usize = 1_000;

/// The maximum number of labels in a path.
const UNBOUNDED: u32 = MAX_LABELS as u32;

impl Item {
    const ANY: Self =
        Self { words: Vec::new(), is_not: false, low: 0, high: UNBOUNDED, is_counted: false };

    fn one_of(words: Vec<Word>, is_not: bool) -> Self {
        Self { words, is_not, low: 1, high: 1, is_counted: false }
    }

    fn matches(&self, label: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| word.matches(label)) != self.is_not
    }

    /// Whether the item can match a path in several ways; each way needs its own position.
    fn is_range(&self) -> bool {
        self.low < self.high && !self.is_any()
    }

    /// Whether the item matches any number of any labels.
    fn is_any(&self) -> bool {
        self.words.is_empty() && self.high == UNBOUNDED
    }
}

/// The state of a pattern after some labels: each item that may come next, and the number of labels
/// that the item has matched. Sorted, without duplicates.
pub(super) type Positions = SmallVec<[(u32, u32); 4]>;

impl Lquery {
    /// The pattern that matches `path` and all its descendants: `path.*`, with the labels taken
    /// literally.
    pub fn descendants_of(path: &LabelPath) -> Self {
        let exactly = |label: &str| Item::one_of(vec![Word::exactly(label.to_owned())], false);
        Self { items: path.labels().map(exactly).chain([Item::ANY]).collect() }
    }

    /// Whether `path` matches: `path ~ self`.
    pub fn matches(&self, path: &LabelPath) -> bool {
        let step = |at: Positions, label: &str| self.step(&at, label);
        self.is_match(&path.labels().fold(self.start(), step))
    }

    /// The state before the first label.
    pub(super) fn start(&self) -> Positions {
        self.closed([(0, 0)])
    }

    /// The state after one more label. Empty if no continuation can match.
    pub(super) fn step(&self, at: &Positions, label: &str) -> Positions {
        let behind = at.iter().filter_map(|&(place, count)| {
            let item = self.items.get(place as usize)?;
            (count < item.high || item.high == UNBOUNDED).then_some(())?;
            item.matches(label).then_some((place, count + 1))
        });
        self.closed(behind)
    }

    /// Adds the items that may also begin, because the preceding items have matched enough labels.
    /// `at` is ascending.
    fn closed(&self, at: impl IntoIterator<Item = (u32, u32)>) -> Positions {
        let mut closed = Positions::new();
        // The last item that was begun. `at` is ascending, so all earlier items have been begun as
        // well. Beginning them again would take time quadratic in the number of optional items.
        let mut begun = 0;
        for (mut place, mut count) in at {
            loop {
                let Some(item) = self.items.get(place as usize) else {
                    closed.push((place, 0));
                    break;
                };
                // Without an upper limit, a count above the minimum makes no difference.
                if item.high == UNBOUNDED {
                    count = count.min(item.low);
                }
                if count < item.high {
                    closed.push((place, count));
                }
                if count < item.low || place < begun {
                    break;
                }
                (place, count) = (place + 1, 0);
                begun = place;
            }
        }
        closed.sort_unstable();
        closed.dedup();
        self.keep_the_least(&mut closed);
        self.without_needless(closed)
    }

    /// Keeps only the lowest sufficient count of each item, which can match everything that higher
    /// counts can match. There are fewer insufficient counts than labels so far, so each additional
    /// item costs one more position.
    fn keep_the_least(&self, at: &mut Positions) {
        let mut enough = None;
        at.retain(|&mut (place, count)| {
            let is_enough = self.items.get(place as usize).is_some_and(|item| count >= item.low);
            let is_kept = !is_enough || enough != Some(place);
            if is_enough {
                enough = Some(place);
            }
            is_kept
        });
    }

    /// An item that matches any number of any labels covers all positions before it, so those
    /// positions are dropped.
    fn without_needless(&self, mut at: Positions) -> Positions {
        let last_any = at.iter().rposition(|&(place, count)| {
            let item = self.items.get(place as usize);
            item.is_some_and(|item| item.is_any() && count >= item.low)
        });
        if let Some(last_any) = last_any {
            at.drain(..last_any);
        }
        at
    }

    /// Whether the labels so far match.
    pub(super) fn is_match(&self, at: &Positions) -> bool {
        at.last().is_some_and(|(place, _)| *place as usize == self.items.len())
    }

    /// Whether the labels so far match with every continuation.
    pub(super) fn is_whole(&self, at: &Positions) -> bool {
        let last = self.items.len().checked_sub(1);
        last.is_some_and(|last| {
            let any = self.items.get(last).filter(|item| item.is_any());
            any.is_some_and(|item| at.contains(&(last as u32, item.low)))
        })
    }

    /// The labels that may come next.
    pub(super) fn next_labels<'q, 'a>(
        &'q self,
        at: &'a Positions,
    ) -> impl Iterator<Item = NextLabel<'q>> + use<'q, 'a> {
        let items = at.iter().filter_map(|(place, _)| self.items.get(*place as usize));
        items.flat_map(|item| {
            let is_open = item.is_not || item.words.is_empty();
            let any = is_open.then_some(NextLabel::Any);
            let words = if is_open { &[] } else { item.words.as_slice() };
            any.into_iter().chain(words.iter().map(Word::next_label))
        })
    }
}

impl FromStr for Lquery {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        parse(text)
    }
}

fn parse(text: &str) -> Result<Lquery, PathError> {
    let mut cursor = Cursor::new("lquery", text);
    let mut items: Vec<Item> = Vec::new();
    let (mut words, mut ranges) = (0, 0);
    loop {
        let at = cursor.position();
        cursor.room_for_more(items.len().max(words))?;
        let item = item(&mut cursor)?;
        words += item.words.len();
        ranges += usize::from(item.is_range());
        if ranges > MAX_RANGES {
            return Err(cursor.error_at(at, SyntaxProblem::TooManyRanges { limit: MAX_RANGES }));
        }
        items.push(item);
        match cursor.peek() {
            None => return Ok(Lquery { items }),
            Some('.') => cursor.bump(),
            Some(_) => return Err(cursor.unexpected()),
        };
    }
}

fn item(cursor: &mut Cursor<'_>) -> Result<Item, PathError> {
    if cursor.eat('*') {
        let (low, high) = count(cursor)?.unwrap_or((0, UNBOUNDED));
        return Ok(Item { low, high, ..Item::ANY });
    }
    let is_not = cursor.eat('!');
    let mut words = vec![word(cursor, is_not)?];
    while cursor.eat('|') {
        cursor.room_for_more(words.len())?;
        words.push(word(cursor, false)?);
    }
    let item = Item::one_of(words, is_not);
    Ok(match count(cursor)? {
        Some((low, high)) => Item { low, high, is_counted: true, ..item },
        None => item,
    })
}

/// Reads a label and its modifiers. If `may_lack` is true, a label must follow, and a missing label
/// is reported as an empty label.
fn word(cursor: &mut Cursor<'_>, may_lack: bool) -> Result<Word, PathError> {
    let missing = cursor.error(SyntaxProblem::EmptyLabel);
    if let Some(label) = cursor.label()? {
        return Ok(Word::with_modifiers(label, cursor));
    }
    if may_lack {
        Word::with_modifiers(String::new(), cursor);
        if matches!(cursor.peek(), None | Some('|' | '{' | '.')) {
            return Err(missing);
        }
    }
    Err(cursor.unexpected())
}

/// Reads the number of labels of an item, if it is given.
fn count(cursor: &mut Cursor<'_>) -> Result<Option<(u32, u32)>, PathError> {
    if !cursor.eat('{') {
        return Ok(None);
    }
    let low = number(cursor)?;
    if low.is_some() && cursor.eat('}') {
        return Ok(low.map(|low| (low, low)));
    }
    if !cursor.eat(',') {
        return Err(cursor.unexpected());
    }
    let (low, at) = (low.unwrap_or(0), cursor.position());
    let high = number(cursor)?.unwrap_or(UNBOUNDED);
    if low > high {
        let (low, high) = (low as usize, high as usize);
        return Err(cursor.error_at(at, SyntaxProblem::LowAboveHigh { low, high }));
    }
    match cursor.eat('}') {
        true => Ok(Some((low, high))),
        false => Err(cursor.unexpected()),
    }
}

fn number(cursor: &mut Cursor<'_>) -> Result<Option<u32>, PathError> {
    let at = cursor.position();
    let mut number = None;
    while let Some(digit) = cursor.peek().and_then(|c| c.to_digit(10)) {
        cursor.bump();
        let longer = number.unwrap_or(0) * 10 + digit;
        if longer > UNBOUNDED {
            return Err(cursor.error_at(at, SyntaxProblem::CountTooLarge { limit: MAX_LABELS }));
        }
        number = Some(longer);
    }
    Ok(number)
}

impl fmt::Display for Lquery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, item) in self.items.iter().enumerate() {
            if at > 0 {
                f.write_str(".")?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_not { "!" } else { "" })?;
        for (at, word) in self.words.iter().enumerate() {
            let joined = if at > 0 { "|" } else { "" };
            write!(f, "{joined}{word}")?;
        }
        if self.words.is_empty() {
            f.write_str("*")?;
        } else if !self.is_counted {
            return Ok(());
        }
        match (self.low, self.high) {
            (low, high) if low == high => write!(f, "{{{low}}}"),
            (0, UNBOUNDED) if self.words.is_empty() => Ok(()),
            (0, UNBOUNDED) => f.write_str("{,}"),
            (0, high) => write!(f, "{{,{high}}}"),
            (low, UNBOUNDED) => write!(f, "{{{low},}}"),
            (low, high) => write!(f, "{{{low},{high}}}"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Lquery, MAX_RANGES};

    #[test]
    fn positions_grow_with_the_items_and_not_with_their_square() {
        for item in ["a{0,1}", "a{0,65534}", "a{,3}", "!b{0,}"] {
            let query: Lquery = vec![item; MAX_RANGES].join(".").parse().unwrap();
            let mut at = query.start();
            for _ in 0..300 {
                assert!(at.len() <= MAX_RANGES + 1, "{item}: {}", at.len());
                assert!(at.capacity() <= 8 * MAX_RANGES, "{item}: {}", at.capacity());
                at = query.step(&at, "a");
            }
            assert!(query.is_match(&at), "{item}");
        }
    }

    #[test]
    fn counts_that_are_not_enough_are_fewer_than_the_labels() {
        let query: Lquery = vec!["a{5,9}"; MAX_RANGES].join(".").parse().unwrap();
        let mut at = query.start();
        for labels in 1..=300 {
            at = query.step(&at, "a");
            assert!(at.len() <= labels + 2, "{} after {labels} labels", at.len());
        }
    }
}
