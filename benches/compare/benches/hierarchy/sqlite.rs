//! SQLite: an adjacency table whose covering index leads from a parent to its children, and a table
//! of paths.

use std::path::Path;

use keyloom_compare::peers;
use keyloom_patterns::trees::{NestedNode, NodeId};
use rusqlite::{Connection, Statement};

const TABLES: &str = "
    CREATE TABLE nodes (id INTEGER PRIMARY KEY, parent INT, position INT NOT NULL, name TEXT NOT NULL, value INT NOT NULL);
    CREATE TABLE paths (id INTEGER PRIMARY KEY, path TEXT NOT NULL)";
/// One covering index returns the children of a parent, in order, with all requested columns.
const INDEXES: &str = "
    CREATE INDEX by_parent ON nodes (parent, position, name);
    CREATE INDEX by_path ON paths (path);
    ANALYZE";

pub const DESCENDANTS: &str = "
    WITH RECURSIVE below(id, depth, name) AS (
      SELECT id, 0, name FROM nodes WHERE id = ?1
      UNION ALL
      SELECT nodes.id, depth + 1, nodes.name FROM below JOIN nodes ON nodes.parent = below.id)
    SELECT id, depth, name FROM below";
/// The same in tree order, which is the native order of keyloom's walks.
pub const DESCENDANTS_IN_ORDER: &str = "
    WITH RECURSIVE below(id, depth, position, name) AS (
      SELECT id, 0, position, name FROM nodes WHERE id = ?1
      UNION ALL
      SELECT nodes.id, depth + 1, nodes.position, nodes.name FROM below JOIN nodes ON nodes.parent = below.id
      ORDER BY 2 DESC, 3)
    SELECT id, depth, name FROM below";
pub const ANCESTORS: &str = "
    WITH RECURSIVE above(id, parent, name) AS (
      SELECT p.id, p.parent, p.name FROM nodes c JOIN nodes p ON p.id = c.parent WHERE c.id = ?1
      UNION ALL
      SELECT nodes.id, nodes.parent, nodes.name FROM above JOIN nodes ON nodes.id = above.parent)
    SELECT id, name FROM above";
/// Inserts as the last child, after the largest position.
pub const INSERT: &str = "
    INSERT INTO nodes (id, parent, position, name, value)
    VALUES (?1, ?2, (SELECT coalesce(max(position), 0) + 1 FROM nodes WHERE parent = ?2), ?3, ?4)";
pub const MOVE: &str = "
    UPDATE nodes SET parent = ?2,
      position = (SELECT coalesce(max(position), 0) + 1 FROM nodes WHERE parent = ?2)
    WHERE id = ?1";
/// A path and all paths that continue it; '0' is the character after '/'.
pub const MOVE_PATH: &str = "
    UPDATE paths SET path = ?2 || substr(path, length(?1) + 1)
    WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')";

pub fn open(path: &Path, forest: &[NestedNode<u64>]) -> Connection {
    let mut sqlite = peers::sqlite(path, "OFF");
    sqlite.pragma_update(None, "temp_store", "MEMORY").unwrap();
    sqlite.execute_batch(TABLES).unwrap();
    let transaction = sqlite.transaction().unwrap();
    {
        let mut node =
            transaction.prepare("INSERT INTO nodes VALUES (?1, ?2, ?3, ?4, ?5)").unwrap();
        let mut at = transaction.prepare("INSERT INTO paths VALUES (?1, ?2)").unwrap();
        for country in forest {
            let mut above: Vec<(NodeId, String)> = Vec::new();
            for (position, (depth, each)) in country.preorder().enumerate() {
                above.truncate(depth as usize);
                let (parent, path) = match above.last() {
                    Some((parent, path)) => (Some(*parent as i64), format!("{path}/{}", each.id)),
                    None => (None, each.id.to_string()),
                };
                let (id, value) = (each.id as i64, each.value as i64);
                node.execute((id, parent, position as i64, &each.name, value)).unwrap();
                at.execute((id, &path)).unwrap();
                above.push((each.id, path));
            }
        }
    }
    transaction.commit().unwrap();
    sqlite.execute_batch(INDEXES).unwrap();
    sqlite.pragma_update(None, "wal_checkpoint", "TRUNCATE").unwrap_or_default();
    sqlite
}

/// Number of rows of a result; reads the id, depth and name of each.
pub fn descendants(query: &mut Statement<'_>, node: NodeId) -> (usize, u64) {
    let mut rows = query.query([node as i64]).unwrap();
    let mut found = (0, 0_u64);
    while let Some(row) = rows.next().unwrap() {
        let id = row.get::<_, i64>(0).unwrap() as u64;
        let depth: u32 = row.get(1).unwrap();
        let name = row.get_ref(2).unwrap().as_str().unwrap();
        found = (found.0 + 1, found.1.wrapping_add(id ^ u64::from(depth) ^ name.len() as u64));
    }
    found
}

pub fn ancestors(query: &mut Statement<'_>, node: NodeId) -> (usize, u64) {
    let mut rows = query.query([node as i64]).unwrap();
    let mut found = (0, 0_u64);
    while let Some(row) = rows.next().unwrap() {
        let id = row.get::<_, i64>(0).unwrap() as u64;
        let name = row.get_ref(1).unwrap().as_str().unwrap();
        found = (found.0 + 1, found.1.wrapping_add(id ^ name.len() as u64));
    }
    found
}
