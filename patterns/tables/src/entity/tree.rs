//! An entity as a tree, the intermediate form between the serde value and the stored keys.

use std::collections::BTreeMap;
use std::ops::Deref;

use ciborium::Value;
use keyloom::{Entry, Error, KeyBuf, Result, SharedError, Subspace};
use keyloom_kit::derived::DerivedEntry;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::path::{Step, steps};
use super::position::ListPosition;

/// A part of an entity. A divided list or map has an empty list or map as its value, and its parts
/// as children.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) children: BTreeMap<Step, Node>,
}

/// The kind of a divided part: list or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    List,
    Map,
}

impl Kind {
    /// The kind of a stored value, or `None` for a value without parts: a scalar, or an undivided
    /// list or map.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Array(items) if items.is_empty() => Some(Self::List),
            Value::Map(entries) if entries.is_empty() => Some(Self::Map),
            _ => None,
        }
    }

    /// The kind that a part must have to contain `step`.
    pub(super) fn before(step: &Step) -> Self {
        if matches!(step, Step::Item(_)) { Self::List } else { Self::Map }
    }

    /// The stored value that marks a divided list or map.
    pub(super) fn marker(self) -> Value {
        match self {
            Self::List => Value::Array(Vec::new()),
            Self::Map => Value::Map(Vec::new()),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Map => "map",
        }
    }
}

impl Node {
    /// A value that is not divided.
    pub(super) fn leaf(value: Value) -> Self {
        Self { value, children: BTreeMap::new() }
    }

    /// Divides a value into its parts.
    pub(super) fn divide(value: Value) -> Result<Self> {
        let children = match value {
            Value::Array(items) => {
                let items = (1..).map(|n| Ok(Step::Item(ListPosition::nth(n)))).zip(items);
                return Self::of(Kind::List, items);
            }
            Value::Map(entries) => entries.into_iter().map(|(key, value)| (step_of(&key), value)),
            scalar => return Ok(Self::leaf(scalar)),
        };
        Self::of(Kind::Map, children)
    }

    fn of(kind: Kind, parts: impl Iterator<Item = (Result<Step>, Value)>) -> Result<Self> {
        let divide = |(step, value): (Result<Step>, _)| Ok((step?, Self::divide(value)?));
        Ok(Self { value: kind.marker(), children: parts.map(divide).collect::<Result<_>>()? })
    }

    /// Joins the parts into one value.
    pub(super) fn join(self) -> Value {
        match Kind::of(&self.value) {
            None => self.value,
            Some(Kind::List) => Value::Array(self.children.into_values().map(Self::join).collect()),
            Some(Kind::Map) => {
                let entry = |(step, child): (Step, Self)| Some((key_of(step)?, child.join()));
                Value::Map(self.children.into_iter().filter_map(entry).collect())
            }
        }
    }

    /// The entries of the part at `key`, in key order.
    pub(super) fn entries(&self, key: &Subspace) -> Result<Vec<DerivedEntry>> {
        let mut entries = Vec::new();
        self.add_entries(key, &mut entries)?;
        Ok(entries)
    }

    fn add_entries(&self, key: &Subspace, entries: &mut Vec<DerivedEntry>) -> Result<()> {
        entries.push((KeyBuf::from_slice(key.prefix()), encode(&self.value)?.into()));
        let mut children = self.children.iter();
        children.try_for_each(|(step, child)| child.add_entries(&key.child(step), entries))
    }

    /// Builds the part at `key` from the entries of its range, in ascending order; `None` if there
    /// are no entries.
    pub(super) fn collect<B: Deref<Target = [u8]>>(
        key: &Subspace,
        entries: impl Iterator<Item = Result<Entry<B>>>,
    ) -> Result<Option<Self>> {
        let mut root: Option<Self> = None;
        for entry in entries {
            let (entry_key, bytes) = entry?;
            let node = Self::leaf(decode(&bytes).map_err(|error| error.at(&entry_key))?);
            let path = entry_key.get(key.prefix().len()..).and_then(steps);
            let placed = path.and_then(|path| place(&mut root, path, node));
            placed.ok_or_else(|| Error::other(Orphan).at(&entry_key))?;
        }
        Ok(root)
    }
}

/// Inserts a part at its path; `None` if a part along the path is missing or of the wrong kind.
fn place(root: &mut Option<Node>, mut path: Vec<Step>, node: Node) -> Option<()> {
    let Some(last) = path.pop() else {
        *root = Some(node);
        return Some(());
    };
    let mut parent = root.as_mut()?;
    for step in &path {
        parent = parent.children.get_mut(step)?;
    }
    (Kind::of(&parent.value)? == Kind::before(&last)).then_some(())?;
    parent.children.insert(last, node);
    Some(())
}

/// The error for an entry whose parent does not exist; `check` also reports such entries.
#[derive(Debug, thiserror::Error)]
#[error("its list or map does not exist; `check` the aggregates")]
struct Orphan;

/// The step to a key of a map.
pub(super) fn step_of(key: &Value) -> Result<Step> {
    match key {
        Value::Text(name) => Ok(Step::Name(name.clone())),
        Value::Integer(number) => Ok(Step::Number((*number).into())),
        other => Err(Error::InvalidArgument {
            what: "the key of a map",
            value: format!("{other:?}"),
            why: "in an aggregate a map has keys of text or integers; else store it undivided",
        }),
    }
}

fn key_of(step: Step) -> Option<Value> {
    match step {
        Step::Name(name) => Some(Value::Text(name)),
        Step::Number(number) => Some(Value::Integer(number.try_into().ok()?)),
        Step::Item(_) => None,
    }
}

fn failed<E: Into<keyloom::BoxedError>>(action: &'static str) -> impl Fn(E) -> Error {
    move |error| Error::Value { codec: "CBOR", action, source: SharedError::from(error) }
}

/// Converts a serializable value to a CBOR value.
pub(super) fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value> {
    Value::serialized(value).map_err(failed("encode"))
}

/// Converts a CBOR value to a program's type.
pub(super) fn from_value<T: DeserializeOwned>(value: &Value) -> Result<T> {
    value.deserialized().map_err(failed("decode"))
}

/// The CBOR bytes of a value.
pub(super) fn encode(value: &Value) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).map_err(failed("encode"))?;
    Ok(bytes)
}

/// Decodes `bytes`, which must hold exactly one value.
pub(super) fn decode(mut bytes: &[u8]) -> Result<Value> {
    let value = ciborium::from_reader(&mut bytes).map_err(failed("decode"))?;
    if bytes.is_empty() { Ok(value) } else { Err(failed("decode")("bytes are left")) }
}
