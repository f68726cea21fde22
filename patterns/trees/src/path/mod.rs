//! Paths of labels: keys that are paths in a hierarchy, and patterns that select them.
//!
//! The path of a node, `Top.Science.Astronomy`, is its key. So the key contains all ancestors of
//! the node, its descendants are one range, and a *pattern* of paths determines which of them are
//! read at all. The language is that of PostgreSQL's module `ltree`, complete, with the semantics
//! of versions 15 and later. In addition there are regular expressions over whole paths.
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
//! | subspace, label, label, .., elements of which the first is not a string | any value |
//!
//! Each label is one string of the [tuple](keyloom::key). It ends with a terminator, so no label is
//! mistaken for a prefix of another, and `a.b` precedes `a-b`. A label may contain any character,
//! including the delimiter and a NUL. A node precedes its descendants, and they precede its next
//! sibling. Elements after a path other than null and bytes sort after strings, so such keys follow
//! all descendants of the node.
//!
//! A [`Table`](keyloom_tables::Table) with record keys of type [`LabelPath`] has such keys. So does
//! a [`PathHierarchy`], which indexes the records of any table by a path in one of their texts. So
//! do the paths of a [`MaterializedPath`](super::MaterializedPath) [of
//! names](super::MaterializedPath::of_names), in the subspace `"path"` of the tree; during a move
//! in steps there, both places are visible. [`Paths`] searches the keys of
//! all three.
//!
//! # Invariants
//!
//! * The keys have the order of the paths as values: depth-first.
//! * A scan finds exactly the keys whose paths the pattern [matches](PathPattern::matches), in key
//!   order; a descending scan finds the same in reverse.
//! * A scan skips only keys that cannot match.
//!
//! # Patterns compiled to seeks
//!
//! A pattern is an automaton over labels. After each label there are four cases: no path with this
//! prefix can match, all such paths match, this path matches, or a longer one may. The first two
//! decide a whole subtree at once. If a key does not match, the automaton determines the least next
//! label, at the deepest possible level, and the scan continues there.
//!
//! | pattern | reads |
//! |---|---|
//! | `a.b.*` | the range of `a.b` |
//! | `a.b*.c` | the range of the labels below `a` that begin with `b`; in each of them a seek to `c` |
//! | `a.*{1}.b` | for each child x of `a` a seek to `a.x.b`, and one past x |
//! | `a\|m.*` | the ranges of `a` and `m` |
//! | `*.b` | everything: b may be at any depth |
//! | `!a & b` | everything but the range of `a`, and of each node `a` further down |
//! | `usr/(lib\|bin)/[^/]*` | the children of `usr/lib` and `usr/bin` |
//!
//! A label that is compared regardless of case, or by its words, may be any label until it is read.
//! Then each child is read, and a child that does not match is skipped with its subtree.
//!
//! # Cost
//!
//! A *gap* is a run of keys that the scan skips.
//!
//! | operation | cost |
//! |---|---|
//! | [`Paths::matching`], [`Paths::count`] | 1 range; reads the matches, and per gap at most 16 keys and 1 range, mostly 2 keys and 1 range; on a server up to the rest of a page, and then no range |
//! | the same, if the pattern is a literal prefix followed by `*` | 1 range; reads the matches |
//! | [`ancestors_of`](PathPattern::ancestors_of) a path of n labels | at most n gaps |
//! | [`Paths::page`] | as matching, up to one more match |
//! | matching one path | per label one step of the automaton: the number of its open items times their words |
//! | put of a record with a [`PathHierarchy`] | 1 key written per path that appears or disappears |
//! | [`PathHierarchy::below`] | as the [`IndexQuery`](keyloom_tables::IndexQuery): 1 range; reads what it returns |
//! | [`PathHierarchy::matching`] | as [`Paths::matching`] |
//! | [`PathHierarchy::facets`] | 1 range; reads all entries below |
//!
//! [`Scan::explain`](keyloom_tables::Scan::explain) reports what a scan has read.
//!
//! # When not to use it
//!
//! * When nodes move: a path is part of the keys of all descendants, so all of them are written
//!   again.
//! * When paths are longer than a key (511 bytes in all).
//! * When most patterns begin with `*`: an inverted index of the labels finds these.
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

pub use error::{Notation, PathError, SyntaxError, SyntaxProblem};
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
