//! Imports vertices and edges from GraphML, the XML format of NetworkX, igraph and Gephi.

use std::fmt::{self, Display};
use std::io::{BufRead, Take};
use std::ops::ControlFlow;
use std::str::FromStr;

use keyloom::value::Codec;
use keyloom::{Error, Result, Store};
use keyloom_kit::{Progress, RepairOptions};
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::GraphError;
use crate::graph::Graph;
use crate::import::{Item, Source, id, shown};
use crate::keys::VertexId;

/// The maximum number of bytes of a node, an edge, a key, or anything else that is read as a whole.
// Without a bound, a file without tags would be read into memory. Drawing programs add images to
// their files, as texts.
const MOST_BYTES: u64 = 16 << 20;
/// The maximum depth of elements in one another.
// The parser keeps the names of all open elements.
const MOST_LEVELS: u64 = 256;
/// The maximum number of declared keys; each node and edge has at most one text for each.
const MOST_KEYS: usize = 1_000;

/// The directions of the edges of a graph: whether the edges are directed.
const DIRECTIONS: [(&str, bool); 2] = [("directed", true), ("undirected", false)];
/// The values of a Boolean attribute.
const TRUTHS: [(&str, bool); 4] = [("true", true), ("1", true), ("false", false), ("0", false)];

/// How the elements of a GraphML file become vertices and edges, for [`Graph::import_graphml`].
///
/// GraphML declares properties as *keys*, which have a name and may have a default. Each node and
/// each edge has *data* for some of them. Two functions receive these data as [`GraphMlData`]: the
/// first returns the properties of a vertex, the second the label and the properties of an edge. A
/// function may refuse an element; its message continues the sentence "the GraphML at byte n".
///
/// Refused are several graphs in one file, graphs inside of nodes, and edges of more than two ends;
/// a key that is declared behind a node or an edge, or not at all; encodings other than UTF-8; and
/// a node or an edge of more than 16 MiB. Ports are ignored.
///
/// Source: U. Brandes, M. Eiglsperger, I. Herman, M. Himsolt and M. S. Marshall, *GraphML Progress
/// Report* (2002).
#[derive(Clone)]
pub struct GraphMl<N, F> {
    prefix: String,
    vertex: N,
    edge: F,
}

impl<N, F> fmt::Debug for GraphMl<N, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphMl").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl<N, F> GraphMl<N, F> {
    /// Takes the functions of vertices and of edges.
    pub fn new<V, E>(vertex: N, edge: F) -> Self
    where
        N: Fn(&GraphMlData<'_>) -> std::result::Result<V, String>,
        F: Fn(&GraphMlData<'_>) -> std::result::Result<(String, E), String>,
    {
        Self { prefix: String::new(), vertex, edge }
    }

    /// Removes `prefix` from the ids: igraph and yEd write the vertex 7 as `n7`. An id without the
    /// prefix is refused.
    #[must_use]
    pub fn id_prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    fn id<I: FromStr<Err: Display>>(&self, what: &str, text: &str) -> Refusable<I> {
        let text = text.trim();
        match text.strip_prefix(&*self.prefix) {
            Some(text) => id(what, text),
            None => {
                let (text, prefix) = (shown(text), &self.prefix);
                Err(format!("has the {what} {text:?}, which lacks the prefix {prefix:?}"))
            }
        }
    }
}

/// A value, or why an element is refused.
type Refusable<T> = std::result::Result<T, String>;

/// A declared property.
#[derive(Debug)]
struct Key {
    id: String,
    name: String,
    /// `node`, `edge`, `all`, or another element.
    of: String,
    default: Option<String>,
}

/// The data of a node or an edge of a GraphML file.
#[derive(Debug)]
pub struct GraphMlData<'d> {
    keys: &'d [Key],
    tag: &'d Tag,
    /// The texts, with the numbers of their keys.
    own: &'d [Datum],
}

/// The number of a key, and a text.
type Datum = (usize, String);

