//! Stemmers, on words of the Snowball project's published vocabularies.
//!
//! When an update of the stemmers fails here, `Language::version` must increase for the languages
//! whose stems differ.

use keyloom_text::analysis::{Analyzer, Language, Tokenizer};

fn assert_stems(language: Language, words: &str) {
    let analyzer = Analyzer::new("stems", Tokenizer::keyword()).stem(language);
    for pair in words.split(" | ") {
        let (word, stem) = pair.split_once(' ').unwrap();
        assert_eq!(analyzer.terms(word), [stem], "{word}");
    }
}

#[test]
fn english_stems_are_those_of_the_sample() {
    // The first words of the sample vocabulary on the page of the algorithm.
    assert_stems(
        Language::English,
        "consign consign | consigned consign | consigning consign | consignment consign | \
         consist consist | consisted consist | consistency consist | consistent consist | \
         consistently consist | consisting consist | consists consist | consolation consol | \
         consolations consol | consolatory consolatori | console consol | consoled consol | \
         consoles consol | consolidate consolid | consolidated consolid | consolidating consolid | \
         consoling consol | consolingly consol | consols consol | consonant conson | \
         consort consort | consorted consort | consorting consort | conspicuous conspicu | \
         conspicuously conspicu | conspiracy conspiraci | conspirator conspir | \
         conspirators conspir | conspire conspir | conspired conspir | conspiring conspir | \
         constable constabl | constables constabl | constance constanc | constancy constanc | \
         constant constant | knack knack | knackeries knackeri | knavish knavish | \
         kneaded knead | knell knell | knightly knight",
    );
}

#[test]
fn stems_are_those_of_the_vocabularies() {
    let vocabularies = [
        (Language::Arabic, "المنعقدتين منعقدت | سنحزنهم سنحز | لإشارتيها لاشارت | وشرعيتا شرعي"),
        (Language::Finnish, "ajolupa ajolu | eläkeläistä eläkel | fanaatikko fanaatiko"),
        (Language::French, "appuyant appui | compensation compens | lente lent | pélicans pélican"),
        (Language::German, "gebeugte gebeugt | schlechte schlecht | umliegender umlieg"),
        (Language::Greek, "χορδιζουν χορδ | μελλοντος μελλοντ | επιτροπου επιτροπ"),
        (Language::Italian, "applaudendo applaud | effetti effett | sconosciuta sconosc"),
        (Language::Norwegian, "kompenserer kompenser | nedsettelse nedsett | ressursene ressurs"),
        (Language::Portuguese, "circulando circul | farmacêuticos farmacêut | recorrerá recorr"),
        (Language::Romanian, "arestate arest | experimentat experiment | planelor plan"),
        (Language::Russian, "верхней верхн | коротких коротк | неприятном неприятн | смирю смир"),
        (Language::Spanish, "antesala antesal | financiamiento financi | padecen padec"),
    ];
    vocabularies.into_iter().for_each(|(language, words)| assert_stems(language, words));
}

#[test]
fn inflected_words_have_one_stem() {
    let families = [
        (Language::Czech, "město | města | městem", "měst"),
        (Language::Danish, "indtage | indtagelse | indtager | indtages", "indtag"),
        (Language::Dutch, "opgelegd | opleggen", "opleg"),
        (Language::Hungarian, "babakocsi | babakocsiért | babakocsijáért", "babakocs"),
        (Language::Polish, "rowerami | rowery", "rower"),
        (Language::Swedish, "jaktkarlarne | jaktkarlens", "jaktkarl"),
        (Language::Tamil, "பாடங்கள் | பாடம்", "பாடம்"),
        (Language::Turkish, "kitaplar | kitapları | kitap", "kitap"),
    ];
    for (language, words, stem) in families {
        let pairs: Vec<_> = words.split(" | ").map(|word| format!("{word} {stem}")).collect();
        assert_stems(language, &pairs.join(" | "));
    }
}

#[test]
fn stop_words_of_a_language_are_removed() {
    assert_eq!(
        Analyzer::language(Language::German).terms("Die Katze und der Hund"),
        ["katz", "hund"]
    );
    for &language in Language::ALL {
        let has_none = matches!(language, Language::Czech | Language::Polish);
        assert_eq!(language.stop_words().is_empty(), has_none, "{language:?}");
        assert!(language.stop_words().iter().all(|word| *word == word.to_lowercase()));
    }
}

#[test]
fn a_greek_word_that_broke_another_stemmer_is_stemmed() {
    // An older generated stemmer panicked on these words: it used stale byte offsets after it had
    // shortened the word.
    for word in ["ευωχηθηκαμε", "χριστοπουλοσ", "θυγατερεσ", "αγαπουσατε"]
    {
        assert!(!Analyzer::language(Language::Greek).terms(word).is_empty());
    }
}
