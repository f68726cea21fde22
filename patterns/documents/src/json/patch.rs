//! Applies JSON patches, with limits on operations and copied bytes.

use json_patch::{Patch, PatchOperation, patch_unsafe};
use keyloom::{List, pack};
use serde_json::Value;

use super::order::JsonKey;
use super::{JsonError, MAX_DEPTH, MAX_PATCH_COPIES, MAX_PATCH_OPERATIONS, is_deeper};

/// Applies a patch to a copy of a document. After an error the copy is partly changed.
pub(super) fn apply(document: &mut Value, patch: &Value, key: &str) -> Result<(), JsonError> {
    let refused = |why: String| JsonError::Patch { key: key.to_owned(), why };
    if patch.as_array().is_some_and(|all| all.len() > MAX_PATCH_OPERATIONS) {
        return Err(too_large(key, "operations", MAX_PATCH_OPERATIONS));
    }
    let Patch(operations) =
        serde_json::from_value(patch.clone()).map_err(|error| refused(error.to_string()))?;
    let mut copies = MAX_PATCH_COPIES;
    for (n, operation) in operations.iter().enumerate() {
        if is_equal_by_value(document, operation) {
            continue;
        }
        if becomes_deeper(document, operation) {
            let what = format!("the document {key}, after the patch,");
            return Err(JsonError::TooDeep { what, limit: MAX_DEPTH });
        }
        if let PatchOperation::Copy(copy) = operation
            && let Some(source) = document.pointer(copy.from.as_str())
        {
            copies = size_within(source, copies)
                .ok_or_else(|| too_large(key, "bytes of copies", MAX_PATCH_COPIES))?;
        }
        // `json_patch::patch` panics during its undo if a move replaced a value. The document is a
        // copy that is dropped after an error, so no undo is needed.
        patch_unsafe(document, std::slice::from_ref(operation)).map_err(|mut error| {
            error.operation = n;
            refused(error.to_string())
        })?;
    }
    Ok(())
}

fn too_large(key: &str, what: &'static str, limit: usize) -> JsonError {
    JsonError::PatchTooLarge { key: key.to_owned(), what, limit }
}

/// Whether the operation is a test that succeeds. Numbers are compared by value, as RFC 6902
/// defines: `1` and `1.0` are equal.
fn is_equal_by_value(document: &Value, operation: &PatchOperation) -> bool {
    let PatchOperation::Test(test) = operation else { return false };
    let packed = |value| pack(&List(vec![JsonKey::Value(value)]));
    // An expected value that is deeper than any document is not packed: packing is recursive.
    let found = document.pointer(test.path.as_str());
    found.is_some_and(|found| {
        !is_deeper(&test.value, MAX_DEPTH) && packed(found) == packed(&test.value)
    })
}

/// Whether the operation makes the document deeper than the limit.
fn becomes_deeper(document: &Value, operation: &PatchOperation) -> bool {
    let (path, value) = match operation {
        PatchOperation::Add(add) => (&add.path, Some(&add.value)),
        PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
        PatchOperation::Move(from) => (&from.path, document.pointer(from.from.as_str())),
        PatchOperation::Copy(from) => (&from.path, document.pointer(from.from.as_str())),
        PatchOperation::Remove(_) | PatchOperation::Test(_) => return false,
    };
    let levels = path.tokens().count();
    let is_too_deep =
        |value| MAX_DEPTH.checked_sub(levels).is_none_or(|limit| is_deeper(value, limit));
    value.is_some_and(is_too_deep)
}

/// Subtracts the size of a value from `left`; `None` if the value is larger. Stops visiting the
/// value at that point.
fn size_within(value: &Value, left: usize) -> Option<usize> {
    let left = left.checked_sub(size_of::<Value>())?;
    match value {
        Value::String(text) => left.checked_sub(text.len()),
        Value::Array(values) => {
            values.iter().try_fold(left, |left, inner| size_within(inner, left))
        }
        Value::Object(fields) => fields.iter().try_fold(left, |left, (name, inner)| {
            size_within(inner, left.checked_sub(name.len())?)
        }),
        _ => Some(left),
    }
}