impl GraphMlData<'_> {
    /// The text of the property `name`: its own, or the default; `None` if there is neither. A
    /// property that is declared without a name has its id as its name. Elements inside of a text
    /// are left out.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(other, _)| *other == name).map(|(_, text)| text)
    }

    /// An attribute of the element itself, such as `id`, `source` or `target`. Parallel edges are
    /// different edges if their ids are their labels.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.tag.get(name)
    }

    /// [`get`](Self::get) as another type, without spaces around the text.
    ///
    /// # Errors
    /// A message if the text is not a `T`; return it from the function of the import.
    pub fn parse<T: FromStr<Err: Display>>(&self, name: &str) -> Refusable<Option<T>> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let parsed = text.trim().parse();
        let refused = |error| {
            let text = shown(text);
            format!("has the {name} {text:?}, which cannot be parsed: {error}")
        };
        parsed.map(Some).map_err(refused)
    }

    /// All properties: the names and texts of the element, and then the defaults of others.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let own =
            self.own.iter().filter_map(|(key, text)| Some((&*self.keys.get(*key)?.name, &**text)));
        let has = |number| self.own.iter().any(|(own, _)| *own == number);
        let others = self.keys.iter().enumerate().filter(move |(number, key)| {
            key.default.is_some() && (key.of == self.tag.name || key.of == "all") && !has(*number)
        });
        let others = others.map(|(_, key)| key);
        own.chain(others.filter_map(|key| Some((&*key.name, key.default.as_deref()?))))
    }
}

/// A tag that opens an element.
#[derive(Debug)]
struct Tag {
    name: String,
    attributes: Vec<(String, String)>,
}

impl Tag {
    fn of(start: &BytesStart<'_>) -> quick_xml::Result<Self> {
        let name = start.local_name().as_ref().to_owned();
        let mut attributes = Vec::new();
        for attribute in start.attributes() {
            let attribute = attribute?;
            let value = attribute.normalized_value(XmlVersion::Implicit1_0)?;
            attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
        }
        Ok(Self { name, attributes })
    }

    fn get(&self, attribute: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(name, _)| name == attribute);
        found.map(|(_, value)| &**value)
    }

    /// The meaning of an attribute that has one of some values; `None` if it is missing.
    fn one_of<T>(&self, attribute: &str, values: &[(&str, T)]) -> Refusable<Option<T>>
    where
        T: Copy,
    {
        let Some(text) = self.get(attribute) else { return Ok(None) };
        match values.iter().find(|(value, _)| *value == text.trim()) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => {
                let allowed: Vec<&str> = values.iter().map(|(value, _)| *value).collect();
                let (text, allowed) = (shown(text), allowed.join(", "));
                Err(format!("has {attribute}={text:?}, which is none of {allowed}"))
            }
        }
    }

    fn required(&self, attribute: &str) -> Refusable<&str> {
        self.get(attribute)
            .ok_or_else(|| format!("has a tag <{}> without {attribute:?}", self.name))
    }
}

/// A part of the file.
enum Part {
    Start(Tag),
    Text(String),
    End,
    /// The encoding that the file declares.
    Encoding(String),
    /// The end of the file.
    Eof,
    Other,
}

impl Part {
    fn of(event: Event<'_>) -> Refusable<Self> {
        let unreadable = |error: quick_xml::Error| format!("cannot be read: {error}");
        Ok(match event {
            Event::Start(start) => Self::Start(Tag::of(&start).map_err(unreadable)?),
            Event::End(_) => Self::End,
            Event::Text(text) => Self::Text(text.xml10_content().into_owned()),
            Event::CData(text) => Self::Text(text.xml10_content().into_owned()),
            Event::GeneralRef(entity) => {
                let char = entity.resolve_char_ref().map_err(unreadable)?.map(String::from);
                let predefined = || quick_xml::escape::resolve_predefined_entity(&entity);
                let text = char.or_else(|| predefined().map(str::to_owned));
                Self::Text(text.ok_or_else(|| format!("has the unknown entity &{};", &*entity))?)
            }
            Event::Decl(declaration) => match declaration.encoding() {
                Some(encoding) => {
                    let encoding = encoding.map_err(|error| unreadable(error.into()))?;
                    Self::Encoding(encoding.into_owned())
                }
                None => Self::Other,
            },
            Event::Eof => Self::Eof,
            _ => Self::Other,
        })
    }
}

/// The nodes and edges of a file, which are numbered together.
struct Elements<'g, R, N, F> {
    file: File<R>,
    format: &'g GraphMl<N, F>,
    /// Whether the graph that receives the edges is directed.
    is_directed: bool,
    number: u64,
}

/// A file with the declarations read so far.
struct File<R> {
    reader: Reader<Take<R>>,
    buffer: Vec<u8>,
    keys: Vec<Key>,
    /// Whether the edges of the current graph are directed, unless they say otherwise.
    edges_are_directed: Option<bool>,
    is_graphml: bool,
    /// Whether a node or an edge was read, behind which no key is declared.
    has_elements: bool,
    /// The number of open elements around the current one.
    depth: u32,
    /// Where what is read as a whole begins.
    start: u64,
}

