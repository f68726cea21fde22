//! Names that an index cannot have.

use syn::ext::IdentExt;
use syn::{Error, Ident, Result};

/// The methods of `Table`, which a method of the generated type would hide.
const OF_TABLE: [&str; 30] = [
    "check_repair",
    "clone",
    "count",
    "delete",
    "delete_many",
    "delete_without_derived",
    "entry_key",
    "expect_declared",
    "expect_writable",
    "find_many",
    "get",
    "get_many",
    "in_parallel",
    "is_owned",
    "keyed_by",
    "migrate",
    "migrate_with",
    "new",
    "page",
    "put",
    "put_many",
    "range",
    "refuse_unless_attached",
    "refusing",
    "replace",
    "replace_many",
    "space",
    "with",
    "with_codec",
    "with_outside",
];

const OF_GENERATED: [&str; 3] = ["declare", "put_record", "table"];

pub(super) fn refuse_reserved(name: &Ident) -> Result<()> {
    let plain = name.unraw();
    let is_of = |names: &[&str]| names.iter().any(|other| plain == other);
    if is_of(&OF_TABLE) {
        let message = format!("`{name}` is a method of `Table`, which it would hide; rename it");
        return Err(Error::new(name.span(), message));
    }
    if is_of(&OF_GENERATED) {
        let message = format!("`{name}` is a name of the generated type itself; choose another");
        return Err(Error::new(name.span(), message));
    }
    Ok(())
}
