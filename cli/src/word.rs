//! Words of the language of keys: numbers, constants, identifiers.

use keyloom::key::{BigInt, Element, Versionstamp};
use uuid::Uuid;

/// Decodes pairs of hexadecimal digits.
pub fn bytes_of_hex(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2).map(|pair| {
        let [high, low] = <[u8; 2]>::try_from(pair).ok()?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        u8::try_from(digit(high)? << 4 | digit(low)?).ok()
    });
    pairs.collect()
}

/// Converts the bytes of a word to an element; `None` for a wrong number of bytes.
pub type Make = fn(&[u8]) -> Option<Element>;

/// Elements that are written with a name and hexadecimal digits.
pub const NAMED: [(&str, Make); 3] = [
    ("versionstamp(", |bytes| Some(Versionstamp(bytes.try_into().ok()?).into())),
    ("nan(", |bytes| Some(f64::from_be_bytes(bytes.try_into().ok()?).into())),
    ("nan32(", |bytes| Some(f32::from_be_bytes(bytes.try_into().ok()?).into())),
];

/// The element for a word without quotes.
pub fn of_word(word: &str) -> Result<Element, String> {
    match word {
        "" => return Err("expected an element".into()),
        "null" => return Ok(Element::Null),
        "true" => return Ok(true.into()),
        "false" => return Ok(false.into()),
        _ => {}
    }
    let digits = word.strip_prefix('-').unwrap_or(word);
    if let Some(hex) = digits.strip_prefix("0x") {
        let hex = if hex.len() % 2 == 0 { hex.to_owned() } else { format!("0{hex}") };
        let magnitude = bytes_of_hex(&hex).and_then(|bytes| BigInt::new(word != digits, &bytes));
        return magnitude
            .map(Into::into)
            .ok_or_else(|| format!("{word} is not an integer of a key"));
    }
    if word.len() == 36
        && let Ok(id) = Uuid::try_parse(word)
    {
        return Ok(id.into());
    }
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        let larger = |_| format!("{word} is larger than 128 bits; write it as 0x…");
        return word.parse::<i128>().map(Into::into).map_err(larger);
    }
    if digits.starts_with(|first: char| first.is_ascii_digit()) || digits.starts_with("inf") {
        let of_f32 = word.strip_suffix("f32").and_then(|short| short.parse::<f32>().ok());
        let float = of_f32.map(Element::from).or_else(|| word.parse::<f64>().ok().map(Into::into));
        return float.ok_or_else(|| format!("{word} is neither a number nor a UUID"));
    }
    Err(format!(
        "{word:?} is not an element; write a string in quotes: \"{}\"",
        word.escape_debug()
    ))
}