impl<R: BufRead> File<R> {
    fn new(input: R) -> Self {
        let mut reader = Reader::from_reader(input.take(MOST_BYTES + 1));
        reader.config_mut().expand_empty_elements = true;
        Self {
            reader,
            buffer: Vec::new(),
            keys: Vec::new(),
            edges_are_directed: None,
            is_graphml: false,
            has_elements: false,
            depth: 0,
            start: 0,
        }
    }

    fn bad(&self, why: String) -> Error {
        GraphError::BadGraphMl { byte: self.reader.buffer_position(), why }.into()
    }

    fn part(&mut self) -> Result<Part> {
        self.buffer.clear();
        // One byte more than allowed, so that the end of the file is not taken for the limit.
        let read = self.reader.buffer_position().saturating_sub(self.start);
        self.reader.get_mut().set_limit((MOST_BYTES + 1).saturating_sub(read));
        let part = match self.reader.read_event_into(&mut self.buffer) {
            Ok(event) => Part::of(event),
            Err(error) => Err(format!("cannot be read: {error}")),
        };
        if self.reader.get_ref().limit() == 0 {
            return Err(self.bad(format!("has an element of more than {MOST_BYTES} bytes")));
        }
        part.map_err(|why| self.bad(why))
    }

    /// The next node or edge, with its data.
    fn element(&mut self) -> Result<Option<(Tag, Vec<Datum>)>> {
        loop {
            self.start = self.reader.buffer_position();
            match self.part()? {
                Part::Start(tag) => match &*tag.name {
                    "node" | "edge" if self.depth > 0 => {
                        self.has_elements = true;
                        let data = self.data(&tag)?;
                        return Ok(Some((tag, data)));
                    }
                    _ => self.enter(&tag)?,
                },
                Part::End => self.depth -= 1,
                Part::Eof if !self.is_graphml => {
                    return Err(self.bad("ends without an element <graphml>".to_owned()));
                }
                Part::Eof if self.depth > 0 => return Err(self.bad("ends too early".to_owned())),
                Part::Eof => return Ok(None),
                Part::Encoding(encoding)
                    if !["utf-8", "us-ascii"].contains(&&*encoding.to_ascii_lowercase()) =>
                {
                    let why =
                        format!("is encoded as {}; convert the file to UTF-8", shown(&encoding));
                    return Err(self.bad(why));
                }
                Part::Text(_) | Part::Encoding(_) | Part::Other => {}
            }
        }
    }

    /// Enters an element around nodes and edges, or passes over an element.
    fn enter(&mut self, tag: &Tag) -> Result<()> {
        match &*tag.name {
            "graphml" => self.is_graphml = true,
            "graph" => {
                if self.edges_are_directed.is_some() {
                    let why = "has a second graph; import files with one graph each".to_owned();
                    return Err(self.bad(why));
                }
                tag.required("edgedefault").map_err(|why| self.bad(why))?;
                let is_directed = tag.one_of("edgedefault", &DIRECTIONS);
                self.edges_are_directed = is_directed.map_err(|why| self.bad(why))?;
            }
            "key" if self.has_elements => {
                let why = "declares a key behind a node or an edge; move it before them".to_owned();
                return Err(self.bad(why));
            }
            "key" => return self.declare(tag),
            "hyperedge" => {
                return Err(self.bad("has a hyperedge; give each edge two ends".to_owned()));
            }
            _ => return self.skip(),
        }
        self.depth += 1;
        Ok(())
    }

    fn declare(&mut self, tag: &Tag) -> Result<()> {
        let id = tag.required("id").map_err(|why| self.bad(why))?.to_owned();
        let name = tag.get("attr.name").unwrap_or(&id).to_owned();
        let of = tag.get("for").unwrap_or("all").to_owned();
        let mut default = None;
        loop {
            match self.part()? {
                Part::Start(tag) if tag.name == "default" => default = Some(self.text()?),
                Part::Start(_) => self.skip()?,
                Part::End => break,
                Part::Eof => return Err(self.bad("ends within a <key>".to_owned())),
                Part::Text(_) | Part::Encoding(_) | Part::Other => {}
            }
        }
        if self.keys.len() >= MOST_KEYS {
            return Err(self.bad(format!("declares more than {MOST_KEYS} keys")));
        }
        self.keys.push(Key { id, name, of, default });
        Ok(())
    }

