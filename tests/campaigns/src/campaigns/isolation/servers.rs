//! Stores with a server, if the environment contains its address.

use anyhow::Result;
#[cfg(feature = "postgres")]
use keyloom_list_append::{Plan, Report, try_campaign};

use super::Target;

/// One store for each available server, given by `tests/servers/with.sh` and `FDB_CLUSTER_FILE`.
pub fn on_servers() -> Result<Vec<Box<dyn Target>>> {
    let name = format!("keyloom_campaign_{}", std::process::id());
    let mut targets: Vec<Box<dyn Target>> = Vec::new();
    #[cfg(feature = "postgres")]
    if let Ok(address) = std::env::var("KEYLOOM_POSTGRES") {
        targets.push(Box::new(OnPostgres(
            keyloom_postgres::Postgres::options().table(&name).open(&address)?,
        )));
    }
    #[cfg(feature = "etcd")]
    if let Ok(address) = std::env::var("KEYLOOM_ETCD") {
        let members = address.rsplit_once('/').map_or(&*address, |(members, _)| members);
        let store = keyloom_etcd::Etcd::open(&format!("{members}/{name}"))?;
        targets.push(Box::new(super::OnThreads::new("etcd", store)));
    }
    #[cfg(feature = "foundationdb")]
    if let Ok(file) = std::env::var("FDB_CLUSTER_FILE") {
        let store = keyloom_foundationdb::FoundationDb::open(&format!("fdb:{file}?name={name}"))?;
        targets.push(Box::new(super::OnThreads::new("FoundationDB", store)));
    }
    Ok(targets)
}

#[cfg(feature = "postgres")]
struct OnPostgres(keyloom_postgres::Postgres);

#[cfg(feature = "postgres")]
impl Target for OnPostgres {
    fn name(&self) -> &str {
        "PostgreSQL"
    }

    fn round(&self, plan: &Plan) -> Result<Report> {
        // Snapshots are REPEATABLE READ: see the documentation of the store.
        let plan = Plan { snapshots_in_commit_order: true, ..plan.clone() };
        Ok(try_campaign(&self.0, &plan)?)
    }

    /// PostgreSQL itself may fail to detect a conflict of a long transaction:
    /// `tests/on_servers/tests/postgres/forgotten_conflict.sh`.
    fn is_known(&self, report: &Report) -> bool {
        report.is_of_forgotten_conflicts()
    }
}
