//! Former names of tables and derived data.

use keyloom::{KeyBuf, Result, Subspace, Writer, pack};

use super::error::SchemaError;
use super::stored::Id;

/// The key of a former name of a table. The value is the new name.
pub(super) fn former_table(schema: &str, name: &str) -> KeyBuf {
    pack(&("keyloom", "former", schema, name))
}

/// The key of a former name of data derived from the table with this id.
pub(super) fn former_derived(table: Id, name: &str) -> KeyBuf {
    pack(&("keyloom", "former of", table, name))
}

/// Removes the former names of the data derived from a dropped table.
pub(super) fn forget_former(txn: &mut impl Writer, table: Id) -> Result<()> {
    let names = Subspace::new(&("keyloom", "former of", table));
    let has_some = txn.first(names.self_and_children())?.is_some();
    if has_some { txn.delete_range(names.self_and_children()) } else { Ok(()) }
}

pub(super) fn leave_name(txn: &mut impl Writer, former: &[u8], new: &str) -> Result<()> {
    txn.put(former, new.as_bytes())
}

pub(super) fn take_name(txn: &mut impl Writer, former: &[u8]) -> Result<bool> {
    let is_former = txn.get(former)?.is_some();
    if is_former {
        txn.delete(former)?;
    }
    Ok(is_former)
}

/// # Errors
/// [`SchemaError::Renamed`] for a former name.
pub(super) fn refuse_former(renamed: Option<&[u8]>, old: &str) -> Result<()> {
    let Some(new) = renamed else { return Ok(()) };
    let (old, new) = (old.into(), String::from_utf8_lossy(new).into_owned());
    Err(SchemaError::Renamed { old, new }.into())
}

pub(super) fn gone(name: &str) -> keyloom::Error {
    SchemaError::Gone { name: name.into() }.into()
}
