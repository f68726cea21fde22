//! Documents on ordered keys: objects within objects, parents and children, results in groups.
//!
//! The relations that a search engine models inside its documents, on a store whose transactions
//! hold all parts of a document together. The patterns of the catalogue are *nested documents
//! flattening: numbered field names* and *proximity queries*; the others are those of the chapter
//! on relations of the guide to Elasticsearch.

pub mod collapse;
pub mod files;
pub mod json;
