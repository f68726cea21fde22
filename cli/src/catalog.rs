//! The tables and derived data that the schemas of a store list.

use keyloom::value::shape::Shape;
use keyloom::{AnyStore, KeyRange, Reader, Store, Subspace};
use keyloom_tables::Schema;
use keyloom_tables::schema::{TableInfo, schema_names};

use crate::failure::{Failure, Result};
use crate::output::note;
use crate::shown;

/// The largest number of names in an error message.
const LISTED: usize = 6;

/// A table, or data derived from one.
#[derive(Debug)]
pub struct Part {
    /// The schema.
    pub schema: String,
    /// The name: `people`, or `people.by_town`.
    pub name: String,
    /// The name of the table: the part itself, or the table from which it is derived.
    pub table: String,
    /// The kind: `table`, `index`, …
    pub kind: String,
    /// The state: `readable`, …
    pub state: String,
    /// The subspace of the entries.
    pub space: Subspace,
    /// The options of derived data, as the schema stores them: the model of a tree. Empty for a
    /// table.
    pub options: String,
    /// The codec of the records. Only a table has one.
    pub codec: Option<String>,
    /// The shape of the records. Only a table has one.
    pub shape: Option<Shape>,
}

impl Part {
    /// Whether the part is an index or a unique index.
    pub fn is_index(&self) -> bool {
        matches!(self.kind.as_str(), "index" | "unique index")
    }

