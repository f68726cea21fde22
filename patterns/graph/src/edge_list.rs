//! Imports edge lists: text with one edge per line.

use std::fmt::{self, Display};
use std::io::{BufRead, Read};
use std::ops::ControlFlow;
use std::str::FromStr;

use keyloom::value::Codec;
use keyloom::{Error, Result, Store};
use keyloom_kit::{Progress, RepairOptions};

use crate::GraphError;
use crate::graph::Graph;
use crate::import::{Item, Source, id};
use crate::keys::{EdgeKey, VertexId};

/// The largest number of bytes of a line.
// Two ids and a label must fit in a key of 511 bytes. Without a bound, a file without line breaks
// would be read into memory.
const LINE: usize = 65_536;

/// The beginning of the first line of a list in the format of Matrix Market.
const MATRIX_MARKET: &str = "%%MatrixMarket";

/// The format of an edge list, for [`Graph::import_edges`]. Each line is `source target` or
/// `source target weight`, separated by spaces or tabs. Empty lines, and lines that begin with `#`
/// or `%`, are skipped. In the coordinate format of Matrix Market, the line with the size of the
/// matrix is skipped, too.
///
/// Source: the edge lists of SNAP (Leskovec and Krevl 2014), and the Matrix Market exchange formats
/// (Boisvert, Pozo and Remington 1996).
#[derive(Clone)]
pub struct EdgeList<F> {
    label: String,
    separator: Option<char>,
    properties: F,
}

impl<F> fmt::Debug for EdgeList<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EdgeList")
            .field("label", &self.label)
            .field("separator", &self.separator)
            .finish_non_exhaustive()
    }
}

impl<F> EdgeList<F> {
    /// All edges get the label `label`. The function `properties` receives the weight of a line, or
    /// `None` if the line has no weight, and returns the properties of the edge.
    pub fn new<E>(label: impl Into<String>, properties: F) -> Self
    where
        F: Fn(Option<f64>) -> E,
    {
        Self { label: label.into(), separator: None, properties }
    }

    /// Separates the columns by `separator` instead of spaces and tabs. Spaces around a column are
    /// dropped; inside, they belong to the id.
    #[must_use]
    pub fn separator(mut self, separator: char) -> Self {
        self.separator = Some(separator);
        self
    }

    fn edge<I, E>(&self, line: &str) -> std::result::Result<(EdgeKey<I>, E), String>
    where
        I: FromStr<Err: Display>,
        F: Fn(Option<f64>) -> E,
    {
        let columns: Vec<&str> = match self.separator {
            Some(separator) => line.split(separator).map(str::trim).collect(),
            None => line.split_whitespace().collect(),
        };
        let (source, target, weight) = match *columns {
            [source, target] => (source, target, None),
            [source, target, weight] => (source, target, Some(weight)),
            _ => return Err(format!("has {} columns, not 2 or 3", columns.len())),
        };
        let weight = weight.map(|weight| match weight.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(format!("has the weight {weight:?}, which is not a finite number")),
        });
        let key = (id("source", source)?, self.label.clone(), id("target", target)?);
        Ok((key, (self.properties)(weight.transpose()?)))
    }
}

/// The lines of an edge list.
struct Lines<R> {
    input: R,
    /// The number of the line that was read last, counted from 1.
    number: u64,
    bytes: u64,
    text: Vec<u8>,
    /// Whether the next line is the size of a matrix.
    is_size_next: bool,
    is_directed: bool,
}

impl<R: BufRead> Lines<R> {
    fn bad(&self, why: impl Into<String>) -> Error {
        GraphError::BadEdgeLine { line: self.number, why: why.into() }.into()
    }

    /// The next line with an edge, after the first `skipped` lines.
    fn next_edge(&mut self, skipped: u64) -> Result<Option<&str>> {
        while self.read_line()? {
            let line = std::str::from_utf8(&self.text);
            let Ok(line) = line.map(str::trim) else { return Err(self.bad("is not UTF-8")) };
            if self.number == 1 && line.starts_with(MATRIX_MARKET) {
                let words = line.to_ascii_lowercase();
                let is_of = |word| words.split_whitespace().any(|one| one == word);
                if !is_of("coordinate") {
                    return Err(self.bad("is of a Matrix Market file that lists no coordinates"));
                }
                // A file that is not `general` contains only one half of the matrix.
                if !is_of("general") && !is_of("symmetric") {
                    return Err(self
                        .bad("is of a Matrix Market file that is neither general nor symmetric"));
                }
                if !is_of("general") && self.is_directed {
                    return Err(self.bad(
                        "is of a symmetric Matrix Market file, which is imported into undirected graphs",
                    ));
                }
                self.is_size_next = true;
            }
            if line.is_empty() || line.starts_with(['#', '%']) {
                continue;
            }
            if !std::mem::take(&mut self.is_size_next) && self.number > skipped {
                break;
            }
        }
        // Parsed again: the loop cannot return a borrow of a text that it overwrites.
        let line = std::str::from_utf8(&self.text).map(str::trim).unwrap_or_default();
        Ok(Some(line).filter(|line| !line.is_empty()))
    }

