//! Paths of labels: keys that are paths in a hierarchy, and patterns that select them.
//!
//! The path of a node, `Top.Science.Astronomy`, is its key. So the key contains all ancestors of
//! the node, and the descendants of the node are one range. A *pattern* selects paths; a scan skips
//! keys that cannot match. The pattern language is the complete language of PostgreSQL's module
//! `ltree`, with the semantics of version 15 and later. In addition, this module supports regular
//! expressions over whole paths.
//!
//! | in PostgreSQL | here |
//! |---|---|
//! | `ltree` | [`LabelPath`] |
//! | `lquery`, `path ~ lquery` | [`Lquery`], [`matches`](Lquery::matches) |
//! | `path ? lquery[]` | [`PathPattern::any_of`] |
//! | `ltxtquery`, `path @ ltxtquery` | [`Ltxtquery`], [`matches`](Ltxtquery::matches) |
//! | `a @> b`, `a <@ b` | [`is_ancestor_of`](LabelPath::is_ancestor_of), [`is_descendant_of`](LabelPath::is_descendant_of); for stored paths [`ancestors_of`](PathPattern::ancestors_of), [`descendants_of`](PathPattern::descendants_of) |
//! | `a < b`, `a = b` and so on | the operators of Rust |
//! | `a \|\| b` | [`concat`](LabelPath::concat) |
//! | `subltree`, `subpath`, `index`, `nlevel` | [`subltree`](LabelPath::subltree), [`subpath`](LabelPath::subpath) and [`subpath_from`](LabelPath::subpath_from), [`index`](LabelPath::index) and [`index_from`](LabelPath::index_from), [`nlevel`](LabelPath::nlevel) |
//! | `lca`, of paths and of an array | [`lca`] |
//! | `text2ltree`, `ltree2text` | [`parse`](str::parse), [`to_string`](ToString::to_string) |
//! | `ltree[] @> ltree`, `?@>`; `<@`, `?<@` | [`first_ancestor`], [`first_descendant`] |
//! | `ltree[] ~ lquery`, `?~`; `?`; `@ ltxtquery`, `?@` | [`first_match`] |
//!
//! # Layout
//!
//! | key | value |
//! |---|---|
//! | subspace, label, label, .. | any value |
//! | subspace, label, label, .., more elements, the first of which is not a string | any value |
//!
//! Each label is one string of the [tuple](keyloom::key). The string ends with a terminator, so no
//! label is mistaken for a prefix of another, and `a.b` precedes `a-b`. A label may contain any
//! character, including the delimiter and a NUL. A node precedes its descendants, and the
//! descendants precede the next sibling of the node. If the element after a path is neither null
//! nor bytes, it sorts after strings. Such a key follows all descendants of the node.
//!
//! [`Paths`] searches keys with this layout. Three types write such keys: a
//! [`Table`](keyloom_tables::Table) with record keys of type [`LabelPath`]; a [`PathHierarchy`],
//! which indexes the records of any table by paths in their texts; and a
//! [`MaterializedPath`](super::MaterializedPath) [of names](super::MaterializedPath::of_names), in
//! the subspace `"path"` of the tree. During a move in steps in such a tree, both the old and the
//! new place are visible.
//!
//! # Invariants
//!
//! * Keys have the same order as [`LabelPath`] values: depth-first.
//! * A scan finds exactly the keys whose paths the pattern [matches](PathPattern::matches), in key
//!   order. A descending scan finds the same keys in reverse order.
//! * A scan skips only keys that cannot match.
//!
//! # Patterns compiled to seeks
//!
//! A pattern is an automaton over labels. After each label there are four cases: no path with this
//! prefix can match, all paths with this prefix match, this path matches, or a longer path may
//! match. The first two cases decide a whole subtree at once. If a key does not match, the
//! automaton determines the least next label, at the deepest possible level, and the scan continues
//! there.
//!
//! | pattern | reads |
//! |---|---|
//! | `a.b.*` | the range of `a.b` |
//! | `a.b*.c` | the range of the labels below `a` that begin with `b`; in each of them a seek to `c` |
//! | `a.*{1}.b` | for each child x of `a` a seek to `a.x.b`, and a seek past x |
//! | `a\|m.*` | the ranges of `a` and `m` |
//! | `*.b` | everything: b may be at any depth |
//! | `!a & b` | everything except the range of `a`, and of each node `a` further down |
//! | `usr/(lib\|bin)/[^/]*` | the children of `usr/lib` and `usr/bin` |
//!
//! A pattern label that is compared regardless of case, or by its words, does not narrow the range
//! of keys. In this case each child is read, and a child that does not match is skipped with its
//! subtree.
//!
//! # Cost
//!
//! A *gap* is a run of keys that the scan skips.
//!
//! | operation | cost |
//! |---|---|
//! | [`Paths::matching`], [`Paths::count`] | 1 range; reads the matches, and per gap at most 17 of its keys and 1 range, mostly 2 of its keys and 1 range; on a remote store up to the rest of a page, and then no range |
//! | the same, if the pattern is a literal prefix followed by `*` | 1 range; reads the matches |
//! | [`ancestors_of`](PathPattern::ancestors_of) a path of n labels | at most 2n gaps: one before and one after each label |
//! | [`Paths::page`] | as matching, up to one more match |
//! | matching one path | per label one step of the automaton, whose cost is the number of open items times their words |
//! | put of a record with a [`PathHierarchy`] | 1 key written per path that appears or disappears |
//! | [`PathHierarchy::below`] | as the [`IndexQuery`](keyloom_tables::IndexQuery): 1 range; reads only the entries that it returns |
//! | [`PathHierarchy::matching`] | as [`Paths::matching`] |
//! | [`PathHierarchy::facets`] | 1 range; reads all entries below |
//!
//! [`Scan::explain`](keyloom_tables::Scan::explain) reports what a scan has read.
//!
//! # When not to use it
//!
//! * When nodes move: a path is part of the keys of all descendants, so a move rewrites all of
//!   them.
//! * When paths do not fit into a key, which has at most 511 bytes.
//! * When most patterns begin with `*`: use an inverted index of the labels for these.
//!
//! # Source
//!
//! The documentation of PostgreSQL's module
//! [`ltree`](https://www.postgresql.org/docs/current/ltree.html) by T. Sigaev and O. Bartunov.
//! "Materialized paths" in I. Katsov, *NoSQL Data Modeling Techniques* (2012). The
//! [`path_hierarchy`](https://www.elastic.co/docs/reference/text-analysis/analysis-pathhierarchy-tokenizer)
//! tokenizer of Elasticsearch.

mod error;
mod functions;
mod label_path;
mod lquery;
mod ltxtquery;
mod next;
mod path_hierarchy;
mod pattern;
mod regex;
mod scan;
mod syntax;
mod tokenizer;
mod trail;
mod word;

pub use error::{PathError, SyntaxProblem};
pub use functions::{first_ancestor, first_descendant, first_match, lca};
pub use label_path::LabelPath;
pub use lquery::Lquery;
pub use ltxtquery::Ltxtquery;
pub use path_hierarchy::PathHierarchy;
pub use pattern::PathPattern;
pub use regex::PathRegex;
pub use scan::{PathMatch, Paths};
pub use syntax::{MAX_LABEL_CHARS, MAX_LABELS};
pub use tokenizer::PathTokenizer;