    /// The data of a node or an edge, up to its end.
    fn data(&mut self, of: &Tag) -> Result<Vec<Datum>> {
        let mut data = Vec::<Datum>::new();
        loop {
            match self.part()? {
                Part::Start(tag) => match &*tag.name {
                    "data" => {
                        let key = self.declared(&tag).map_err(|why| self.bad(why))?;
                        if data.iter().any(|(other, _)| *other == key) {
                            return Err(
                                self.bad(format!("has a {} with two data of a key", of.name))
                            );
                        }
                        data.push((key, self.text()?));
                    }
                    "graph" => {
                        return Err(self.bad(format!(
                            "has a graph inside of a {}; write its nodes beside the others",
                            of.name
                        )));
                    }
                    _ => self.skip()?,
                },
                Part::End => return Ok(data),
                Part::Eof => return Err(self.bad(format!("ends within a <{}>", of.name))),
                Part::Text(_) | Part::Encoding(_) | Part::Other => {}
            }
        }
    }

    /// The number of the key of a data tag.
    fn declared(&self, tag: &Tag) -> Refusable<usize> {
        let key = tag.required("key")?;
        let number = self.keys.iter().position(|declared| declared.id == key);
        number.ok_or_else(|| format!("has data of the key {:?}, which is not declared", shown(key)))
    }

    /// The text up to the end of the element, without that of elements inside.
    fn text(&mut self) -> Result<String> {
        let mut text = String::new();
        loop {
            match self.part()? {
                Part::Start(_) => self.skip()?,
                Part::Text(more) => text.push_str(&more),
                Part::End => return Ok(text),
                Part::Eof => return Err(self.bad("ends within a text".to_owned())),
                Part::Encoding(_) | Part::Other => {}
            }
        }
    }

    /// Passes over the rest of an element.
    fn skip(&mut self) -> Result<()> {
        let mut open = 1_u64;
        while open > 0 {
            match self.part()? {
                Part::Start(_) if open == MOST_LEVELS => {
                    return Err(self.bad(format!("has more than {MOST_LEVELS} levels of elements")));
                }
                Part::Start(_) => open += 1,
                Part::End => open -= 1,
                Part::Eof => return Err(self.bad("ends within an element".to_owned())),
                Part::Text(_) | Part::Encoding(_) | Part::Other => {}
            }
        }
        Ok(())
    }
}

