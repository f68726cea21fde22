//! Lower case and accents.

use keyloom_text::analysis::{Analyzer, Language, Tokenizer};

fn folded(text: &str) -> String {
    let analyzer = Analyzer::new("folded", Tokenizer::keyword()).fold_accents();
    analyzer.terms(text).concat()
}

#[test]
fn accents_of_cities_are_folded() {
    // Each city with the ASCII spelling of its name.
    let cities = [
        ("Zürich", "Zurich"),
        ("São Tomé", "Sao Tome"),
        ("Łódź", "Lodz"),
        ("Tromsø", "Tromso"),
        ("Đà Nẵng", "Da Nang"),
        ("Čačak", "Cacak"),
        ("Malmö", "Malmo"),
        ("Ærøskøbing", "AEroskobing"),
        ("Þorlákshöfn", "THorlakshofn"),
        ("Hafnarfjörður", "Hafnarfjordur"),
        ("Gießen", "Giessen"),
        ("Diyarbakır", "Diyarbakir"),
        ("İzmir", "Izmir"),
        ("Gdańsk", "Gdansk"),
        ("Timișoara", "Timisoara"),
        ("Huế", "Hue"),
        ("Nuku‘alofa", "Nuku'alofa"),
        ("Ħamrun", "Hamrun"),
        ("Œuilly", "OEuilly"),
        ("A Coruña", "A Coruna"),
    ];
    for (name, ascii) in cities {
        assert_eq!(folded(name), ascii, "{name}");
    }
}

#[test]
fn decomposed_letters_are_folded_alike() {
    assert_eq!(folded("Zu\u{308}rich"), folded("Zürich"));
    assert_eq!(folded("Å\u{30A}"), "A");
}

#[test]
fn compatibility_forms_are_folded() {
    assert_eq!(folded("ﬁn"), "fin");
    assert_eq!(folded("Ｔｏｋｙｏ"), "Tokyo");
    assert_eq!(folded("x²"), "x2");
}

#[test]
fn other_scripts_keep_their_marks() {
    for text in ["हिन्दी", "ไทย", "한국어", "தமிழ்", "日本"] {
        assert_eq!(folded(text), text);
    }
    assert_eq!(folded("Αθήνας"), "Αθηνασ");
    assert_eq!(folded("Йошкар"), "Иошкар");
}

#[test]
fn lower_case_is_that_of_unicode() {
    let lower = Analyzer::new("lower", Tokenizer::keyword()).lower_case();
    for text in ["STRASSE", "STRAẞE", "İZMİR", "ÀÉ", "ǅ", "already", "ΟΔΥΣΣΕΥΣ", "Οδυσσεύς"]
    {
        // The standard library implements the same tables, and the same rule for the final sigma.
        assert_eq!(lower.terms(text), [text.to_lowercase().replace('ς', "σ")]);
    }
}

#[test]
fn decomposed_letters_are_composed_in_lower_case() {
    let french = Analyzer::language(Language::French);
    for analyzer in [Analyzer::simple(), Analyzer::names(), french] {
        for (composed, decomposed) in
            [("Été", "E\u{301}te\u{301}"), ("Ångström", "A\u{30A}ngstro\u{308}m")]
        {
            assert_eq!(analyzer.terms(composed), analyzer.terms(decomposed));
            assert_eq!(analyzer.normalize(composed), analyzer.normalize(decomposed));
        }
    }
    assert_eq!(Analyzer::simple().terms("E\u{301}"), ["é"]);
}

#[test]
fn turkish_has_two_letters_i() {
    let lower = Analyzer::new("lower", Tokenizer::keyword()).turkish_lower_case();
    for text in ["ISPARTA", "İZMİR", "DİYARBAKIR", "I\u{307}zmir", "çığ", "ÇIĞ", "ΣΊΣΥΦΟΣ"]
    {
        let i = text.replace("I\u{307}", "İ").replace('İ', "i").replace('I', "ı");
        assert_eq!(lower.terms(text), [i.to_lowercase().replace('ς', "σ")]);
    }
    let turkish = Analyzer::language(Language::Turkish);
    assert_eq!(turkish.terms("KAPILAR"), turkish.terms("kapılar"));
    assert_ne!(turkish.terms("kapı"), turkish.terms("KAPİ"));
    assert!(
        turkish
            .description()
            .starts_with("words/2 apostrophe_suffix/1 turkish_lower_case/2 stop_words")
    );
}
