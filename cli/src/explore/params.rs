//! The parameters of the views.

use serde::Deserialize;

use crate::catalog::Part;
use crate::failure::{Failure, Result};
use crate::word::bytes_of_hex;

/// The parameters of all views.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// A key, in hexadecimal digits.
    pub key: String,
    /// The bytes with which keys begin, in hexadecimal digits.
    pub prefix: String,
    /// Keys as the command line writes them: a tuple, or the name of a table.
    pub select: String,
    /// The name of a table, an index, a queue or a set of locks.
    pub name: String,
    /// The last key of the previous page, in hexadecimal digits.
    pub after: String,
    /// The packed leading parts of the entries of a grouped index, in hexadecimal digits.
    pub group: String,
    /// A box on the map: south, west, north, east, in degrees, separated by commas.
    #[serde(rename = "box")]
    pub area: String,
    /// The id of a vertex, as the command line writes an element.
    pub vertex: String,
    /// The id of a node of a tree.
    pub node: String,
    /// The id of the last child of the previous page, or the key of the last container in
    /// hexadecimal digits.
    pub last: String,
    /// A field of an inverted index.
    pub field: String,
    /// The packed parts of a value of the field, in hexadecimal digits.
    pub value: String,
    /// The beginning of terms.
    pub term: String,
    /// The first parts of the entries of an index, as the command line writes them.
    pub parts: String,
    /// `yes` for the keys before `after`, in descending order.
    pub reverse: String,
}

impl Params {
    /// The key.
    pub fn key(&self) -> Result<Vec<u8>> {
        hex("key", &self.key)
    }

    /// The last key of the previous page, if there is one.
    pub fn after(&self) -> Result<Option<Vec<u8>>> {
        (!self.after.is_empty()).then(|| hex("after", &self.after)).transpose()
    }
}

/// The bytes of a parameter.
pub fn hex(name: &str, text: &str) -> Result<Vec<u8>> {
    let bytes = bytes_of_hex(text).filter(|bytes| !bytes.is_empty());
    bytes.ok_or_else(|| Failure::new(format!("{name} holds pairs of hexadecimal digits")))
}

/// The name of a part in parameters. It is unique even if several schemas have such a table.
pub fn id(part: &Part) -> String {
    format!("{}/{}", part.schema, part.name)
}
