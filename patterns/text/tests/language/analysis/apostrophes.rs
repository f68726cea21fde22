//! Apostrophes of any form are one letter.

use keyloom_text::analysis::{Analyzer, Language, Tokenizer};
use keyloom_text::suggest::Similarity;
use keyloom_text::{Highlighter, Query};

/// The apostrophes in use: ASCII, typographic, modifier letters, full-width, and quotation marks
/// that are typed as apostrophes.
const APOSTROPHES: [char; 7] =
    ['\'', '\u{2019}', '\u{2018}', '\u{201B}', '\u{2BC}', '\u{2BB}', '\u{FF07}'];

fn of_language(language: Language) -> Analyzer {
    Analyzer::language(language)
}

fn chains() -> Vec<Analyzer> {
    let keyword = || Analyzer::new("keyword", Tokenizer::keyword());
    let mut all: Vec<Analyzer> = Language::ALL.iter().copied().map(of_language).collect();
    all.extend([
        Analyzer::simple(),
        Analyzer::names(),
        Analyzer::new("words", Tokenizer::words()),
        Analyzer::simple().edge_ngrams(1..=5).unwrap(),
        Analyzer::simple().stem(Language::English),
        Analyzer::simple().elision(["l"]).drop_apostrophe_suffix(),
        Analyzer::new("grams", Tokenizer::ngrams(2..=3).unwrap()).lower_case(),
        keyword().lower_case(),
        keyword().turkish_lower_case(),
        keyword().fold_accents(),
    ]);
    all
}

/// A text of random words with `#` in place of apostrophes at any position, also beside digits,
/// Hebrew and Katakana letters, which have special word boundary rules.
fn random_text(random: &mut fastrand::Rng) -> String {
    let letters: Vec<char> = "abelnstuEIİıéñжїאשアカ17 .-#####".chars().collect();
    let articles = ["l#", "D#", "qu#", "dell#", "", "", "", ""];
    let mut text = String::new();
    for _ in 0..random.usize(1..6) {
        text.push_str(articles[random.usize(..articles.len())]);
        text.extend((0..random.usize(0..9)).map(|_| letters[random.usize(..letters.len())]));
        text.push(' ');
    }
    text
}

/// Compares two characters as the apostrophes `#` of a text. Returns the number of analyzers whose
/// terms, parts of words or positions differ.
fn differing(chains: &[Analyzer], text: &str, [a, b]: [char; 2]) -> usize {
    let [of_a, of_b] = [a, b].map(|c| text.replace('#', &c.to_string()));
    // Converts an offset in one text to an offset in the other, by counting characters.
    let in_b = |at: usize| of_b.char_indices().nth(of_a[..at].chars().count()).map(|(at, _)| at);
    let differs = |chain: &&Analyzer| {
        let places = chain.tokens(&of_a).into_iter().map(|token| {
            let [start, end] = [token.start, token.end].map(|at| in_b(at).unwrap_or(of_b.len()));
            (token.term, token.position, start, end)
        });
        let found = chain.tokens(&of_b).into_iter();
        let found = found.map(|token| (token.term, token.position, token.start, token.end));
        !places.eq(found) || chain.normalize(&of_a) != chain.normalize(&of_b)
    };
    chains.iter().filter(differs).count()
}

#[test]
fn terms_are_the_same_with_any_apostrophe() {
    let chains = chains();
    let mut random = fastrand::Rng::with_seed(11);
    let mut controls = 0;
    for _ in 0..400 {
        let text = random_text(&mut random);
        for other in APOSTROPHES {
            assert_eq!(differing(&chains, &text, ['\'', other]), 0, "{text:?} with {other:?}");
        }
        controls += usize::from(differing(&chains, &text, ['\'', '·']) > 0);
    }
    // The law does not hold for other characters within words.
    assert!(controls > 200, "{controls}");
}

