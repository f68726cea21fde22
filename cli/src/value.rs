//! Values in readable form.

use clap::ValueEnum;
#[cfg(feature = "explore")]
use keyloom::key::Element;
use keyloom::value::shape::Shape;
use serde::de::IgnoredAny;

use crate::catalog::Part;
use crate::shown::{cut, hex, json_safe};

/// The characters of a value that are shown without `--full`.
const MOST_SHOWN: usize = 200;

/// How values are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum As {
    /// By the codec of the table; without one as JSON, text or hexadecimal digits
    #[default]
    Auto,
    /// By the shape of the records that the schema has stored
    Postcard,
    /// JSON
    Json,
    /// MessagePack, shown as JSON
    Messagepack,
    /// Hexadecimal digits
    Hex,
    /// Text
    Utf8,
}

/// A value for the output.
#[derive(Debug)]
pub struct Shown {
    /// The text, without control characters.
    pub text: String,
    /// The form that was found: `json`, `utf8`, …
    pub form: &'static str,
    /// Whether the text is cut.
    pub is_cut: bool,
}

/// How a command shows values.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    /// The form that the user selected.
    pub wanted: As,
    /// Whether to show long values in full.
    pub full: bool,
}

impl Format {
    /// Shows a value of `part`.
    pub fn show(self, value: &[u8], part: Option<&Part>) -> Shown {
        self.show_at_most((!self.full).then_some(MOST_SHOWN), value, part)
    }

    /// Shows at most `most` characters of a value of `part`.
    pub fn show_at_most(self, most: Option<usize>, value: &[u8], part: Option<&Part>) -> Shown {
        let (text, form) = self.text(value, part);
        let (text, is_cut) = cut(&text, most, value.len());
        Shown { text, form, is_cut }
    }

    fn text(self, value: &[u8], part: Option<&Part>) -> (String, &'static str) {
        let found = match self.wanted {
            As::Auto => by_codec(value, part).or_else(|| json(value)).or_else(|| text(value)),
            As::Postcard => part.and_then(|part| postcard(value, part)),
            As::Json => json(value),
            As::Messagepack => messagepack(value),
            As::Hex => None,
            As::Utf8 => text(value),
        };
        // A value of another form than the selected one does not end the listing.
        found.unwrap_or_else(|| (format!("0x{}", hex(value)), "hex"))
    }
}

/// Whether [`fault`] detects the records of `part` that do not decode.
pub fn is_checked(part: &Part) -> bool {
    match part.codec.as_deref() {
        Some("Json" | "MessagePack") => true,
        Some("Postcard") => part.shape.is_some(),
        _ => false,
    }
}

/// Why a record of `part` cannot be read, if that can be decided without its program.
pub fn fault(value: &[u8], part: &Part) -> Option<String> {
    let failed =
        |error: &dyn std::fmt::Display| Some(format!("the record does not decode: {error}"));
    match (part.codec.as_deref()?, &part.shape) {
        ("Json", _) => failed(&serde_json::from_slice::<IgnoredAny>(value).err()?),
        ("MessagePack", _) if messagepack(value).is_none() => failed(&"it is not MessagePack"),
        ("Postcard", Some(shape)) => failed(&shape.postcard_to_json(value).err()?),
        _ => None,
    }
}

/// A record of `part` as JSON, if its shape is known.
pub fn record(value: &[u8], part: &Part) -> Option<serde_json::Value> {
    serde_json::from_str(&part.shape.as_ref()?.postcard_to_json(value).ok()?).ok()
}

/// The different scalars in a record, at most 16, as elements of keys. The record must decode to
/// JSON.
#[cfg(feature = "explore")]
pub fn scalars(value: &[u8], part: &Part) -> Vec<Element> {
    let decoded = by_codec(value, Some(part));
    let decoded = decoded.and_then(|(text, _)| serde_json::from_str(&text).ok());
    let mut found = Vec::new();
    if let Some(decoded) = decoded {
        add_scalars(&decoded, &mut found);
    }
    found
}

#[cfg(feature = "explore")]
fn add_scalars(json: &serde_json::Value, found: &mut Vec<Element>) {
    use serde_json::Value;
    let one = match json {
        Value::Null => Element::Null,
        Value::Bool(value) => Element::Bool(*value),
        Value::String(text) => Element::Str(text.clone()),
        Value::Number(number) => match (number.as_i128(), number.as_f64()) {
            (Some(whole), _) => Element::Int(whole),
            (None, float) => Element::F64(float.unwrap_or_default()),
        },
        Value::Array(all) => return all.iter().for_each(|one| add_scalars(one, found)),
        Value::Object(fields) => return fields.values().for_each(|one| add_scalars(one, found)),
    };
    if found.len() < 16 && !found.contains(&one) {
        found.push(one);
    }
}

fn by_codec(value: &[u8], part: Option<&Part>) -> Option<(String, &'static str)> {
    match part?.codec.as_deref()? {
        "Json" => json(value),
        "MessagePack" => messagepack(value),
        // A value with a version after it parses only without the version.
        "Upgrading<Json>" => json(value).or_else(|| json(without_version(value)?.1)),
        "Upgrading<MessagePack>" => {
            messagepack(value).or_else(|| messagepack(without_version(value)?.1))
        }
        // Bytes of Postcard may look like JSON or text by chance.
        codec if codec.contains("Postcard") => {
            postcard(value, part?).or_else(|| Some((format!("0x{}", hex(value)), "hex")))
        }
        _ => None,
    }
}

/// In records with versions, the last byte is the version.
fn postcard(value: &[u8], part: &Part) -> Option<(String, &'static str)> {
    let shape = part.shape.as_ref()?;
    let found = match part.codec.as_deref()? {
        "Postcard" => shape.postcard_to_json(value).ok(),
        "Upgrading<Postcard>" => versioned(value, shape),
        _ => None,
    };
    Some((json_safe(&found?), "postcard"))
}

/// The version of a record, and the bytes before it.
fn without_version(value: &[u8]) -> Option<(u8, &[u8])> {
    let (last, rest) = value.split_last()?;
    // A byte 255 after the version distinguishes the record from a record without a version.
    let (number, rest) = if *last == u8::MAX { rest.split_last()? } else { (last, rest) };
    Some((*number, rest))
}

/// A record that could be one of several versions is not read.
fn versioned(value: &[u8], shape: &Shape) -> Option<String> {
    let read = |number, bytes| shape.version(number)?.postcard_to_json(bytes).ok();
    let plain = read(0, value);
    let (number, rest) = without_version(value)?;
    let later = Some(number).filter(|number| *number > 0).and_then(|number| read(number, rest));
    match (plain, later) {
        (Some(_), Some(_)) => None,
        (plain, later) => plain.or(later),
    }
}

fn json(value: &[u8]) -> Option<(String, &'static str)> {
    serde_json::from_slice::<IgnoredAny>(value).ok()?;
    Some((json_safe(std::str::from_utf8(value).ok()?), "json"))
}

fn messagepack(value: &[u8]) -> Option<(String, &'static str)> {
    let mut input = rmp_serde::Deserializer::new(value);
    let found: serde_json::Value = serde::Deserialize::deserialize(&mut input).ok()?;
    // Bytes after the value mean that it is not MessagePack.
    input.into_inner().is_empty().then(|| (json_safe(&found.to_string()), "messagepack"))
}

fn text(value: &[u8]) -> Option<(String, &'static str)> {
    let text = std::str::from_utf8(value).ok()?;
    Some((format!("{text:?}"), "utf8"))
}
