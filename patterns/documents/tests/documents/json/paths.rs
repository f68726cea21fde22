//! Paths: their syntax, and strings that are not paths.

use keyloom_documents::json::{JsonError, JsonPath};
use proptest::prelude::*;
use serde_json::{Value, json};

fn path(text: &str) -> JsonPath {
    text.parse().unwrap()
}

#[test]
fn paths_select_the_values_of_their_definition() {
    let document = json!({
        "a": { "b": [1, { "c": 2 }, [3, 4]], "": 5, "x.y": { "é\"": 6 } },
        "list": [{ "n": [1, 2] }, { "n": [3] }, {}, { "n": 4 }],
        "0": 7,
    });
    for (text, wanted) in [
        ("a.b[0]", json!([1])),
        ("a.b[1].c", json!([2])),
        ("a.b[][1]", json!([4])),
        ("a.b[][]", json!([3, 4])),
        ("a.\"\"", json!([5])),
        (r#"a."x.y"."é\"""#, json!([6])),
        ("list[].n[]", json!([1, 2, 3])),
        ("list[].n", json!([[1, 2], [3], 4])),
        ("list[3].n", json!([4])),
        ("list[9].n", json!([])),
        ("list.n", json!([])),
        ("a[]", json!([])),
        ("0", json!([7])),
    ] {
        let found: Vec<Value> = path(text).values(&document).into_iter().cloned().collect();
        assert_eq!(Value::from(found), wanted, "{text}");
        assert_eq!(path(text).to_string(), text);
    }
    let rows = json!([[1, 2], [3]]);
    assert_eq!(path("[][0]").values(&rows), [&json!(1), &json!(3)]);
}

#[test]
fn an_error_names_the_place_that_is_not_a_path() {
    for (text, place) in [
        ("", 0),
        (".", 0),
        ("a.", 2),
        ("a..b", 2),
        ("a b", 1),
        ("a[", 2),
        ("a[1", 3),
        ("a[x]", 2),
        ("a[-1]", 2),
        ("a[99999999999999999999999]", 2),
        ("a]", 1),
        ("a[]b", 3),
        ("a.\"b", 2),
        ("$.a", 0),
        ("é.ß ", 5),
    ] {
        let error = text.parse::<JsonPath>().unwrap_err();
        let Some(JsonError::BadPath { at, .. }) = error.downcast_ref() else { panic!("{error}") };
        assert_eq!(*at, place, "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_path_or_an_error_inside_it(text in r#"[ab.\[\]0"\\é ]{0,12}"#) {
        match text.parse::<JsonPath>() {
            Ok(parsed) => prop_assert_eq!(path(&parsed.to_string()), parsed),
            Err(error) => {
                let Some(JsonError::BadPath { at, .. }) = error.downcast_ref() else {
                    panic!("{error}")
                };
                prop_assert!(*at <= text.len() && text.is_char_boundary(*at));
            }
        }
    }
}
