//! Documents on ordered keys: objects within objects, parents and children, results in groups.
//!
//! The relations that a search engine models inside its documents, on a store whose transactions
//! hold all parts of a document together. The patterns of the catalogue are *nested documents
//! flattening: numbered field names* and *proximity queries*; the others are those of the chapter
//! on relations of the guide to Elasticsearch.
//!
//! | module | the question it answers |
//! |---|---|
//! | [`collapse`] | which groups of records have the best results, and which are the best of each? |
//! | [`json`] | how are documents of any shape stored, and found by what is in them? |
//! | [`files`] | how are files stored, renamed and searched, if a rename must not be seen half done? |

pub mod collapse;
pub mod files;
pub mod json;

pub use collapse::Collapse;
pub use files::Files;
pub use json::Collection;
