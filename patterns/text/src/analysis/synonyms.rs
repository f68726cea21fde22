//! Synonyms: rules that add or replace words and phrases.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::error::AnalysisError;
use super::fingerprint::short_fingerprint;
use super::token::{Token, TokenBuf};

/// The maximum number of terms of a phrase.
// At each token, the filter compares as many tokens as the longest phrase has.
const MAX_PHRASE_TERMS: usize = 16;

/// Rules for synonymous words and phrases, for [`Analyzer::synonyms`](super::Analyzer::synonyms).
///
/// If several rules match at a token, the longest is applied. Matching continues after the matched
/// phrase. Inserted terms are not matched again.
///
/// | text | rule | terms, with their positions |
/// |---|---|---|
/// | a red sofa | `equivalent(["sofa", "couch"])` | a:0 red:1 couch:2 sofa:2 |
/// | in NYC now | `expand("nyc", ["new york"])` | in:0 new:1 nyc:1 york:2 now:2 |
/// | in new york now | `replace("new york", ["nyc"])` | in:0 nyc:1 now:3 |
///
/// The words of an inserted phrase take consecutive positions, beginning at the position of the
/// first matched word. Other words keep their positions. So an inserted phrase that is longer than
/// the matched phrase overlaps with the words after it, and a phrase query can match across both.
/// To avoid such matches, replace phrases by single words.
///
/// ```
/// use keyloom_text::analysis::{Analyzer, Synonyms, Tokenizer};
/// let synonyms = Synonyms::new().equivalent(["sofa", "couch"]).replace("New York", ["NYC"]);
/// let analyzer = Analyzer::new("shop", Tokenizer::words()).lower_case().synonyms(&synonyms)?;
/// assert_eq!(analyzer.terms("Sofas? A sofa!"), ["sofas", "a", "couch", "sofa"]);
/// assert_eq!(analyzer.terms("from New York"), ["from", "nyc"]);
/// # Ok::<(), keyloom_text::analysis::AnalysisError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Synonyms {
    rules: Vec<Declared>,
}

/// A rule whose phrases are not yet analyzed.
#[derive(Clone, Debug)]
struct Declared {
    from: String,
    to: Vec<String>,
    keeps: bool,
}

impl Synonyms {
    /// Creates an empty set of rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds rules that expand each of these phrases to all the others.
    #[must_use]
    pub fn equivalent<P: Into<String>>(mut self, phrases: impl IntoIterator<Item = P>) -> Self {
        let phrases: Vec<String> = phrases.into_iter().map(Into::into).collect();
        for from in &phrases {
            let to = phrases.iter().filter(|to| *to != from).cloned().collect();
            self.rules.push(Declared { from: from.clone(), to, keeps: true });
        }
        self
    }

    /// Adds a rule that expands `from` to each of `to`, and keeps `from`. The rule does not apply
    /// in the other direction.
    #[must_use]
    pub fn expand<P: Into<String>>(
        mut self,
        from: impl Into<String>,
        to: impl IntoIterator<Item = P>,
    ) -> Self {
        let to = to.into_iter().map(Into::into).collect();
        self.rules.push(Declared { from: from.into(), to, keeps: true });
        self
    }

    /// Adds a rule that replaces `from` by all of `to`.
    #[must_use]
    pub fn replace<P: Into<String>>(
        mut self,
        from: impl Into<String>,
        to: impl IntoIterator<Item = P>,
    ) -> Self {
        let to = to.into_iter().map(Into::into).collect();
        self.rules.push(Declared { from: from.into(), to, keeps: false });
        self
    }

    /// Compiles the rules. `analyze` turns each phrase into terms.
    pub(super) fn compile(
        &self,
        analyze: impl Fn(&str) -> Vec<TokenBuf>,
    ) -> Result<Rules, AnalysisError> {
        let mut rules = BTreeMap::<Phrase, Target>::new();
        for declared in &self.rules {
            let from = phrase(&declared.from, &analyze)?;
            let target = rules.entry(from).or_default();
            target.keeps |= declared.keeps;
            for to in &declared.to {
                let to = phrase(to, &analyze)?;
                if !target.phrases.contains(&to) {
                    target.phrases.push(to);
                }
            }
        }
        Ok(Rules::new(rules))
    }
}

/// Terms with their positions relative to the first term.
type Phrase = Vec<(u32, String)>;

fn phrase(text: &str, analyze: &impl Fn(&str) -> Vec<TokenBuf>) -> Result<Phrase, AnalysisError> {
    let tokens = analyze(text);
    let first = tokens.first().map_or(0, |token| token.position);
    if tokens.is_empty() || tokens.len() > MAX_PHRASE_TERMS {
        let (phrase, terms) = (text.to_owned(), tokens.len());
        return Err(AnalysisError::Synonym { phrase, terms, limit: MAX_PHRASE_TERMS });
    }
    Ok(tokens.into_iter().map(|token| (token.position - first, token.term)).collect())
}

