//! Refuses subspaces that overlap with data of a schema.

use keyloom::{Error, Order, Reader, Result, Subspace};

use super::error::SchemaError;
use super::stored::StoredTable;
use crate::table::{definitions, is_of_schemas, overlaps_definitions};

/// Refuses a subspace that overlaps with data of a schema of the store.
pub(super) fn refuse_overlap(
    reader: &impl Reader,
    space: &Subspace,
    action: &'static str,
) -> Result<()> {
    let overlaps =
        |other: &Subspace| space.contains(other.prefix()) || other.contains(space.prefix());
    let refused = |owner: String, owned: &Subspace| {
        let (space, owned) = (space.named(), owned.named());
        Err(SchemaError::Overlap { space, owner, owned, action }.into())
    };
    let entries = definitions();
    if overlaps_definitions(space) {
        return refused("the entries of the schemas".into(), &entries);
    }
    if is_of_schemas(space) {
        return refused("the subspaces that schemas assign".into(), space);
    }
    for kind in ["schema", "dropped"] {
        let tables = entries.child(kind);
        for entry in reader.range(tables.self_and_children(), Order::Ascending)? {
            let (key, value) = entry?;
            let table = StoredTable::decode(&value).map_err(|error| error.at(&key))?;
            if let Some(owned) = table.imported.filter(overlaps) {
                return refused(name_in(&tables, &key)?, &owned);
            }
        }
    }
    Ok(())
}

/// Describes the table of an entry, given the key of the entry. Also describes a table that is
/// being dropped.
fn name_in(tables: &Subspace, entry: &[u8]) -> Result<String> {
    let names = || match tables.unpack::<(String, String)>(entry) {
        Ok(names) => Ok(names),
        Err(_) => {
            let (schema, table, _) = tables.unpack::<(String, String, u64)>(entry)?;
            Ok((schema, table))
        }
    };
    let (schema, table) = names().map_err(|error: Error| error.at(entry))?;
    Ok(format!("the table {table:?} of the schema {schema:?}"))
}
