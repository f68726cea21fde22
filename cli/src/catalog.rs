//! The tables and derived data that the schemas of a store list.

use keyloom::value::shape::Shape;
use keyloom::{AnyStore, KeyRange, Store, Subspace};
use keyloom_tables::Schema;
use keyloom_tables::schema::{TableInfo, schema_names};

use crate::output::note;

/// A table, or data derived from one.
#[derive(Debug)]
pub struct Part {
    /// The schema.
    pub schema: String,
    /// The name: `people`, or `people.by_town`.
    pub name: String,
    /// The kind: `table`, `index`, …
    pub kind: String,
    /// The state: `readable`, …
    pub state: String,
    /// The subspace of the entries.
    pub space: Subspace,
    /// The codec of the records. Only a table has one.
    pub codec: Option<String>,
    /// The shape of the records. Only a table has one.
    pub shape: Option<Shape>,
}

/// The contents of all schemas.
#[derive(Debug, Default)]
pub struct Catalog {
    /// Tables, each before its derived data.
    pub parts: Vec<Part>,
}

impl Catalog {
    /// Reads the schemas. A schema that cannot be read is reported, and its data is shown without
    /// names.
    pub fn read(store: &AnyStore) -> Self {
        let names = store.snapshot().and_then(|snapshot| schema_names(&snapshot));
        let mut parts = Vec::new();
        for schema in names.unwrap_or_else(|error| unreadable(&error)) {
            let tables = Schema::open(store, &schema).and_then(|opened| opened.tables());
            for table in tables.unwrap_or_else(|error| unreadable(&error)) {
                parts.extend(of_table(&schema, table));
            }
        }
        Self { parts }
    }

    /// The part with this name, if no other part has the same name.
    pub fn named(&self, name: &str) -> Option<&Part> {
        let mut found = self
            .parts
            .iter()
            .filter(|part| part.name == name || format!("{}/{}", part.schema, part.name) == name);
        found.next().filter(|_| found.next().is_none())
    }

    /// The part that contains the key.
    pub fn part_of(&self, key: &[u8]) -> Option<&Part> {
        self.parts.iter().find(|part| part.space.contains(key))
    }

    /// The name of a part that overlaps with the range, if any.
    pub fn within(&self, range: &KeyRange<'_>) -> Option<String> {
        let meets = |space: &Subspace| {
            space.self_and_children().intersect(range.clone()).normalized().is_some()
        };
        let found = self.parts.iter().find(|part| meets(&part.space));
        let of_schemas = || meets(&Subspace::new("keyloom")).then(|| "the schemas".to_owned());
        match found {
            Some(part) => Some(format!("{:?} of the schema {:?}", part.name, part.schema)),
            None if self.parts.is_empty() => None,
            None => of_schemas(),
        }
    }
}

fn unreadable<T>(error: &keyloom::Error) -> Vec<T> {
    note(&format!("a schema is not readable: {error}"));
    Vec::new()
}

fn of_table(schema: &str, table: TableInfo) -> Vec<Part> {
    let part = |name, kind: &str, state: String, space| {
        let (schema, kind) = (schema.to_owned(), kind.to_owned());
        Part { schema, name, kind, state, space, codec: None, shape: None }
    };
    let mut parts = vec![Part {
        codec: Some(table.definition.codec),
        shape: table.definition.shape,
        ..part(table.name.clone(), "table", "readable".into(), table.space)
    }];
    for one in table.derived {
        let name = format!("{}.{}", table.name, one.name);
        let state = one.state.to_string();
        parts.push(part(name.clone(), &one.definition.kind, state.clone(), one.space));
        if let Some(queue) = one.queue {
            parts.push(part(format!("{name} (queue)"), "queue", state, queue));
        }
    }
    parts
}
