//! Merges the variants of an enum key that different programs declare.

use std::collections::BTreeMap;

/// The name of each variant and the shapes of its fields, by the number of the variant.
type Variants = BTreeMap<u32, (String, String)>;

/// Merges two [shapes](super::KeyShape): the result has the variants of both. `None` if one program
/// could read a key of the other as another value. This is the case if a number belongs to
/// different variants, if a variant has different numbers, or if anything else differs.
///
/// A renamed variant is refused too, because it looks the same as two exchanged variants.
pub fn join(stored: &str, declared: &str) -> Option<String> {
    let (Some((head, stored)), Some((other_head, declared))) =
        (stored.split_once('{'), declared.split_once('{'))
    else {
        return (stored == declared).then(|| stored.to_owned());
    };
    if head != other_head {
        return None;
    }
    let ((stored, behind), (declared, behind_declared)) = (closed(stored)?, closed(declared)?);
    let variants = write(join_variants(variants(stored)?, variants(declared)?)?);
    Some(format!("{head}{{{variants}}}{}", join(behind, behind_declared)?))
}

fn join_variants(mut joined: Variants, declared: Variants) -> Option<Variants> {
    for (number, (name, declared)) in declared {
        let fields = match joined.get(&number) {
            Some((stored_name, stored)) if *stored_name == name => join(stored, &declared)?,
            Some(_) => return None,
            None if joined.values().any(|(other, _)| *other == name) => return None,
            None => declared,
        };
        joined.insert(number, (name, fields));
    }
    Some(joined)
}

/// Splits `text`, which follows an opening brace, at the brace that closes it. Returns the text
/// before and after the closing brace.
fn closed(text: &str) -> Option<(&str, &str)> {
    let (at, _) = text
        .match_indices(['{', '}'])
        .scan(1, |depth: &mut u32, (at, brace)| {
            *depth = if brace == "{" { *depth + 1 } else { *depth - 1 };
            Some((at, *depth))
        })
        .find(|(_, depth)| *depth == 0)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// The variants between two braces: `0 Open | 1 Closed(integer)`.
fn variants(mut text: &str) -> Option<Variants> {
    let mut variants = Variants::new();
    while !text.is_empty() {
        let (one, rest) = first_variant(text);
        let (number, variant) = one.split_once(' ')?;
        let name = variant.split_once('(').map_or(variant, |(name, _)| name);
        let fields = variant.get(name.len()..)?;
        variants.insert(number.parse().ok()?, (name.to_owned(), fields.to_owned()));
        text = rest;
    }
    Some(variants)
}

/// The text before the first separator outside of braces, and the text after it.
fn first_variant(text: &str) -> (&str, &str) {
    let mut depth = 0_u32;
    for (at, mark) in text.match_indices(['{', '}', '|']) {
        match mark {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            _ if depth == 0 => {
                let (one, rest) = text.split_at(at);
                return (one.trim_end(), rest.trim_start_matches(['|', ' ']));
            }
            _ => {}
        }
    }
    (text, "")
}

fn write(variants: Variants) -> String {
    let each =
        variants.into_iter().map(|(number, (name, fields))| format!("{number} {name}{fields}"));
    each.collect::<Vec<_>>().join(" | ")
}

/// The shape of an enum: the name of the type, and each variant with its number and its fields.
///
/// If any variant has fields, the variants are in parentheses, because then every variant is packed
/// as a tuple, even one without fields. So after an enum gets its first variant with fields, its
/// shape cannot be merged with the old shape.
pub fn shape_of_enum<T>(variants: &[(u32, &str, &[String])]) -> String {
    let name = keyloom::value::shape::type_name::<T>();
    let of = |(number, name, fields): &(u32, &str, &[String])| {
        let fields = match fields {
            [] => String::new(),
            fields => format!("({})", fields.join(", ")),
        };
        (*number, ((*name).to_owned(), fields))
    };
    let has_fields = variants.iter().any(|(.., fields)| !fields.is_empty());
    match (has_fields, write(variants.iter().map(of).collect())) {
        (true, variants) => format!("{name}({{{variants}}})"),
        (false, variants) => format!("{name}{{{variants}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_variants_join_and_others_are_refused() {
        let joined = [
            ("(string, integer)", "(string, integer)", "(string, integer)"),
            ("S{0 A | 2 C}", "S{0 A | 1 B}", "S{0 A | 1 B | 2 C}"),
            ("S{0 A | 1 B}", "S{1 B}", "S{0 A | 1 B}"),
            ("(S{0 A}, Desc<S{0 A}>)", "(S{1 B}, Desc<S{0 A}>)", "(S{0 A | 1 B}, Desc<S{0 A}>)"),
            (
                "E{0 A(S{0 A | 1 B}, integer) | 10 B}",
                "E{0 A(S{2 C}, integer) | 9 C(S{0 A})}",
                "E{0 A(S{0 A | 1 B | 2 C}, integer) | 9 C(S{0 A}) | 10 B}",
            ),
        ];
        for (stored, declared, both) in joined {
            assert_eq!(join(stored, declared).as_deref(), Some(both));
            assert_eq!(join(declared, stored).as_deref(), Some(both));
        }
        let refused = [
            ("integer", "string"),
            ("S{0 A | 1 B}", "S{0 B | 1 A}"),
            ("S{0 A}", "S{1 A}"),
            ("S{0 A}", "S{0 B}"),
            ("S{0 A}", "S{0 A(integer)}"),
            ("S{0 A}", "T{0 A}"),
            ("S{0 A}", "S(integer)"),
            ("S{0 A}", "integer"),
            ("(S{0 A}, integer)", "(S{0 A}, string)"),
            ("E{0 A(S{0 A | 1 B})}", "E{0 A(S{0 B | 1 A})}"),
            ("E{0 A(integer, S{0 A})}", "E{0 A(S{0 A}, integer)}"),
            ("E{0 A | 1 B}", "E({0 A | 1 B | 2 C(integer)})"),
        ];
        for (stored, declared) in refused {
            assert_eq!(join(stored, declared), None, "{stored} and {declared}");
            assert_eq!(join(declared, stored), None, "{stored} and {declared}");
        }
    }

    #[test]
    fn text_that_is_no_shape_is_equal_or_refused() {
        for text in ["S{", "S{0}", "S{x A}", "S{0 A", "S}0 A{", "S{0 A}}{"] {
            assert!(join(text, text).is_none_or(|joined| joined == text), "{text}");
            assert_eq!(join(text, "S{0 A}").filter(|joined| joined == text), None);
        }
    }
}