    /// Reads a line; the text is empty after the last one.
    fn read_line(&mut self) -> Result<bool> {
        self.text.clear();
        self.number += 1;
        let mut input = self.input.by_ref().take(LINE as u64 + 1);
        let read = input.read_until(b'\n', &mut self.text);
        let read = read.map_err(|error| self.bad(format!("cannot be read: {error}")))?;
        self.bytes += read as u64;
        match self.text.len() > LINE {
            true => Err(self.bad(format!("has more than {LINE} bytes"))),
            false => Ok(read > 0),
        }
    }
}

impl<I, V, E, C> Graph<I, V, E, C>
where
    I: VertexId + FromStr<Err: Display>,
    V: 'static,
    E: Clone + 'static,
    C: Codec<V> + Codec<E> + 'static,
{
    /// Imports an edge list, such as those of SNAP and of Matrix Market. Reads the input as a
    /// stream, and puts 1,000 edges in each transaction. A second import of the same list changes
    /// nothing. Each transaction costs one [`put_edges`](Graph::put_edges): one get per edge, all
    /// in one round trip, and up to 4 keys written per edge.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::{EdgeList, Graph};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let roads = Graph::<u32, (), f64>::undirected(&Schema::open(&store, "test")?, "roads")?;
    /// let text = "# source, target, miles\n1 2 3.5\n2 3\n";
    /// let list = EdgeList::new("leads to", |miles| miles.unwrap_or(1.0));
    /// let done = roads.import_edges(&store, text.as_bytes(), &list)?;
    /// assert_eq!(done.records, 2);
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(roads.at(&snapshot)?.edge(&1, "leads to", &2)?, Some(3.5));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`GraphError::BadEdgeLine`]; the errors of [`put_edges`](Graph::put_edges). Earlier
    /// transactions stay committed.
    pub fn import_edges<F: Fn(Option<f64>) -> E>(
        &self,
        store: &impl Store,
        input: impl BufRead,
        list: &EdgeList<F>,
    ) -> Result<Progress> {
        let options = RepairOptions::default();
        self.import_edges_with(store, input, list, &options, |_| ControlFlow::Continue(()))
    }

    /// [`import_edges`](Graph::import_edges) with options: the number of edges in a transaction,
    /// and the position at which to resume. Calls `progress` after each commit and stops if it
    /// breaks. [`Progress::records`] counts edges. [`Progress::position`] is the last line whose
    /// edge is committed; a resumed import reads the same input, and skips this line and the lines
    /// before it.
    ///
    /// # Errors
    /// The errors of [`import_edges`](Graph::import_edges);
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for the position of other work,
    /// or after the end of the input.
    pub fn import_edges_with<F: Fn(Option<f64>) -> E>(
        &self,
        store: &impl Store,
        input: impl BufRead,
        list: &EdgeList<F>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let is_directed = self.is_directed();
        let (text, is_size_next) = (Vec::new(), false);
        let lines = Lines { input, number: 0, bytes: 0, text, is_size_next, is_directed };
        self.import(store, Edges { lines, list }, options, progress)
    }
}

/// The edges of a list, numbered by their lines.
struct Edges<'l, R, F> {
    lines: Lines<R>,
    list: &'l EdgeList<F>,
}

impl<I, V, E, R, F> Source<I, V, E> for Edges<'_, R, F>
where
    I: FromStr<Err: Display>,
    R: BufRead,
    F: Fn(Option<f64>) -> E,
{
    const UNIT: &'static str = "line";

    fn next_item(&mut self, skipped: u64) -> Result<Option<Item<I, V, E>>> {
        let Some(line) = self.lines.next_edge(skipped)? else { return Ok(None) };
        let edge = self.list.edge(line);
        edge.map(|edge| Some(Item::Edge(edge))).map_err(|why| self.lines.bad(why))
    }

    fn number(&self) -> u64 {
        self.lines.number
    }

    fn bytes(&self) -> u64 {
        self.lines.bytes
    }
}
