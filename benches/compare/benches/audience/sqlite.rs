//! SQLite with everything that can be precomputed for the query. Each user has one row per site and
//! one per category. The tables are `WITHOUT ROWID`, with covering indexes in the opposite
//! direction.

use std::path::Path;

use keyloom_compare::peers;
use rusqlite::{Connection, Statement};

use crate::clicks::{Audience, Clicks};

const TABLES: &str = "
    CREATE TABLE users (id INTEGER PRIMARY KEY, city INT NOT NULL, cents INT NOT NULL);
    CREATE TABLE user_sites (user INT, site INT, PRIMARY KEY (user, site)) WITHOUT ROWID;
    CREATE TABLE user_categories (user INT, category INT, PRIMARY KEY (user, category)) WITHOUT ROWID";
const INDEXES: &str = "
    CREATE INDEX users_by_city ON users (city);
    CREATE INDEX users_by_site ON user_sites (site, user);
    CREATE INDEX users_by_category ON user_categories (category, user);
    ANALYZE";

/// The queries; the fastest one counts.
pub const WAYS: [(&str, &str); 4] = [
    (
        "joins",
        "SELECT c.category, count(*) FROM user_sites s JOIN users u ON u.id = s.user
         JOIN user_categories c ON c.user = s.user
         WHERE s.site = ?1 AND u.city = ?2
         AND NOT EXISTS (SELECT 1 FROM user_categories x WHERE x.user = s.user AND x.category = ?3)
         GROUP BY c.category ORDER BY c.category",
    ),
    (
        "IN",
        "SELECT category, count(*) FROM user_categories WHERE user IN
           (SELECT user FROM user_sites WHERE site = ?1 AND user IN (SELECT id FROM users WHERE city = ?2)
            AND user NOT IN (SELECT user FROM user_categories WHERE category = ?3))
         GROUP BY category ORDER BY category",
    ),
    (
        "set operations",
        "SELECT category, count(*) FROM user_categories WHERE user IN
           (SELECT user FROM user_sites WHERE site = ?1 INTERSECT SELECT id FROM users WHERE city = ?2
            EXCEPT SELECT user FROM user_categories WHERE category = ?3)
         GROUP BY category ORDER BY category",
    ),
    (
        "audience first",
        "WITH audience AS MATERIALIZED
           (SELECT u.id AS user FROM users u WHERE u.city = ?2
            AND EXISTS (SELECT 1 FROM user_sites s WHERE s.user = u.id AND s.site = ?1)
            AND NOT EXISTS (SELECT 1 FROM user_categories x WHERE x.user = u.id AND x.category = ?3))
         SELECT c.category, count(*) FROM audience a CROSS JOIN user_categories c ON c.user = a.user
         GROUP BY c.category ORDER BY c.category",
    ),
];

pub fn open(path: &Path, clicks: &Clicks) -> Connection {
    let mut sqlite = peers::sqlite(path, "OFF");
    sqlite.pragma_update(None, "temp_store", "MEMORY").unwrap();
    sqlite.execute_batch(TABLES).unwrap();
    let transaction = sqlite.transaction().unwrap();
    {
        let prepare = |sql| transaction.prepare(sql).unwrap();
        let mut user_city = prepare("INSERT INTO users VALUES (?1, ?2, ?3)");
        let mut user_site = prepare("INSERT INTO user_sites VALUES (?1, ?2)");
        let mut user_category = prepare("INSERT INTO user_categories VALUES (?1, ?2)");
        let put = |insert: &mut Statement<'_>, user: usize, value: u32| {
            assert_eq!(insert.execute((user as i64, value)).unwrap(), 1);
        };
        for user in clicks.users() {
            let of_user = (user as i64, clicks.cities[user], clicks.cents[user]);
            assert_eq!(user_city.execute(of_user).unwrap(), 1);
            clicks.sites.of(user).iter().for_each(|site| put(&mut user_site, user, *site));
            let categories = clicks.categories.of(user).iter();
            categories.for_each(|category| put(&mut user_category, user, *category));
        }
    }
    transaction.commit().unwrap();
    sqlite.execute_batch(INDEXES).unwrap();
    sqlite.pragma_update(None, "wal_checkpoint", "TRUNCATE").unwrap_or_default();
    sqlite
}

/// The parameters of an audience.
pub fn bound(audience: &Audience) -> (u32, u32, u32) {
    (audience.site, audience.city, audience.not_category)
}

pub fn report(query: &mut Statement<'_>, audience: &Audience) -> Vec<(u32, u64)> {
    let rows =
        query.query_map(bound(audience), |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// The query plan of SQLite.
pub fn plan(sqlite: &Connection, sql: &str, audience: &Audience) -> Vec<String> {
    let mut explain = sqlite.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let rows = explain.query_map(bound(audience), |row| row.get(3)).unwrap();
    rows.map(Result::unwrap).collect()
}
