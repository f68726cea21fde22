//! Full-text search on ordered keys: an index of words that changes in the same transaction as the
//! document.
