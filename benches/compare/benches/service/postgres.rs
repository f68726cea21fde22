//! PostgreSQL: a pool of 16 connections.

use keyloom_service::desk::{Opened, PAGE, Status, Ticket};
use sqlx::postgres::{PgPool, PgPoolOptions, PgRow};
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use crate::peer::{Bounds, Peer};

const TABLES: [&str; 8] = [
    "DROP TABLE IF EXISTS service_tickets",
    "DROP TABLE IF EXISTS service_mails",
    "CREATE TABLE service_tickets (
        id bytea PRIMARY KEY, customer bigint NOT NULL, status int NOT NULL, opened bigint NOT NULL,
        title text NOT NULL, text text NOT NULL, latitude float8 NOT NULL, longitude float8 NOT NULL,
        words tsvector GENERATED ALWAYS AS (to_tsvector('english', title || ' ' || text)) STORED)",
    "CREATE INDEX ON service_tickets (customer, opened DESC, id)",
    "CREATE INDEX ON service_tickets USING gin (words)",
    "CREATE INDEX ON service_tickets USING gist (point(longitude, latitude))",
    "CREATE TABLE service_mails (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer bigint NOT NULL, ticket bytea NOT NULL)",
    "ANALYZE",
];
const COLUMNS: &str = "id, customer, status, opened, title, text, latitude, longitude";

#[derive(Clone)]
pub struct Postgres {
    pool: PgPool,
}

impl Postgres {
    pub async fn open(url: &str) -> sqlx::Result<Self> {
        let pool = PgPoolOptions::new().max_connections(16).connect(url).await?;
        for table in TABLES {
            sqlx::query(table).execute(&pool).await?;
        }
        Ok(Self { pool })
    }
}

fn select(rest: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("SELECT {COLUMNS} FROM service_tickets WHERE {rest}"))
}

fn ticket(row: PgRow) -> sqlx::Result<Ticket> {
    let status = if row.try_get::<i32, _>(2)? == 0 { Status::Open } else { Status::Closed };
    Ok(Ticket {
        id: Uuid::from_slice(row.try_get(0)?).map_err(|error| sqlx::Error::Decode(error.into()))?,
        customer: row.try_get::<i64, _>(1)? as u32,
        status,
        opened: row.try_get::<i64, _>(3)? as u64,
        title: row.try_get(4)?,
        text: row.try_get(5)?,
        latitude: row.try_get(6)?,
        longitude: row.try_get(7)?,
    })
}

fn tickets(rows: Vec<PgRow>) -> sqlx::Result<Vec<Ticket>> {
    rows.into_iter().map(ticket).collect()
}

impl Peer for Postgres {
    type Error = sqlx::Error;

    async fn open_ticket(&self, new: Ticket) -> sqlx::Result<Opened> {
        let mut txn = self.pool.begin().await?;
        let id = new.id.into_bytes();
        let inserted = sqlx::query(
            "INSERT INTO service_tickets (id, customer, status, opened, title, text, latitude, longitude)
             VALUES ($1, $2, 0, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
        )
        .bind(&id[..])
        .bind(i64::from(new.customer))
        .bind(new.opened as i64)
        .bind(&new.title)
        .bind(&new.text)
        .bind(new.latitude)
        .bind(new.longitude)
        .execute(&mut *txn)
        .await?;
        if inserted.rows_affected() == 0 {
            let stored = sqlx::query(select("id = $1")).bind(&id[..]).fetch_one(&mut *txn).await?;
            let stored = ticket(stored)?;
            let is_same = stored == Ticket { opened: stored.opened, status: stored.status, ..new };
            return Ok(if is_same { Opened::Repeated(stored) } else { Opened::Taken });
        }
        sqlx::query("INSERT INTO service_mails (customer, ticket) VALUES ($1, $2)")
            .bind(i64::from(new.customer))
            .bind(&id[..])
            .execute(&mut *txn)
            .await?;
        txn.commit().await?;
        Ok(Opened::New(new))
    }

    async fn close_ticket(&self, id: Uuid) -> sqlx::Result<bool> {
        let close = sqlx::query("UPDATE service_tickets SET status = 1 WHERE id = $1");
        let closed = close.bind(&id.as_bytes()[..]).execute(&self.pool).await?;
        Ok(closed.rows_affected() > 0)
    }

    async fn ticket(&self, id: Uuid) -> sqlx::Result<Option<Ticket>> {
        let query = sqlx::query(select("id = $1")).bind(&id.as_bytes()[..]);
        query.fetch_optional(&self.pool).await?.map(ticket).transpose()
    }

    async fn of_customer(&self, customer: u32) -> sqlx::Result<Vec<Ticket>> {
        let query = sqlx::query(select("customer = $1 ORDER BY opened DESC, id LIMIT $2"));
        let query = query.bind(i64::from(customer)).bind(PAGE as i64);
        tickets(query.fetch_all(&self.pool).await?)
    }

    async fn search(&self, words: String) -> sqlx::Result<Vec<Ticket>> {
        let query = sqlx::query(select(
            "words @@ plainto_tsquery('english', $1)
             ORDER BY ts_rank(words, plainto_tsquery('english', $1)) DESC LIMIT $2",
        ));
        tickets(query.bind(words).bind(PAGE as i64).fetch_all(&self.pool).await?)
    }

    async fn within(&self, bounds: Bounds) -> sqlx::Result<Vec<Ticket>> {
        let Bounds { latitudes: [south, north], longitudes: [west, east] } = bounds;
        let query =
            sqlx::query(select("point(longitude, latitude) <@ box(point($1, $2), point($3, $4))"));
        let query = query.bind(west).bind(south).bind(east).bind(north);
        tickets(query.fetch_all(&self.pool).await?)
    }
}
