//! Errors of schemas.

use keyloom::Error;
use keyloom::value::shape::Difference;

use super::state::State;

/// An error of a [`Schema`](super::Schema). It is wrapped in an [`Error::Other`]; unwrap it with
/// [`Error::downcast_ref`].
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The definition in the store differs from the program's declaration of the same name.
    #[error(
        "in the schema {schema:?}, {name:?} is {stored} in the store and {declared} in the program; if this program is the older one, run the newer one; otherwise give the declaration another name, or a higher version than the stored one"
    )]
    Contradiction {
        /// The schema.
        schema: String,
        /// The table, or `table.derived`.
        name: String,
        /// The definition in the store.
        stored: String,
        /// The definition of the program.
        declared: String,
    },
    /// The record type of the program differs from the type that the records were written with.
    #[error(
        "in the schema {schema:?}, the records of {table:?} do not have the type of the program: {difference}; {}",
        difference.remedy
    )]
    ChangedRecord {
        /// The schema.
        schema: String,
        /// The table.
        table: String,
        /// The first part that differs.
        difference: Difference,
    },
    /// A table or derived data had this name, and was renamed. An older program would create
    /// another table or other data under the former name.
    #[error(
        "{old:?} has been renamed to {new:?} by a newer program; run that one, or make the name free with `Schema::free_table_name` or `free_derived_name`"
    )]
    Renamed {
        /// The former name of the table, or `table.derived`.
        old: String,
        /// The new name.
        new: String,
    },
    /// A table or derived data cannot be renamed to a name that is in use. Drop the table or data
    /// with that name, or choose another name.
    #[error(
        "in the schema {schema:?}, {old:?} cannot be renamed to {new:?}, which exists; drop that one first, or take another name"
    )]
    Taken {
        /// The schema.
        schema: String,
        /// The table, or `table.derived`.
        old: String,
        /// The name that exists.
        new: String,
    },
    /// Some records were not migrated: their upgrade fails, or they do not decode. These records
    /// are kept unchanged. Replace or delete them, and call `migrate` again.
    #[error(
        "{left} records of {table:?} could not be upgraded and are kept as they are; the first: {source}; replace or delete them, and migrate again"
    )]
    NotUpgraded {
        /// The table.
        table: String,
        /// The number of such records.
        left: u64,
        /// The error of the first such record, with its key.
        source: Error,
    },
    /// The stored derived data does not match an upgraded record: it was derived from the earlier
    /// version of the record. The [`Error::At`] around this error names the record.
    #[error(
        "{name:?} of the table {table:?} does not have what follows from the upgraded record: the upgrade changes what {name:?} is computed from; raise the version of {name:?}, and build it"
    )]
    UpgradeChanges {
        /// The table.
        table: String,
        /// The derived data.
        name: String,
    },
    /// The queue of deferred derived data holds records of earlier versions. Drain the queue, and
    /// migrate again; [`Schema::apply`](super::Schema::apply) does both.
    #[error(
        "the queue of {name:?} of the table {table:?} holds records of earlier versions; drain it, and migrate again"
    )]
    Queued {
        /// The table.
        table: String,
        /// The derived data.
        name: String,
    },
    /// Programs with the declared version could not read what this program writes. A raised version
    /// states that such programs no longer run.
    #[error(
        "in the schema {schema:?}, programs with version {version} of {table:?} could not read what this program writes: {}; raise the version of the table, which excludes them",
        one_way(difference)
    )]
    OneWay {
        /// The schema.
        schema: String,
        /// The table.
        table: String,
        /// The version of the table.
        version: u32,
        /// The first part that such programs could not read: `stored` is the type that this program
        /// writes, `declared` the type that they read.
        difference: Difference,
    },
    /// Programs without the plain type write to the table. They do not check whether the bytes of a
    /// record are also valid bytes of the plain type. So this program could read such a record as
    /// the plain type.
    #[error(
        "in the schema {schema:?}, the records of {table:?} all have versions, and programs write them that no longer know the plain type; put `Nothing` in the place of `Plain`, or remove `from_plain`, or run the newer program"
    )]
    ForgetsPlain {
        /// The schema.
        schema: String,
        /// The table.
        table: String,
    },
    /// The shape of the record type cannot be determined.
    #[error("the shape of the records of {table:?} is not known: {source}")]
    UnknownShape {
        /// The table.
        table: String,
        /// The type, and the reason.
        source: Error,
    },
    /// The store was written before shapes were stored, so the type of the records is not known.
    #[error(
        "in the schema {schema:?}, the store does not hold the shape of the records of {table:?}; declare it with `Schema::adopt_table` and the type that they were written with"
    )]
    NoShape {
        /// The schema.
        schema: String,
        /// The table.
        table: String,
    },
    /// A record does not decode as the program's type. So the version is not raised, or the table
    /// is not adopted.
    #[error("the records of {table:?} are not those of {declared}: {source}")]
    Undecodable {
        /// The table.
        table: String,
        /// The definition of the program.
        declared: String,
        /// The key of the record, and the reason why it does not decode.
        source: Error,
    },
    /// The store has no schema of this name.
    #[error("there is no schema {schema:?}; {}", others(schemas))]
    NoSchema {
        /// The name.
        schema: String,
        /// The schemas of the store.
        schemas: Vec<String>,
    },
    /// A name is declared twice through one [`Schema`](super::Schema).
    #[error(
        "the schema {schema:?} declares {name:?} twice; clone the first handle, or give each its own name"
    )]
    DeclaredTwice {
        /// The schema.
        schema: String,
        /// The name.
        name: String,
    },
    /// The table has derived data that the program does not declare, and so cannot maintain.
    /// Declare the data, or disable it.
    #[error(
        "{name:?} is derived from the table {table:?}, but not declared by this program; declare it, or disable it with a program that does"
    )]
    Undeclared {
        /// The table.
        table: String,
        /// The derived data.
        name: String,
    },
    /// The definition of derived data in the store differs from the program's.
    #[error(
        "{name:?} of the table {table:?} is {stored} in the store, and {declared} in the program; if this program is the newer one, build it; otherwise run the newer one"
    )]
    Changed {
        /// The table.
        table: String,
        /// The derived data.
        name: String,
        /// The definition in the store.
        stored: String,
        /// The definition of the program.
        declared: String,
    },
    /// The derived data is not complete: a query could miss entries.
    #[error(
        "{name:?} of the table {table:?} is {state} and could miss records: build it with `Schema::apply` or `build` of its handle, or wait for the program that builds it"
    )]
    NotReadable {
        /// The table.
        table: String,
        /// The derived data.
        name: String,
        /// Its state.
        state: State,
    },
    /// Another repair of the same data has begun, and replaces this repair.
    #[error("another repair of {name:?} of the table {table:?} has begun; wait for it")]
    RepairTakenOver {
        /// The table.
        table: String,
        /// The derived data.
        name: String,
    },
    /// The table or the derived data no longer exists: another program has dropped it.
    #[error("{name:?} no longer exists; open the schema again")]
    Gone {
        /// The table, or `table.derived`.
        name: String,
    },
    /// [`Table::with`](crate::Table::with) attached derived data to a table of a schema: other
    /// programs would not maintain it.
    #[error("the table {table:?} belongs to a schema; declare its indexes with `Schema::derive`")]
    GivenToOwned {
        /// The table.
        table: String,
    },
    /// The table belongs to another schema, or has an explicit subspace.
    #[error(
        "the table of {name:?} does not belong to the schema {schema:?}; declare {name:?} with the schema of its table"
    )]
    NotOwned {
        /// The schema.
        schema: String,
        /// The derived data.
        name: String,
    },
    /// The pattern is outside of the subspace that was passed to the function that creates it.
    #[error(
        "{name:?} is in {space}, outside of the assigned subspace; create it in the subspace that the function receives"
    )]
    Outside {
        /// `table.derived`.
        name: String,
        /// The subspace of the pattern.
        space: String,
    },
    /// The subspace holds an entry that is not a record of the table to import.
    #[error("{name:?} cannot be imported as {declared}: {source}")]
    NotARecord {
        /// The table.
        name: String,
        /// The definition of the program.
        declared: String,
        /// The key of the entry, and the reason why the entry is not a record.
        source: Error,
    },
    /// The subspace overlaps with data of a schema.
    #[error("the subspace {space} overlaps with {owner} in {owned}, and cannot be {action}")]
    Overlap {
        /// The subspace.
        space: String,
        /// The table and its schema, or `the entries of the schemas`.
        owner: String,
        /// The subspace of the owner.
        owned: String,
        /// `imported` or `cleared`.
        action: &'static str,
    },
    /// The bytes in the store are not an entry of a schema.
    #[error("this is not an entry of a schema: it is damaged, or was written by something else")]
    Damaged,
}

/// Describes a difference between the type that a program writes and the type that others read.
fn one_way(difference: &Difference) -> String {
    let Difference { field, stored, declared, .. } = difference;
    match field.is_empty() {
        true => format!("it writes {stored}, they read {declared}"),
        false => format!("it writes `{field}` as {stored}, they read {declared}"),
    }
}

fn others(schemas: &[String]) -> String {
    let names: Vec<_> = schemas.iter().map(|name| format!("{name:?}")).collect();
    match names.is_empty() {
        true => "the store has none: is it the right one?".into(),
        false => format!("the store has {}", names.join(", ")),
    }
}

impl From<SchemaError> for Error {
    fn from(error: SchemaError) -> Self {
        Error::other(error)
    }
}