    /// The subspace of the entries that lead to records, for the kinds that are such entries.
    pub fn entries(&self) -> Option<Subspace> {
        match self.kind.as_str() {
            "index"
            | "unique index"
            | "points"
            | "extents"
            | "curve"
            | "points in space and time"
            | "path hierarchy" => Some(self.space.clone()),
            "ranked index" => Some(self.space.child("entries")),
            _ => None,
        }
    }
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
        let (catalog, faults) = Self::with_faults(store);
        for fault in faults {
            note(&format!("a schema is not readable: {fault}"));
        }
        catalog
    }

    /// Reads the schemas for a command that must not write their keys. Fails if a schema cannot be
    /// read, since its keys are then unknown.
    pub fn complete(store: &AnyStore) -> Result<Self> {
        let (catalog, faults) = Self::with_faults(store);
        match faults.first() {
            None => Ok(catalog),
            Some(fault) => Err(Failure::new(format!(
                "a schema is not readable, so the command cannot avoid its keys: {fault}; or repeat the command with --bypass-schema"
            ))),
        }
    }

    /// Reads the schemas. Returns the errors of those that cannot be read, too.
    pub fn with_faults(store: &AnyStore) -> (Self, Vec<keyloom::Error>) {
        let (mut parts, mut faults) = (Vec::new(), Vec::new());
        let names = store.snapshot().and_then(|snapshot| schema_names(&snapshot));
        let names = names.unwrap_or_else(|error| {
            faults.push(error);
            Vec::new()
        });
        for schema in names {
            match Schema::open(store, &schema).and_then(|opened| opened.tables()) {
                Ok(tables) => {
                    parts.extend(tables.into_iter().flat_map(|table| of_table(&schema, table)));
                }
                Err(error) => faults.push(error),
            }
        }
        (Self { parts }, faults)
    }

    /// The part with this name, if no other part has the same name. `name` may begin with the
    /// schema, as in `app/people`.
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

    /// The table of a part. For a table, the table itself.
    pub fn table_of(&self, part: &Part) -> Option<&Part> {
        self.table(&part.schema, &part.table)
    }

    /// Whether the entries of a deferred part may lead to records that are gone: its queue has
    /// changes that are still to be applied.
    pub fn is_behind(&self, reader: &impl Reader, part: &Part) -> keyloom::Result<bool> {
        let name = format!("{} (queue)", part.name);
        let queue = self.parts.iter().find(|one| one.schema == part.schema && one.name == name);
        match queue {
            Some(queue) => Ok(reader.first(queue.space.self_and_children())?.is_some()),
            None => Ok(false),
        }
    }

    /// The table with this name.
    pub fn table(&self, schema: &str, name: &str) -> Option<&Part> {
        let mut tables = self.parts.iter().filter(|part| part.kind == "table");
        tables.find(|part| part.schema == schema && part.name == name)
    }

    /// The part with this name, or why there is none.
    pub fn require(&self, name: &str) -> Result<&Part> {
        self.named(name).ok_or_else(|| {
            self.ambiguity(name).unwrap_or_else(|| {
                let similar = self.similar(name);
                Failure::new(format!("no schema has a table or index {name:?}{similar}"))
            })
        })
    }

    /// The error for a name that several schemas have. `None` if at most one schema has the name.
    pub fn ambiguity(&self, name: &str) -> Option<Failure> {
        let of_schema = |part: &Part| format!("{:?}", format!("{}/{}", part.schema, part.name));
        let all: Vec<_> =
            self.parts.iter().filter(|part| part.name == name).map(of_schema).collect();
        (all.len() > 1).then(|| {
            Failure::new(format!("{name:?} is in several schemas: write {}", all.join(" or ")))
        })
    }

    /// A hint for a key that begins with the name of a table, such as `("orders", 7)`: the key of
    /// the record, such as `(-1, 7)`.
    pub fn hint(&self, key: &[u8]) -> Option<String> {
        self.parts.iter().filter(|part| part.kind == "table").find_map(|part| {
            let rest = key.strip_prefix(Subspace::new(&*part.name).prefix())?;
            let record = shown::key(&[part.space.prefix(), rest].concat());
            Some(format!(
                "the records of the table {:?} begin with {}: did you mean {record}?",
                part.name,
                shown::key(part.space.prefix())
            ))
        })
    }

    /// The parts with these names, in the order of the store. All parts if `names` is empty.
    pub fn named_or_all(&self, names: &[String]) -> Result<Vec<&Part>> {
        let named = names.iter().map(|name| self.require(name)).collect::<Result<Vec<_>>>()?;
        let is_named = |part: &&Part| named.iter().any(|one| std::ptr::eq(*one, *part));
        Ok(self.parts.iter().filter(|part| named.is_empty() || is_named(part)).collect())
    }

    /// At most six names that resemble `name`, or any names if none does, for an error message.
    pub fn similar(&self, name: &str) -> String {
        let name = name.to_lowercase();
        let shares = |part: &&Part| {
            let other = part.name.to_lowercase();
            let begins = name.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
            (!name.is_empty() && other.contains(&name)) || begins >= 3
        };
        let mut names: Vec<_> = self.parts.iter().filter(shares).collect();
        if names.is_empty() {
            names = self.parts.iter().collect();
        }
        let more = if names.len() > LISTED { ", …" } else { "" };
        let mut names: Vec<_> =
            names.into_iter().take(LISTED).map(|part| format!("{:?}", part.name)).collect();
        names.dedup();
        match names.is_empty() {
            true => String::new(),
            false => format!("; the store has {}{more}; `keyloom ls` lists all", names.join(", ")),
        }
    }

    /// The name of a part that overlaps the range, or of the schemas if they overlap it.
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

fn of_table(schema: &str, table: TableInfo) -> Vec<Part> {
    let part = |name, kind: &str, state: String, space| {
        let (schema, table, kind) = (schema.to_owned(), table.name.clone(), kind.to_owned());
        Part {
            schema,
            name,
            table,
            kind,
            state,
            space,
            options: String::new(),
            codec: None,
            shape: None,
        }
    };
    let mut parts = vec![Part {
        codec: Some(table.definition.codec),
        shape: table.definition.shape,
        ..part(table.name.clone(), "table", "readable".into(), table.space.clone())
    }];
    for one in table.derived {
        let name = format!("{}.{}", table.name, one.name);
        let state = one.state.to_string();
        parts.push(Part {
            options: one.definition.options.clone(),
            ..part(name.clone(), &one.definition.kind, state.clone(), one.space)
        });
        if let Some(queue) = one.queue {
            parts.push(part(format!("{name} (queue)"), "queue", state, queue));
        }
    }
    parts
}
