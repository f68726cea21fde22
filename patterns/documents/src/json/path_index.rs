//! An index of a collection, and its paths.

use keyloom::value::Json;
use keyloom_kit::RecordKey;
use keyloom_kit::parts::AnyParts;
use keyloom_tables::Index;
use keyloom_tables::schema::Attached;
use serde_json::Value;

use super::definition::Definition;

/// An index of a collection.
pub(super) type DocumentIndex<K> = Attached<Index<K, Value, AnyParts>, Json>;

/// An index by paths.
pub(super) struct PathIndex<K: RecordKey> {
    pub(super) definition: Definition,
    pub(super) index: DocumentIndex<K>,
}
