//! Documents on ordered keys: objects within objects, parents and children, results in groups.
//!
//! These modules implement the relations that a search engine models inside its documents, on a
//! store whose transactions keep all parts of a document consistent. The catalogue's patterns are
//! *nested documents flattening: numbered field names* and *proximity queries*; the other patterns
//! are from the chapter on relations of the guide to Elasticsearch.
//!
//! | module | the question it answers |
//! |---|---|
//! | [`nested`] | which documents have an element that matches on its own? |
//! | [`parent_child`] | which parents have children that match, and which children have such a parent? |
//! | [`relation`] | which records match because of their children, or because of their parent? |
//! | [`numbered_fields`] | how are elements kept apart in one flat document? |
//! | [`proximity`] | how are elements of any number kept apart in one field? |
//! | [`lookup`] | which posts are by the users that another query found? |
//! | [`collapse`] | which groups of records have the best results, and which are the best of each? |
//! | `json` (feature) | how are documents of any shape stored, and found by their contents? |
//! | [`files`] | how are files stored, renamed and searched, if a rename must be atomic? |

pub mod collapse;
mod documents;
mod error;
pub mod files;
#[cfg(feature = "json")]
pub mod json;
pub mod lookup;
mod matches;
pub mod nested;
pub mod numbered_fields;
pub mod parent_child;
pub mod proximity;
pub mod relation;
mod score_mode;

pub use collapse::Collapse;
pub use documents::{Documents, MAX_DEPTH};
pub use error::DocumentError;
pub use files::Files;
#[cfg(feature = "json")]
pub use json::Collection;
pub use lookup::TermsLookup;
pub use matches::Matches;
pub use nested::Nested;
pub use numbered_fields::NumberedFields;
pub use parent_child::Children;
pub use proximity::ProximityField;
pub use relation::{Counts, PARENT, Relation};
pub use score_mode::ScoreMode;
