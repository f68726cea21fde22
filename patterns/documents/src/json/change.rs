//! Changes of documents.

use keyloom::key::display;
use keyloom::{Result, Writer, pack};
use keyloom_kit::RecordKey;
use serde_json::Value;

use super::collection::Collection;
use super::{JsonError, MAX_DEPTH, is_deeper, patch};

impl<K: RecordKey> Collection<K> {
    /// Writes a new document.
    ///
    /// # Errors
    /// [`JsonError::Exists`]; the errors of [`put`](Collection::put).
    pub fn insert(&self, txn: &mut impl Writer, key: &K, document: &Value) -> Result<()> {
        txn.guarded(|txn| match self.get(txn, key)? {
            Some(_) => Err(JsonError::Exists { key: shown(key) }.into()),
            None => self.change(txn, key, None, document),
        })
    }

    /// Replaces an existing document, and returns the old one.
    ///
    /// # Errors
    /// [`JsonError::NoDocument`]; the errors of [`put`](Collection::put).
    pub fn replace(&self, txn: &mut impl Writer, key: &K, document: &Value) -> Result<Value> {
        txn.guarded(|txn| {
            let old = self.required(txn, key)?;
            self.change(txn, key, Some(&old), document)?;
            Ok(old)
        })
    }

    /// Inserts or replaces a document.
    ///
    /// # Errors
    /// [`JsonError::TooDeep`]; from the indexes,
    /// [`IndexError::NotUnique`](keyloom_tables::IndexError::NotUnique),
    /// [`EntryTooLong`](keyloom_tables::IndexError::EntryTooLong), and
    /// [`Refused`](keyloom_tables::IndexError::Refused) with [`JsonError::TooManyEntries`]; any
    /// error of the store.
    pub fn put(&self, txn: &mut impl Writer, key: &K, document: &Value) -> Result<()> {
        refuse_deep(key, document)?;
        self.table.put(txn, key, document)
    }

    /// Writes many documents in fewer round trips than one [`put`](Collection::put) each.
    ///
    /// # Errors
    /// The errors of [`put`](Collection::put).
    pub fn put_many(
        &self,
        txn: &mut impl Writer,
        documents: impl IntoIterator<Item = (K, Value)>,
    ) -> Result<()> {
        let documents: Vec<(K, Value)> = documents.into_iter().collect();
        documents.iter().try_for_each(|(key, document)| refuse_deep(key, document))?;
        self.table.put_many(txn, documents)
    }

    /// Removes a document; returns whether the document existed.
    ///
    /// # Errors
    /// Any error of the store.
    pub fn delete(&self, txn: &mut impl Writer, key: &K) -> Result<bool> {
        self.table.delete(txn, key)
    }

    /// Changes a document by a merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)):
    /// fields of the patch replace those of the document, and a null removes a field. Returns the
    /// new document.
    ///
    /// # Errors
    /// [`JsonError::NoDocument`]; the errors of [`put`](Collection::put).
    pub fn merge(&self, txn: &mut impl Writer, key: &K, patch: &Value) -> Result<Value> {
        txn.guarded(|txn| {
            refuse_deep_patch(key, patch)?;
            let old = self.required(txn, key)?;
            let mut document = old.clone();
            json_patch::merge(&mut document, patch);
            self.change(txn, key, Some(&old), &document)?;
            Ok(document)
        })
    }

    /// Changes a document by a JSON patch ([RFC 6902](https://www.rfc-editor.org/rfc/rfc6902)): an
    /// array of operations. Either all operations apply or none does. Returns the new document. A
    /// `test` compares numbers by value: `1` and `1.0` are equal.
    ///
    /// A patch has at most [`MAX_PATCH_OPERATIONS`](super::MAX_PATCH_OPERATIONS) operations, and
    /// all its `copy` operations together copy at most
    /// [`MAX_PATCH_COPIES`](super::MAX_PATCH_COPIES) bytes.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_documents::json::Collection;
    /// use keyloom_tables::Schema;
    /// use serde_json::json;
    /// let store = Memory::new();
    /// let posts = Collection::<u32>::open(&Schema::open(&store, "blog")?, "posts")?;
    /// store.transact(|txn| posts.insert(txn, &1, &json!({ "tags": ["a"], "likes": 1 })))?;
    /// let patch = json!([
    ///     { "op": "test", "path": "/likes", "value": 1 },
    ///     { "op": "add", "path": "/tags/-", "value": "b" },
    /// ]);
    /// let new = store.transact(|txn| posts.patch(txn, &1, &patch))?;
    /// assert_eq!(new, json!({ "tags": ["a", "b"], "likes": 1 }));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`JsonError::Patch`] if `patch` is not a JSON patch, a test fails or a path does not exist;
    /// [`JsonError::PatchTooLarge`]; [`JsonError::NoDocument`]; the errors of
    /// [`put`](Collection::put).
    pub fn patch(&self, txn: &mut impl Writer, key: &K, patch: &Value) -> Result<Value> {
        txn.guarded(|txn| {
            refuse_deep_patch(key, patch)?;
            let old = self.required(txn, key)?;
            let mut document = old.clone();
            patch::apply(&mut document, patch, &shown(key))?;
            self.change(txn, key, Some(&old), &document)?;
            Ok(document)
        })
    }

    /// Writes a document whose old form has been read in this transaction.
    fn change(
        &self,
        txn: &mut impl Writer,
        key: &K,
        old: Option<&Value>,
        new: &Value,
    ) -> Result<()> {
        refuse_deep(key, new)?;
        self.table.replace(txn, key, old, Some(new))
    }

    fn required(&self, txn: &mut impl Writer, key: &K) -> Result<Value> {
        let document = self.get(txn, key)?;
        document.ok_or_else(|| JsonError::NoDocument { key: shown(key) }.into())
    }
}

fn shown(key: &impl RecordKey) -> String {
    display(&pack(key)).to_string()
}

pub(super) fn refuse_deep(key: &impl RecordKey, document: &Value) -> Result<()> {
    match is_deeper(document, MAX_DEPTH) {
        true => Err(too_deep(format!("the document {}", shown(key)))),
        false => Ok(()),
    }
}

fn refuse_deep_patch(key: &impl RecordKey, patch: &Value) -> Result<()> {
    match is_deeper(patch, MAX_DEPTH) {
        true => Err(too_deep(format!("the patch of the document {}", shown(key)))),
        false => Ok(()),
    }
}

#[cold]
fn too_deep(what: String) -> keyloom::Error {
    JsonError::TooDeep { what, limit: MAX_DEPTH }.into()
}
