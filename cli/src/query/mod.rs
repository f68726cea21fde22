//! `keyloom query`: records by an index, terms, conditions, a place, a path or a neighbour.

#[cfg(feature = "explore")]
mod audience;
#[cfg(feature = "explore")]
mod edges;
mod index;
mod listing;
#[cfg(feature = "explore")]
mod paths;
#[cfg(feature = "explore")]
mod places;
#[cfg(feature = "explore")]
mod text;
#[cfg(feature = "explore")]
mod tree;

use clap::{Args, ValueEnum};
use keyloom::{AnySnapshot, Store};

use crate::address::{Access, open};
use crate::catalog::{Catalog, Part};
use crate::failure::{Failure, Outcome, Result};
use crate::output::{Output, note};
use crate::value::{As, Format};

const AFTER_HELP: &str = "\
The form of QUERY depends on the kind of the data, which ls shows. Without QUERY, all
records or the roots of a tree are listed; a search needs terms, and a graph a vertex.

  index           keyloom query shop people.by_town '(\"Rome\", \"A\"..)'
  text index      keyloom query library texts.words 'storm sea'          (all terms, the best first)
                  keyloom query library texts.words 'stor*' --field 1    (a prefix, another field)
  inverted index  keyloom query ads users.sets 'town=Rome and not (level<3 or site=a.org)'
  points          keyloom query trip pins.by_place 51.2,-0.5,51.7,0.3    (south,west,north,east)
                  keyloom query trip pins.by_place 51.5,-0.1,10km        (the nearest first)
                  keyloom query trip pins.by_place 51.5,-0.1             (at any distance)
  extents         keyloom query trip parks.by_extent 51.2,-0.5,51.7,0.3  (overlapping the box)
  tree            keyloom query files dirs.tree '/photos/2024*/**'       (* in a name, ** any names)
                  keyloom query files dirs.tree 17                       (the number of a node)
  path hierarchy  keyloom query files docs.by_path 'usr.*.bin'           (a pattern of labels)
  graph           keyloom query net 'links edges' ada --direction in --label knows";

/// Lists records by an index, terms, conditions, a place, a path or a neighbour in a graph.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct Query {
    /// The store: lmdb:DIRECTORY, redb:FILE, fjall:DIRECTORY, …
    pub address: String,
    /// The name of an index, or of other data that ls lists, such as people.by_town
    pub name: String,
    /// The query, in the form for the kind of the data: see below
    #[arg(allow_hyphen_values = true)]
    pub query: Option<String>,
    /// The most records to list
    #[arg(long, short = 'n', default_value_t = 20)]
    pub limit: usize,
    /// Begins with the last entry of an index
    #[arg(long)]
    pub reverse: bool,
    /// The number of the field of texts, in the order of their declaration [default: 0]
    #[arg(long, value_name = "NUMBER")]
    pub field: Option<u8>,
    /// The leading parts of an index with groups, such as ("acme",)
    #[arg(long, value_name = "TUPLE")]
    pub group: Option<String>,
    /// The edges of a vertex to list [default: both]
    #[arg(long, value_enum)]
    pub direction: Option<Direction>,
    /// The label of the edges to list
    #[arg(long)]
    pub label: Option<String>,
    /// The form of the records
    #[arg(long = "as", value_enum, default_value_t)]
    pub wanted: As,
    /// Shows long records in full
    #[arg(long)]
    pub full: bool,
}

/// The edges of a vertex in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    /// From the vertex
    Out,
    /// To the vertex
    In,
    /// Both
    Both,
}

/// What a query reads.
#[cfg_attr(not(feature = "explore"), expect(dead_code, reason = "only an index can be queried"))]
struct At<'q> {
    args: &'q Query,
    catalog: &'q Catalog,
    part: &'q Part,
    /// The table of the part.
    table: &'q Part,
    snapshot: &'q AnySnapshot<'q>,
}

impl At<'_> {
    fn format(&self) -> Format {
        Format { wanted: self.args.wanted, full: self.args.full }
    }

    /// The query without space around it, unless it is missing or empty.
    #[cfg(feature = "explore")]
    fn query(&self) -> Option<&str> {
        self.args.query.as_deref().map(str::trim).filter(|query| !query.is_empty())
    }
}

