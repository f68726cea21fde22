//! Paths of labels: which nodes of a hierarchy match a pattern?
//!
//! A node is known by its path, `Top.Science.Astronomy`, and the path is the key. Then the
//! ancestors of a node can be read off its key, all that lies below it is one range, and a
//! *pattern* of paths says which of these are to be read at all. The language is that of
//! PostgreSQL's module `ltree`, complete, with the semantics of its versions 15 and later; regular
//! expressions over whole paths are there too.
//!
//! | in PostgreSQL | here |
//! |---|---|
//! | `ltree` | [`LabelPath`] |
//! | `lquery`, `path ~ lquery` | [`Lquery`], [`matches`](Lquery::matches) |
//! | `path ? lquery[]` | [`PathPattern::any_of`] |
//! | `ltxtquery`, `path @ ltxtquery` | [`Ltxtquery`], [`matches`](Ltxtquery::matches) |
//! | `a @> b`, `a <@ b` | [`is_ancestor_of`](LabelPath::is_ancestor_of), [`is_descendant_of`](LabelPath::is_descendant_of); of stored paths [`ancestors_of`](PathPattern::ancestors_of), [`descendants_of`](PathPattern::descendants_of) |
//! | `a < b`, `a = b` and the like | the operators of Rust |
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
//! | subspace, label, label, .. | whatever the keys are for |
//! | subspace, label, label, .., what begins with an element that is no string | the same |
//!
//! Each label is one string of the [tuple](keyloom::key): it ends with a terminator, so no label is
//! taken for the beginning of another, `a.b` lies before `a-b`, and a label may hold any character,
//! the delimiter and a NUL included. A node comes before all that is below it, and that before its
//! next sibling. What follows a path and is neither a null nor bytes sorts behind strings, so it
//! comes behind all that is below the node.
//!
//! A [`Table`](keyloom_tables::Table) whose record key is a [`LabelPath`] has such keys, and so has
//! a [`PathHierarchy`], which indexes the records of any table by a path that they hold in a text.
//! So have the paths of a [`MaterializedPath`](super::MaterializedPath) [of
//! names](super::MaterializedPath::of_names), in the subspace `"path"` of the tree; while something
//! is moved in steps there, both places are shown. [`Paths`] searches all of them.
//!
//! # Invariants
//!
//! * The order of the keys is the order of the paths as values, and depth first.
//! * A scan finds exactly the keys whose paths the pattern [matches](PathPattern::matches), in the
//!   order of the keys; another order finds the same in reverse.
//! * What is between the place where a scan is and the place where it goes on cannot match.
//!
//! # Patterns compiled to seeks
//!
//! A pattern is an automaton over labels. Behind each label it says one of four things: nothing
//! that begins so can match, everything does, this path does, or a longer one may. The first two
//! decide a whole subtree at once. And when a key does not match, the automaton says which label is
//! the least that could come next, at the deepest level where there is one: the scan goes on there.
//!
//! | pattern | is read as |
//! |---|---|
//! | `a.b.*` | the range of `a.b` |
//! | `a.b*.c` | the range of the labels of `a` that begin with `b`; in each of them a seek to `c` |
//! | `a.*{1}.b` | for each child x of `a` a seek to `a.x.b`, and one behind x |
//! | `a\|m.*` | the ranges of `a` and `m` |
//! | `*.b` | everything: b may stand at any depth |
//! | `!a & b` | everything but the range of `a`, and of each node `a` below |
//! | `usr/(lib\|bin)/[^/]*` | the children of `usr/lib` and `usr/bin` |
//!
//! A label that is compared without regard to case, or by its words, may be any label until it is
//! read: then each child is looked at, and what does not match is left out as a whole.
//!
//! # Cost
//!
//! A *gap* is a place where keys are left out.
//!
//! | operation | cost |
//! |---|---|
//! | [`Paths::matching`], [`Paths::count`] | 1 range; reads what it finds, and per gap at most 16 keys and 1 range, mostly 2 keys and 1 range; on a server up to the rest of a page, and then no range |
//! | the same, when the pattern is a literal beginning, then `*` | 1 range; reads what it finds |
//! | [`ancestors_of`](PathPattern::ancestors_of) a path of n labels | at most n gaps |
//! | [`Paths::page`] | as matching, up to one match more |
//! | matching one path | per label one step of the automaton: its open items times their words |
//! | put of a record with a [`PathHierarchy`] | 1 key written per path that appears or disappears |
//! | [`PathHierarchy::below`] | 1 range; reads what it returns |
//! | [`PathHierarchy::matching`] | as [`Paths::matching`] |
//! | [`PathHierarchy::page`] | as [`below`](PathHierarchy::below), up to one entry more |
//! | [`PathHierarchy::records`] | as [`page`](PathHierarchy::page), and a get for each record, in one batch |
//! | [`PathHierarchy::facets`] | 1 range; reads all that lies below |
//!
//! What a scan has read is told by [`Scan::explain`](keyloom_tables::Scan::explain).
//!
//! # When not to use it
//!
//! When nodes move: a path is the key of everything below it, and all of it is written again. When
//! paths are longer than a key (511 bytes in all). When most patterns begin with `*`, without
//! anything before it: an inverted index of the labels finds these.
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
pub use label_path::{LabelPath, MAX_LABEL_CHARS, MAX_LABELS};
pub use lquery::Lquery;
pub use ltxtquery::Ltxtquery;
pub use path_hierarchy::{Facet, PathHierarchy};
pub use pattern::PathPattern;
pub use regex::PathRegex;
pub use scan::{PathMatch, Paths};
pub use tokenizer::PathTokenizer;
