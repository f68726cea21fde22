//! The plan of the changes that a program makes to a store.

use std::fmt;

use keyloom::value::shape::Shape;

#[cfg(doc)]
use super::Schema;
#[cfg(doc)]
use super::attached::Attached;
use super::batches::BATCH;
use super::state::State;
use super::stored::{Definition, TableDefinition};
#[cfg(doc)]
use crate::table::Table;

/// The changes that a program makes to a store; see [`Schema::plan`]. `Display` writes one line for
/// each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Plan {
    /// The steps, in the order in which they are done.
    pub steps: Vec<Step>,
}

impl Plan {
    /// Whether [`Schema::apply`] has nothing to do. The plan may still list data that the program
    /// does not declare, since `apply` keeps such data.
    pub fn is_done(&self) -> bool {
        self.steps.iter().all(|step| {
            matches!(step, Step::UndeclaredTable { .. } | Step::UndeclaredDerived { .. })
        })
    }

    /// Whether the program can write to all of its tables once [`Schema::apply`] has run. For this,
    /// it must declare all derived data of these tables that is in the store and not disabled;
    /// [`Schema::drop_undeclared`] drops the undeclared data. Before `apply`, the program cannot
    /// write to a table if the store has another version of its derived data, until the build of
    /// that data begins.
    pub fn can_write(&self) -> bool {
        let is_disabled = |state: &State| *state == State::Disabled;
        self.steps.iter().all(|step| match step {
            Step::UndeclaredDerived { state, .. } => is_disabled(state),
            _ => true,
        })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("nothing to change");
        }
        self.steps.iter().enumerate().try_for_each(|(n, step)| {
            let end = if n == 0 { "" } else { "\n" };
            write!(f, "{end}{step}")
        })
    }
}

/// A step of a [`Plan`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The declaration renames a table.
    RenameTable {
        /// The name in the store.
        old: String,
        /// The name of the program.
        table: String,
    },
    /// The declaration adds a table.
    AddTable {
        /// The table.
        table: String,
        /// Its definition.
        definition: TableDefinition,
    },
    /// The declaration changes the definition of a table: its version, or the types of its keys or
    /// records.
    ChangeTable {
        /// The table.
        table: String,
        /// The definition in the store.
        stored: TableDefinition,
        /// The definition afterwards.
        declared: TableDefinition,
    },
    /// The declaration renames derived data.
    RenameDerived {
        /// The table.
        table: String,
        /// The name in the store.
        old: String,
        /// The name of the program.
        name: String,
    },
    /// The declaration adds derived data.
    AddDerived {
        /// The table.
        table: String,
        /// The derived data.
        name: String,
        /// Its definition.
        definition: Definition,
    },
    /// [`Attached::build`]: derived data is built from the records.
    Build {
        /// The table.
        table: String,
        /// The derived data.
        name: String,
        /// The definition of the program.
        definition: Definition,
        /// The definition of the stored data that is cleared first, if it differs.
        replaces: Option<Definition>,
        /// The number of records of the table.
        records: u64,
    },
    /// [`Table::migrate`]: records of earlier versions are rewritten.
    Migrate {
        /// The table.
        table: String,
        /// The earlier versions that the store may hold; 0 is the type from before there were
        /// versions.
        earlier: Vec<u8>,
        /// The newest version.
        version: u8,
        /// The number of records of the table, all of which are visited.
        records: u64,
    },
    /// The store has derived data that this program does not declare. The program cannot write to
    /// the table until it declares the data, or the data is [disabled](Schema::disable) or
    /// [dropped](Schema::drop_undeclared). A plan leaves the data as it is.
    UndeclaredDerived {
        /// The table.
        table: String,
        /// The derived data.
        name: String,
        /// Its definition.
        definition: Definition,
        /// Its state.
        state: State,
    },
    /// The store has a table that this program does not declare. A plan leaves the table as it is;
    /// see [`Schema::drop_table`].
    UndeclaredTable {
        /// The table.
        table: String,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let visits = |f: &mut fmt::Formatter<'_>, records: u64| {
            let (batches, s) = (batches(records), if batches(records) == 1 { "" } else { "s" });
            write!(f, "; visits {records} records in {batches} transaction{s}")
        };
        match self {
            Self::RenameTable { old, table } => write!(f, "rename the table {old:?} to {table:?}"),
            Self::AddTable { table, definition } => write!(f, "add {table:?}: {definition}"),
            Self::ChangeTable { table, stored, declared } => {
                write!(f, "change {table:?}: ")?;
                let [from, to] = [stored, declared].map(ToString::to_string);
                if from != to {
                    return write!(f, "from {from} to {to}");
                }
                let shape = |one: &TableDefinition| {
                    one.shape.as_ref().map_or("unknown".into(), Shape::to_string)
                };
                write!(f, "records from {} to {}", shape(stored), shape(declared))
            }
            Self::RenameDerived { table, old, name } => {
                write!(f, "rename {old:?} of {table:?} to {name:?}")
            }
            Self::AddDerived { table, name, definition } => {
                write!(f, "add {name:?} of {table:?}: {definition}")
            }
            Self::Build { table, name, definition, replaces, records } => {
                write!(f, "build {name:?} of {table:?}: {definition}")?;
                if let Some(old) = replaces {
                    write!(f, ", in place of {old}")?;
                }
                visits(f, *records)
            }
            Self::Migrate { table, earlier, version, records } => {
                let name = |version: &u8| match version {
                    0 => "records without a version".to_owned(),
                    version => format!("version {version}"),
                };
                let earlier = earlier.iter().map(name).collect::<Vec<_>>().join(" and ");
                write!(f, "migrate {table:?} to version {version} from {earlier}")?;
                visits(f, *records)
            }
            Self::UndeclaredDerived { table, name, state: State::Disabled, .. } => write!(
                f,
                "left: {name:?} of {table:?} is not declared by this program, and is disabled"
            ),
            Self::UndeclaredDerived { table, name, .. } => write!(
                f,
                "left: {name:?} of {table:?} is not declared by this program, which cannot write to the table before it is disabled or dropped"
            ),
            Self::UndeclaredTable { table } => {
                write!(f, "left: the table {table:?} is not declared by this program")
            }
        }
    }
}

/// The number of transactions of a build or a migration.
fn batches(records: u64) -> u64 {
    records.div_ceil(BATCH as u64).max(1)
}