impl<R: BufRead, N, F> Elements<'_, R, N, F> {
    fn item<I, V, E>(&self, tag: &Tag, own: &[Datum]) -> Refusable<Item<I, V, E>>
    where
        I: FromStr<Err: Display>,
        N: Fn(&GraphMlData<'_>) -> Refusable<V>,
        F: Fn(&GraphMlData<'_>) -> Refusable<(String, E)>,
    {
        let Self { file, format, .. } = self;
        let data = GraphMlData { keys: &file.keys, tag, own };
        if tag.name == "node" {
            let vertex = format.id("id", tag.required("id")?)?;
            return Ok(Item::Vertex((vertex, (format.vertex)(&data)?)));
        }
        let is_directed = tag.one_of("directed", &TRUTHS)?.or(file.edges_are_directed);
        let is_directed = is_directed.ok_or("has an edge outside of a graph")?;
        if is_directed != self.is_directed {
            let (edge, graph) = match is_directed {
                true => ("a directed", "an undirected"),
                false => ("an undirected", "a directed"),
            };
            return Err(format!("has {edge} edge, which is not imported into {graph} graph"));
        }
        let source = format.id("source", tag.required("source")?)?;
        let target = format.id("target", tag.required("target")?)?;
        let (label, edge) = (format.edge)(&data)?;
        Ok(Item::Edge(((source, label, target), edge)))
    }
}

impl<I, V, E, R, N, F> Source<I, V, E> for Elements<'_, R, N, F>
where
    I: FromStr<Err: Display>,
    R: BufRead,
    N: Fn(&GraphMlData<'_>) -> Refusable<V>,
    F: Fn(&GraphMlData<'_>) -> Refusable<(String, E)>,
{
    const UNIT: &'static str = "GraphML element";

    fn next_item(&mut self, skipped: u64) -> Result<Option<Item<I, V, E>>> {
        loop {
            let element = self.file.element()?;
            self.number += 1;
            let Some((tag, data)) = element else { return Ok(None) };
            if self.number > skipped {
                let item = self.item(&tag, &data).map_err(|why| self.file.bad(why))?;
                return Ok(Some(item));
            }
        }
    }

    fn number(&self) -> u64 {
        self.number
    }

    fn bytes(&self) -> u64 {
        self.file.reader.buffer_position()
    }
}

impl<I, V, E, C> Graph<I, V, E, C>
where
    I: VertexId + FromStr<Err: Display>,
    V: 'static,
    E: Clone + 'static,
    C: Codec<V> + Codec<E> + 'static,
{
    /// Imports the nodes and edges of a GraphML file. Reads the input as a stream, and puts 1,000
    /// nodes and edges in each transaction. A second import of the same file changes nothing. Each
    /// transaction costs one [`put_edges`](Graph::put_edges), and one
    /// [`put_many`](keyloom_tables::Table::put_many) of its vertices.
    ///
    /// A graph has one edge of a label from one vertex to another: of several such edges in the
    /// file, the last is kept. Into a graph that [refuses missing
    /// vertices](Graph::refuse_missing_vertices), import files whose nodes come before their edges.
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_graph::{Graph, GraphMl};
    /// use keyloom_tables::Schema;
    /// let store = Memory::new();
    /// let roads = Graph::<u32, String, f64>::undirected(&Schema::open(&store, "test")?, "roads")?;
    /// let file = r#"<graphml>
    ///   <key id="d0" for="node" attr.name="name" attr.type="string"/>
    ///   <key id="d1" for="edge" attr.name="miles" attr.type="double"><default>1</default></key>
    ///   <graph edgedefault="undirected">
    ///     <node id="n1"><data key="d0">Oslo</data></node>
    ///     <node id="n2"><data key="d0">Bergen</data></node>
    ///     <edge source="n1" target="n2"><data key="d1">288.5</data></edge>
    ///   </graph>
    /// </graphml>"#;
    /// let format = GraphMl::new(
    ///     |node| Ok(node.get("name").unwrap_or_default().to_owned()),
    ///     |edge| Ok(("leads to".to_owned(), edge.parse("miles")?.unwrap_or_default())),
    /// );
    /// let done = roads.import_graphml(&store, file.as_bytes(), &format.id_prefix("n"))?;
    /// assert_eq!(done.records, 3);
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(roads.vertices().get(&snapshot, &1)?.as_deref(), Some("Oslo"));
    /// assert_eq!(roads.at(&snapshot)?.edge(&1, "leads to", &2)?, Some(288.5));
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`GraphError::BadGraphMl`], also for a directed edge if this graph is undirected, and the
    /// reverse; the errors of [`put_edges`](Graph::put_edges) and of
    /// [`put_many`](keyloom_tables::Table::put_many). Earlier transactions stay committed.
    pub fn import_graphml<N, F>(
        &self,
        store: &impl Store,
        input: impl BufRead,
        format: &GraphMl<N, F>,
    ) -> Result<Progress>
    where
        N: Fn(&GraphMlData<'_>) -> Refusable<V>,
        F: Fn(&GraphMlData<'_>) -> Refusable<(String, E)>,
    {
        let options = RepairOptions::default();
        self.import_graphml_with(store, input, format, &options, |_| ControlFlow::Continue(()))
    }

    /// [`import_graphml`](Graph::import_graphml) with options: the number of nodes and edges in a
    /// transaction, and the position at which to resume. Calls `progress` after each commit and
    /// stops if it breaks. [`Progress::records`] counts nodes and edges. [`Progress::position`] is
    /// the last node or edge that is committed; a resumed import reads the same input, and skips
    /// this element and those before it.
    ///
    /// # Errors
    /// The errors of [`import_graphml`](Graph::import_graphml);
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) for the position of other work,
    /// or after the end of the input.
    pub fn import_graphml_with<N, F>(
        &self,
        store: &impl Store,
        input: impl BufRead,
        format: &GraphMl<N, F>,
        options: &RepairOptions,
        progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress>
    where
        N: Fn(&GraphMlData<'_>) -> Refusable<V>,
        F: Fn(&GraphMlData<'_>) -> Refusable<(String, E)>,
    {
        let (file, is_directed) = (File::new(input), self.is_directed());
        self.import(store, Elements { file, format, is_directed, number: 0 }, options, progress)
    }
}