/// Runs the queries of one kind.
type Run = fn(&At<'_>, &mut Output) -> Result;

/// The queries of a kind of data, and the options that belong to it.
struct Kind {
    run: Run,
    options: &'static [&'static str],
}

impl Kind {
    /// The kind of a part, if it can be queried.
    fn of(catalog: &Catalog, part: &Part) -> Option<Self> {
        if part.is_index() {
            return Some(Self { run: index::run, options: &["--reverse"] });
        }
        Self::without_types(catalog, part)
    }

    #[cfg(feature = "explore")]
    fn without_types(catalog: &Catalog, part: &Part) -> Option<Self> {
        let (run, options): (Run, &'static [&'static str]) = match part.kind.as_str() {
            "points" => (places::points, &["--group"]),
            "extents" => (places::extents, &["--group"]),
            "text index" => (text::run, &["--field", "--group"]),
            "tree" => (tree::run, &[]),
            "inverted index" => (audience::run, &[]),
            "path hierarchy" => (paths::run, &["--reverse"]),
            _ if crate::edges::Edges::of(catalog, part).is_some() => {
                (edges::run, &["--direction", "--label"])
            }
            _ => return None,
        };
        Some(Self { run, options })
    }

    #[cfg(not(feature = "explore"))]
    fn without_types(_: &Catalog, _: &Part) -> Option<Self> {
        None
    }
}

impl Query {
    /// Runs the command.
    pub fn run(&self, out: &mut Output) -> Result<Outcome> {
        let store = open(&self.address, Access::Read)?;
        let catalog = Catalog::read(&store);
        let part = catalog.require(&self.name)?;
        let kind = Kind::of(&catalog, part).ok_or_else(|| refused(&catalog, part))?;
        self.refuse_options_except(kind.options, part)?;
        let table = catalog.table_of(part);
        let table = table.ok_or_else(|| Failure::new(format!("{:?} has no table", part.name)))?;
        if part.state != "readable" {
            note(&format!(
                "{} is not readable but {}: records may be missing",
                part.name, part.state
            ));
        }
        let snapshot = store.snapshot()?;
        (kind.run)(&At { args: self, catalog: &catalog, part, table, snapshot: &snapshot }, out)?;
        Ok(Outcome::Fine)
    }

    /// Refuses the options that only queries of another kind have.
    fn refuse_options_except(&self, allowed: &[&str], part: &Part) -> Result {
        let given = [
            ("--reverse", self.reverse),
            ("--field", self.field.is_some()),
            ("--group", self.group.is_some()),
            ("--direction", self.direction.is_some()),
            ("--label", self.label.is_some()),
        ];
        match given.iter().find(|(name, is_given)| *is_given && !allowed.contains(name)) {
            None => Ok(()),
            Some((name, _)) => Err(Failure::new(format!(
                "{name} does not belong to a query of {:?}: {}",
                part.name, part.kind
            ))),
        }
    }
}

/// The error for data that cannot be queried. It lists data that can be queried, and names the
/// command that shows the data.
fn refused(catalog: &Catalog, part: &Part) -> Failure {
    let of_table = |one: &&Part| one.table == part.table && one.schema == part.schema;
    let can_be = |one: &&Part| Kind::of(catalog, one).is_some();
    let named = |one: &Part| format!("{:?} ({})", one.name, one.kind);
    let near: Vec<_> =
        catalog.parts.iter().filter(of_table).filter(can_be).map(named).take(20).collect();
    let all = || catalog.parts.iter().filter(can_be).map(named).take(20).collect::<Vec<_>>();
    let (whose, others) = match near.is_empty() {
        true => ("the store has", all()),
        false => ("its table has", near),
    };
    let others = match others.is_empty() {
        true => "the store has no data that can be".to_owned(),
        false => format!("{whose} {}", others.join(", ")),
    };
    let command = match part.kind.as_str() {
        "table" | "queue" => "scan",
        _ if cfg!(feature = "explore") => "scan or explore",
        _ => "scan",
    };
    Failure::new(format!(
        "{:?} is not an index but: {}; it cannot be queried, and {others}; `keyloom {command}` shows its entries",
        part.name, part.kind
    ))
}
