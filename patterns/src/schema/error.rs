//! What a schema refuses.

use keyloom::Error;

use super::stored::State;

/// What a [`Schema`](super::Schema) refuses. It comes as an [`Error::Other`]; get it back with
/// [`Error::downcast_ref`].
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// The store has something else under the name than the program declares.
    #[error(
        "the schema {schema:?} has under the name {name:?} {stored}, and the program declares {declared}; give what is new a name of its own, or raise its version"
    )]
    Contradiction {
        /// The schema.
        schema: String,
        /// The table, or the table and what is derived from it.
        name: String,
        /// What the store has.
        stored: String,
        /// What the program declares.
        declared: String,
    },
    /// A name is declared twice.
    #[error("the schema {schema:?} declares {name:?} twice; give each its own name")]
    DeclaredTwice {
        /// The schema.
        schema: String,
        /// The name.
        name: String,
    },
    /// The store maintains derived data of the table that the program does not declare, so it could not keep
    /// them in step. Declare them, or disable them.
    #[error(
        "the table {table:?} has {name:?} derived from it, which this program does not declare and so cannot maintain; declare it, or disable it with a program that does"
    )]
    Undeclared {
        /// The table.
        table: String,
        /// What the program does not declare.
        name: String,
    },
    /// The store maintains derived data by another definition than the program declares.
    #[error(
        "{name:?} of the table {table:?} is {stored} in the store, and {declared} in the program; build it, or run the program that declares it so"
    )]
    Changed {
        /// The table.
        table: String,
        /// What was derived otherwise.
        name: String,
        /// The definition in the store.
        stored: String,
        /// The definition of the program.
        declared: String,
    },
    /// The derived data are not whole, so a query could miss something.
    #[error("{name:?} of the table {table:?} is {state}; build it before it is queried")]
    NotReadable {
        /// The table.
        table: String,
        /// What is not readable.
        name: String,
        /// Its state.
        state: State,
    },
    /// The store does not have the table, or what is derived from it: another program has dropped it.
    #[error("the store does not have {name:?} any more; open the schema again")]
    Gone {
        /// The table, or the table and what is derived from it.
        name: String,
    },
    /// Something was given by [`Table::with`](crate::Table::with) to a table of a schema, which would not know
    /// of it.
    #[error(
        "the table {table:?} belongs to a schema; declare what is derived from it with `derive`"
    )]
    GivenToOwned {
        /// The table.
        table: String,
    },
    /// A table is not of this schema: it has an explicit subspace, or belongs to another schema.
    #[error(
        "{name:?} is derived from a table that the schema {schema:?} does not own; declare it with the schema of its table"
    )]
    NotOwned {
        /// The schema.
        schema: String,
        /// What was to be derived.
        name: String,
    },
    /// What is derived would lie elsewhere than in the subspace that it was given.
    #[error(
        "{name:?} lies in {space}, outside of the subspace that its function was given; make it there"
    )]
    Outside {
        /// The table, and what is derived from it.
        name: String,
        /// Where it lies.
        space: String,
    },
    /// The bytes in the store are no entry of a schema.
    #[error("this is no entry of a schema: it is damaged, or other data lie there")]
    Damaged,
}

impl From<SchemaError> for Error {
    fn from(error: SchemaError) -> Self {
        Error::other(error)
    }
}