#[derive(Default)]
struct Target {
    phrases: Vec<Phrase>,
    /// Whether the matched words are kept.
    keeps: bool,
}

/// Synonyms whose phrases are analyzed.
pub(super) struct Rules {
    /// The rules by the first term of their phrase; longer phrases come first.
    by_first: HashMap<String, Vec<(Phrase, Target)>>,
    /// The number of terms in the longest phrase to match.
    longest: usize,
    fingerprint: String,
    count: usize,
}

impl Rules {
    fn new(rules: BTreeMap<Phrase, Target>) -> Self {
        let text: String = rules.iter().map(|(from, target)| shown(from, target)).collect();
        let fingerprint = short_fingerprint([text.as_str()]);
        let longest = rules.keys().map(Vec::len).max().unwrap_or(0);
        let count = rules.len();
        let mut by_first = HashMap::<String, Vec<_>>::new();
        for (from, target) in rules {
            let first = from.first().map(|(_, term)| term.clone()).unwrap_or_default();
            by_first.entry(first).or_default().push((from, target));
        }
        by_first.values_mut().for_each(|rules| {
            rules.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        });
        Self { by_first, longest, fingerprint, count }
    }

    pub(super) fn description(&self) -> String {
        format!("{} {}", self.count, self.fingerprint)
    }

    /// The longest phrase at the beginning of `tokens`.
    fn at_start(&self, tokens: &VecDeque<TokenBuf>) -> Option<&(Phrase, Target)> {
        let first = tokens.front()?;
        let is_at_start = |phrase: &Phrase| {
            phrase.len() <= tokens.len()
                && phrase.iter().zip(tokens).all(|((after, term), token)| {
                    *term == token.term
                        && token.position.checked_sub(first.position) == Some(*after)
                })
        };
        self.by_first.get(&first.term)?.iter().find(|(from, _)| is_at_start(from))
    }
}

/// A rule as a text for the fingerprint. After each term comes a line feed, after each phrase a
/// tab, and after the rule a carriage return. So two rules have the same text only if a term
/// contains such a character.
fn shown(from: &Phrase, target: &Target) -> String {
    let phrases = [from].into_iter().chain(&target.phrases);
    let phrases = phrases.map(|phrase| {
        let terms = phrase.iter().map(|(after, term)| format!("{after} {term}\n"));
        terms.chain(["\t".to_owned()]).collect::<String>()
    });
    phrases.chain([format!("{}\r", target.keeps)]).collect()
}

/// Tokens that the rules may still match, and inserted tokens that wait for their position.
#[derive(Default)]
pub(super) struct Window {
    tokens: VecDeque<TokenBuf>,
    /// By ascending position.
    waiting: VecDeque<TokenBuf>,
}

impl Window {
    pub(super) fn push(
        &mut self,
        rules: &Rules,
        token: Token<'_>,
        next: &mut dyn FnMut(Token<'_>),
    ) {
        let is_idle = self.tokens.is_empty() && self.waiting.is_empty();
        if is_idle && !rules.by_first.contains_key(token.term) {
            // The common case: the token is not copied.
            return next(token);
        }
        self.tokens.push_back(token.into());
        while self.tokens.len() >= rules.longest.max(1) {
            self.step(rules, next);
        }
    }

    pub(super) fn finish(&mut self, rules: &Rules, next: &mut dyn FnMut(Token<'_>)) {
        while !self.tokens.is_empty() {
            self.step(rules, next);
        }
        self.waiting.drain(..).for_each(|token| next(token.as_token()));
    }

    /// Takes one phrase or token from the beginning.
    fn step(&mut self, rules: &Rules, next: &mut dyn FnMut(Token<'_>)) {
        let rule = rules.at_start(&self.tokens);
        let count = rule.map_or(1, |(from, _)| from.len());
        let matched: Vec<TokenBuf> = self.tokens.drain(..count).collect();
        let (Some(first), Some(last)) = (matched.first(), matched.last()) else { return };
        let mut reached = last.position;
        if let Some((_, target)) = rule {
            for (after, term) in target.phrases.iter().flatten() {
                let position = first.position.saturating_add(*after);
                let (start, end) = (first.start, last.end);
                self.wait(TokenBuf { term: term.clone(), position, start, end });
            }
        }
        if rule.is_none_or(|(_, target)| target.keeps) {
            matched.into_iter().for_each(|token| self.wait(token));
        }
        if let Some(front) = self.tokens.front() {
            reached = front.position;
        }
        while self.waiting.front().is_some_and(|token| token.position <= reached) {
            self.waiting.pop_front().iter().for_each(|token| next(token.as_token()));
        }
    }

    fn wait(&mut self, token: TokenBuf) {
        let at = self.waiting.partition_point(|other| other.position <= token.position);
        self.waiting.insert(at, token);
    }
}
