//! A search for the best paragraphs with at least one of two words, and the windows that it skips
//! by the bounds of their blocks.

use crate::Drawn;
use crate::alice::Paragraphs;
use crate::block::Block;
use crate::card::Card;

const TERMS: [&str; 2] = ["alice", "rabbit"];
/// The number of results.
const BEST: usize = 3;
const WIDTH: u32 = 760;
const LEFT: f64 = 40.0;
/// The baseline of the bars, and the height of a score of 1.
const GROUND: f64 = 235.0;
const SCALE: f64 = 30.0;

/// A term with its blocks.
struct List {
    term: &'static str,
    blocks: Vec<Block>,
    idf: f64,
    average: f64,
}

impl List {
    fn read(paragraphs: &Paragraphs, term: &'static str) -> Drawn<Self> {
        let blocks = paragraphs.blocks(term)?.into_iter();
        let blocks = blocks.map(|(last, bytes)| Block::decode(&bytes, last));
        let blocks = blocks.collect::<Drawn<Vec<_>>>()?;
        let [documents, tokens] = paragraphs.totals()?;
        let with_term = blocks.iter().map(|block| block.docs.len()).sum::<usize>() as f64;
        let idf = (1.0 + (documents - with_term + 0.5) / (with_term + 0.5)).ln();
        Ok(Self { term, blocks, idf, average: tokens / documents })
    }

    /// BM25 of one term.
    fn score(&self, freq: u32, len: u32) -> f64 {
        let (freq, len) = (f64::from(freq), f64::from(len));
        self.idf * freq * 2.2 / (freq + 1.2 * (0.25 + 0.75 * len / self.average))
    }

    /// The first block that ends at or after an id.
    fn block(&self, id: u32) -> Option<&Block> {
        self.blocks.iter().find(|block| block.last >= id)
    }

    fn bound(&self, id: u32) -> f64 {
        let bounds = self.block(id).map_or(&[][..], |block| &block.bounds);
        bounds.iter().map(|(freq, len)| self.score(*freq, *len)).fold(0.0, f64::max)
    }

    fn score_of(&self, id: u32) -> Option<f64> {
        let block = self.block(id)?;
        let at = block.docs.binary_search(&id).ok()?;
        Some(self.score(*block.freqs.get(at)?, *block.lens.get(at)?))
    }
}

/// A range of ids with the same blocks.
struct Window {
    first: u32,
    last: u32,
    /// The greatest possible score of each term.
    bounds: [f64; 2],
    /// The score that a paragraph must exceed when the search reaches this window.
    threshold: f64,
    found: usize,
    scored: usize,
}

/// Searches as the crate does: in each window, terms whose bounds together do not exceed the
/// threshold contribute no candidates.
fn search(lists: &[List; 2], ids: u32) -> Vec<Window> {
    let (mut best, mut windows, mut first) = (Vec::<f64>::new(), Vec::new(), 0);
    while first < ids {
        let ends = lists.iter().filter_map(|list| list.block(first)).map(|block| block.last);
        let last = ends.min().unwrap_or(ids).min(ids - 1);
        let bounds = lists.each_ref().map(|list| list.bound(first));
        let threshold = least(&best);
        let (mut found, mut scored) = (0, 0);
        for id in first..=last {
            let scores = lists.each_ref().map(|list| list.score_of(id));
            if scores.iter().all(Option::is_none) {
                continue;
            }
            found += 1;
            let of_terms = scores.iter().zip(bounds);
            let possible: f64 = of_terms.filter(|(score, _)| score.is_some()).map(|(_, b)| b).sum();
            let [smaller, larger] = [bounds[0].min(bounds[1]), bounds[0].max(bounds[1])];
            let has_larger =
                scores.iter().zip(bounds).any(|(score, b)| score.is_some() && b >= larger);
            let is_candidate = match least(&best) {
                least if smaller + larger <= least => false,
                least if smaller <= least => has_larger && possible > 0.0,
                _ => true,
            };
            if is_candidate {
                scored += 1;
                best.push(scores.iter().flatten().sum());
                best.sort_by(|a, b| b.total_cmp(a));
                best.truncate(BEST);
            }
        }
        windows.push(Window { first, last, bounds, threshold, found, scored });
        first = last + 1;
    }
    windows
}

fn least(best: &[f64]) -> f64 {
    best.get(BEST - 1).copied().unwrap_or(0.0)
}

pub fn picture(paragraphs: &Paragraphs) -> Drawn<String> {
    let [one, other] = TERMS.map(|term| List::read(paragraphs, term));
    let lists = [one?, other?];
    let ids = paragraphs.totals()?[0] as u32;
    let windows = search(&lists, ids);
    let mut card = Card::new(
        WIDTH,
        330,
        "Windows that a search skips",
        "A bar for each window of paragraphs: the greatest possible scores of two terms, one on \
         top of the other, with the score that a paragraph must exceed. Below, how many \
         paragraphs with a term were scored.",
    );
    let [a, b] = lists.each_ref().map(|list| list.term);
    card.text(
        10,
        24,
        &format!("the {BEST} best paragraphs with {a} or {b}: greatest scores by window"),
    );
    let width = (f64::from(WIDTH) - LEFT - 20.0) / f64::from(ids);
    for window in &windows {
        draw(&mut card, window, width);
    }
    card.path("inside edges", "M10 290h14v12h-14z".to_owned());
    card.text(30, 301, &format!("bound of {a}"));
    card.path("across edges", "M150 290h14v12h-14z".to_owned());
    card.text(170, 301, &format!("bound of {b}"));
    card.path("leap", "M290 296h24".to_owned());
    card.text(320, 301, "score to exceed, at the beginning of the window");
    Ok(card.finish())
}

fn draw(card: &mut Card, window: &Window, width: f64) {
    let x = LEFT + f64::from(window.first) * width;
    let across = f64::from(window.last - window.first + 1) * width - 3.0;
    let mut y = GROUND;
    for (bound, class) in window.bounds.iter().zip(["inside edges", "across edges"]) {
        let height = bound * SCALE;
        y -= height;
        card.path(class, format!("M{x:.1} {y:.1}h{across:.1}v{height:.1}h-{across:.1}z"));
    }
    if window.threshold > 0.0 {
        let y = GROUND - window.threshold * SCALE;
        card.path("leap", format!("M{:.1} {y:.1}h{:.1}", x - 2.0, across + 4.0));
    }
    let x = x as u32;
    card.text(x, 252, &format!("{}–{}", window.first, window.last));
    let scored = match window.scored {
        0 => "skipped".to_owned(),
        scored => format!("{scored} of {} scored", window.found),
    };
    card.text(x, 270, &scored);
}
