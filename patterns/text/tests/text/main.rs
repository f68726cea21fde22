//! Tests of full-text search, one module per subject.
