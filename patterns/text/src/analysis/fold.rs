//! Removal of accents from letters.

use unicode_normalization::UnicodeNormalization;

/// Appends `term` without diacritics to `out`.
///
/// The compatibility decomposition (NFKD) separates most letters from their marks. The marks of
/// Latin, Greek and Cyrillic letters are removed. The marks of other scripts are vowels or tones,
/// and are kept. The result is recomposed, because Hangul syllables decompose, too.
pub(super) fn fold_into(term: &str, out: &mut String) {
    let letters = term.nfkd().filter(|c| !is_removed(*c));
    let mut folded = String::new();
    for letter in letters {
        match replacement(letter) {
            Some(ascii) => folded.push_str(ascii),
            None => folded.push(letter),
        }
    }
    out.extend(folded.nfc());
}

/// Whether `c` is in a block of combining marks that do not belong to a particular script.
fn is_removed(c: char) -> bool {
    matches!(c,
        '\u{300}'..='\u{36F}'
        | '\u{1AB0}'..='\u{1AFF}'
        | '\u{1DC0}'..='\u{1DFF}'
        | '\u{20D0}'..='\u{20FF}'
        | '\u{FE20}'..='\u{FE2F}')
}

/// The replacement of an apostrophe, or of a letter that has no decomposition.
fn replacement(c: char) -> Option<&'static str> {
    Some(match c {
        'æ' => "ae",
        'Æ' => "AE",
        'œ' => "oe",
        'Œ' => "OE",
        'ß' => "ss",
        'ẞ' => "SS",
        'þ' => "th",
        'Þ' => "TH",
        'ø' | 'ɵ' => "o",
        'Ø' | 'Ɵ' => "O",
        'ł' | 'ƚ' => "l",
        'Ł' | 'Ƚ' => "L",
        'đ' | 'ð' | 'ɖ' => "d",
        'Đ' | 'Ð' | 'Ɖ' => "D",
        'ħ' => "h",
        'Ħ' => "H",
        'ı' | 'ɨ' => "i",
        'Ɨ' => "I",
        'ŧ' => "t",
        'Ŧ' => "T",
        'ŋ' => "n",
        'Ŋ' => "N",
        'ə' => "e",
        'Ə' => "E",
        'ƀ' => "b",
        'Ƀ' => "B",
        'ɓ' => "b",
        'Ɓ' => "B",
        'ɗ' => "d",
        'Ɗ' => "D",
        'ƙ' => "k",
        'Ƙ' => "K",
        'ƴ' => "y",
        'Ƴ' => "Y",
        'ʉ' => "u",
        'Ʉ' => "U",
        'ĸ' => "q",
        'ς' => "σ",
        '‘' | '’' | '‛' | 'ʻ' | 'ʼ' | 'ʹ' => "'",
        _ => return None,
    })
}