#[test]
fn words_are_found_with_another_apostrophe() {
    for apostrophe in APOSTROPHES {
        let text = |text: &str| text.replace('#', &apostrophe.to_string());
        let terms = |analyzer: Analyzer, of: &str| analyzer.terms(&text(of));
        assert_eq!(terms(Analyzer::simple(), "Don#t"), ["don't"]);
        let of = |language, words: &str| terms(of_language(language), words);
        assert_eq!(of(Language::French, "L#arbre"), of(Language::French, "arbre"));
        assert_eq!(of(Language::French, "jusqu#arbre qu#arbres"), ["arbre", "arbre"]);
        assert_eq!(of(Language::French, "aujourd#hui"), ["aujourd'hui"]);
        assert_eq!(of(Language::Italian, "dell#arte"), of(Language::Italian, "arte"));
        assert_eq!(of(Language::Italian, "Un#opera"), of(Language::Italian, "opera"));
        let istanbul = of(Language::Turkish, "İstanbul");
        assert_eq!(of(Language::Turkish, "İstanbul#da"), istanbul);
        assert_eq!(of(Language::Turkish, "İstanbul#un"), istanbul);
        assert_eq!(of(Language::English, "the rabbit#s"), ["rabbit"]);
    }
}

#[test]
fn offsets_are_those_of_the_original_text() {
    let text = "Über l\u{2019}arbre d\u{2BC}été \u{FF07}fin\u{2019} \u{2018}mot\u{2019}";
    let words = |analyzer: Analyzer| {
        let slice =
            |token: keyloom_text::analysis::TokenBuf| text[token.start..token.end].to_owned();
        analyzer.tokens(text).into_iter().map(slice).collect::<Vec<_>>()
    };
    let whole = ["Über", "l\u{2019}arbre", "d\u{2BC}été", "fin", "mot"];
    assert_eq!(words(Analyzer::simple()), whole);
    // "été" is one of the stop words.
    assert_eq!(words(of_language(Language::French)), ["Über", "arbre", "fin", "mot"]);
    assert_eq!(words(Analyzer::simple().drop_apostrophe_suffix())[1..3], ["l", "d"]);

    let marked = |query: &str, text: &str, language| {
        let analyzer = of_language(language);
        let highlighter = Highlighter::new(&Query::term("b", query), "b", &analyzer).unwrap();
        let highlighter = highlighter.tags("[", "]").whole_text();
        highlighter.highlight(text)[0].text.clone()
    };
    assert_eq!(marked("arbre", "ô l’arbre", Language::French), "ô l’[arbre]");
    assert_eq!(marked("l'arbre", "ô L’Arbre", Language::French), "ô L’[Arbre]");
    assert_eq!(marked("istanbul", "ô istanbul’da", Language::Turkish), "ô [istanbul]’da");
}

#[test]
fn corrected_words_keep_their_articles() {
    use keyloom::{Memory, Store, Subspace};
    let words = Analyzer::simple().elision(["l"]);
    let index = keyloom_text::TextIndex::with_keys_as_ids(&Subspace::new("index")).field(
        "body",
        words,
        |_, text: &String, add| add(text),
    );
    let texts = keyloom_tables::Table::<u32, String>::new(&Subspace::new("texts")).with(&index);
    let store = Memory::new();
    store.transact(|txn| texts.put(txn, &1, &"l'arbre".to_owned())).unwrap();
    let snapshot = store.snapshot().unwrap();
    let options = Similarity::default();
    let corrected = index.correct(&snapshot, "body", "où l’arbe", &options).unwrap();
    assert!(corrected.text.ends_with("l’arbre"), "{}", corrected.text);
}

#[test]
fn whole_texts_and_paths_stay_unchanged() {
    assert_eq!(Analyzer::keyword().terms("O’Brien"), ["O’Brien"]);
    assert_eq!(Analyzer::paths().terms("O’Brien/ʼ"), ["O’Brien", "O’Brien/ʼ"]);
    assert_eq!(Analyzer::keyword().normalize("O’Brien"), "O’Brien");
}
