//! Plans the changes that a program makes to a store, and does the remaining work.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use keyloom::value::Codec;
use keyloom::{Reader, Result, Store};
use keyloom_kit::{Progress, RecordKey};

use super::attached::Attached;
use super::batches::BATCH;
use super::dry_run::DryRun;
#[cfg(doc)]
use super::error::SchemaError;
use super::owned::owned_by;
use super::state::State;
use super::steps::{Plan, Step};
use super::stored::{Definition, StoredDerived, StoredTable};
use super::{Known, Schema, read_tables};
use crate::derived::Maintained;
use crate::table::Table;

/// Called with the progress of a step; may stop the step.
pub(super) type OnProgress<'p> = &'p mut dyn FnMut(&Progress) -> ControlFlow<()>;

/// The work on the records of a declared table, or of declared derived data.
pub(super) trait Work<S>: Send + Sync {
    /// The name of the derived data and its definition; `None` for a table.
    fn derived(&self) -> Option<(&str, &Definition)>;

    /// # Errors
    /// An error, such as [`SchemaError::Changed`], if a newer program has changed the definition in
    /// the store.
    fn refuse_newer(&self, stored: &StoredTable) -> Result<()>;

    /// Builds the derived data, or migrates the table.
    fn run(&self, store: &S, progress: OnProgress<'_>) -> Result<Progress>;

    /// Updates deferred data.
    fn drain(&self, store: &S, progress: OnProgress<'_>) -> Result<Progress>;
}

impl<S: Store, D: Maintained, C: Codec<D::Value>> Work<S> for Attached<D, C> {
    fn derived(&self) -> Option<(&str, &Definition)> {
        Some((&self.declared.name, &self.declared.definition))
    }

    fn refuse_newer(&self, stored: &StoredTable) -> Result<()> {
        let version = self.declared.definition.version;
        match stored.get(&self.declared.name) {
            Some(one) if one.definition.version > version => {
                self.owned()?.refuse_change(&self.declared, one)
            }
            _ => Ok(()),
        }
    }

    fn run(&self, store: &S, progress: OnProgress<'_>) -> Result<Progress> {
        self.build_with(store, BATCH, progress)
    }

    fn drain(&self, store: &S, progress: OnProgress<'_>) -> Result<Progress> {
        match self.is_deferred() {
            true => self.drain_with(store, BATCH, progress),
            false => Ok(Progress::complete()),
        }
    }
}

impl<S: Store, K: RecordKey, V: 'static, C: Codec<V>> Work<S> for Table<K, V, C> {
    fn derived(&self) -> Option<(&str, &Definition)> {
        None
    }

    fn refuse_newer(&self, stored: &StoredTable) -> Result<()> {
        owned_by(self).map_or(Ok(()), |owned| owned.refuse_other(stored))
    }

    fn run(&self, store: &S, progress: OnProgress<'_>) -> Result<Progress> {
        self.migrate_with(store, BATCH, progress)
    }

    fn drain(&self, _: &S, _: OnProgress<'_>) -> Result<Progress> {
        Ok(Progress::complete())
    }
}

/// The declarations of a program, by table name. The declarations of a table are in the order in
/// which they were made.
pub(super) struct Works<S>(Mutex<BTreeMap<String, Vec<Arc<dyn Work<S>>>>>);

impl<S> Default for Works<S> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<S> Works<S> {
    pub(super) fn add(&self, table: &str, work: impl Work<S> + 'static) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(table.into()).or_default().push(Arc::new(work));
    }

    /// Forgets a dropped table: a later declaration with the same name is another table.
    pub(super) fn forget(&self, table: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(table);
    }

    fn of(&self, table: &str) -> Vec<Arc<dyn Work<S>>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(table).cloned().unwrap_or_default()
    }
}

impl<'s, S: Store> Schema<'s, S> {
    /// Opens the schema `name` to find out what a program would change. Declarations and renames
    /// are compared with the store, as after [`open`](Schema::open), and fail with the same errors.
    /// They are kept in memory: nothing is written. [`plan`](Schema::plan) then returns all steps.
    ///
    /// Pass the dry run to the function that declares the tables of the program, and drop the
    /// handles that this function returns. Handles of new tables cannot read or write, but handles
    /// of existing tables can.
    ///
    /// ```
    /// use keyloom::{Memory, Result, Store};
    /// use keyloom_tables::{Attached, Index, Schema, Table, entry};
    /// struct Shop {
    ///     prices: Table<u32, u32>,
    ///     by_price: Attached<Index<u32, u32, u32>>,
    /// }
    /// impl Shop {
    ///     fn declare(schema: &Schema<'_, impl Store>) -> Result<Self> {
    ///         let prices = schema.table("prices")?;
    ///         let by_price = schema.index(&prices, "by_price", 1, |_, cents| entry(*cents))?;
    ///         Ok(Self { prices, by_price })
    ///     }
    /// }
    /// let store = Memory::new();
    /// # let old = Schema::open(&store, "shop")?.table::<u32, u32>("prices")?;
    /// # store.transact(|txn| old.put_many(txn, (0..1_500).map(|n| (n, n))))?;
    ///
    /// // `shop --plan`
    /// let schema = Schema::dry_run(&store, "shop")?;
    /// Shop::declare(&schema)?;
    /// assert_eq!(
    ///     schema.plan()?.to_string(),
    ///     "add \"by_price\" of \"prices\": index of version 1, format 1, of integer\n\
    ///      build \"by_price\" of \"prices\": index of version 1, format 1, of integer; \
    ///      visits 1500 records in 2 transactions"
    /// );
    ///
    /// // `shop`
    /// let schema = Schema::open(&store, "shop")?;
    /// let shop = Shop::declare(&schema)?;
    /// schema.apply()?;
    /// let snapshot = store.snapshot()?;
    /// assert_eq!(shop.by_price.at(&snapshot)?.count(&snapshot, 7)?, 1);
    /// # let _ = shop.prices;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`open`](Schema::open).
    pub fn dry_run(store: &'s S, name: &str) -> Result<Self> {
        Ok(Self { dry_run: Some(DryRun::new()), ..Self::open(store, name)? })
    }

    /// Returns the changes that the declarations so far make to the store. A [`Plan`] can also be
    /// displayed as text. Call this function after all declarations.
    ///
    /// After [`open`](Schema::open), the declarations have already been written to the store, and
    /// the plan lists only the work for [`apply`](Schema::apply). After
    /// [`dry_run`](Schema::dry_run), the plan lists the declarations and the work.
    ///
    /// Costs one range, and one count for each table with a build or migration to do. The count
    /// reads the keys of the table.
    ///
    /// # Errors
    /// [`SchemaError::Contradiction`] or [`SchemaError::Changed`] if a newer program has raised a
    /// version since the declaration; [`Error::NewerFormat`](keyloom::Error::NewerFormat);
    /// [`SchemaError::Damaged`]; any error of the store.
    pub fn plan(&self) -> Result<Plan> {
        let snapshot = self.store.snapshot()?;
        let before = read_tables(&snapshot, &self.name)?;
        let after = match self.dry_run {
            Some(_) => self.stored()?,
            None => before.clone(),
        };
        let mut plan = Planned::default();
        let known = self.known();
        for (name, table) in &after {
            self.plan_table(&known, &before, name, table, &snapshot, &mut plan)?;
        }
        let Planned { entered, built, migrated, left } = plan;
        Ok(Plan { steps: [entered, built, migrated, left].concat() })
    }

    /// Does the work of the [`plan`](Schema::plan): builds all declared derived data that is not
    /// readable, and then migrates all declared tables with records of earlier versions. Call it
    /// after all declarations, on the value of `Schema` with which they were made.
    ///
    /// Runs concurrently with readers and writers, in bounded transactions. If the call is stopped
    /// or killed, the next call resumes. Concurrent calls, including calls in other processes,
    /// share the work. Derived data and tables that the program does not declare are left as they
    /// are.
    ///
    /// # Errors
    /// See [`apply_with`](Schema::apply_with).
    pub fn apply(&self) -> Result<Progress> {
        self.apply_with(|_, _| ControlFlow::Continue(()))
    }

    /// Like [`apply`](Schema::apply), but calls `progress` with the step and its progress after
    /// each transaction, and stops if `progress` breaks. The result is the sum of all steps. It is
    /// [finished](Progress::finished) if nothing is left to do.
    ///
    /// # Errors
    /// The errors of [`build_with`](Attached::build_with) and
    /// [`migrate_with`](Table::migrate_with): the steps after the failed step are not done;
    /// [`Error::InvalidArgument`](keyloom::Error::InvalidArgument) in a dry run, and if the store
    /// has tables but none was declared with this value.
    pub fn apply_with(
        &self,
        mut progress: impl FnMut(&Step, &Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let store = self.not_dry()?;
        self.refuse_unless_declared()?;
        let mut done = Progress::complete();
        for step in &self.plan()?.steps {
            let on_progress: OnProgress<'_> = &mut |done| progress(step, done);
            done = done.followed_by(&self.do_step(store, step, on_progress)?);
            if !done.finished {
                break;
            }
        }
        Ok(done)
    }

    /// Drops all derived data that the plan lists as undeclared, so that this program can write to
    /// its tables. Programs that declare the data then get [`SchemaError::Gone`]. Tables that this
    /// program does not declare stay; see [`drop_table`](Schema::drop_table).
    ///
    /// ```
    /// use keyloom::{Memory, Store};
    /// use keyloom_tables::{Schema, entry};
    /// let store = Memory::new();
    /// let old = Schema::open(&store, "shop")?;
    /// old.index(&old.table::<u32, u32>("prices")?, "by_price", 1, |_, cents| entry(cents))?;
    ///
    /// // The next program has no use for the index.
    /// let schema = Schema::open(&store, "shop")?;
    /// let prices = schema.table::<u32, u32>("prices")?;
    /// assert!(!schema.plan()?.can_write());
    /// schema.drop_undeclared()?;
    /// store.transact(|txn| prices.put(txn, &1, &250))?;
    /// # Ok::<(), keyloom::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`plan`](Schema::plan) and of [`drop_derived`](Schema::drop_derived).
    pub fn drop_undeclared(&self) -> Result<Progress> {
        self.drop_undeclared_with(|_, _| ControlFlow::Continue(()))
    }

    /// Like [`drop_undeclared`](Schema::drop_undeclared), but calls `progress` with the step and
    /// its progress after each transaction, and stops if `progress` breaks. The next call resumes.
    ///
    /// # Errors
    /// The errors of [`drop_undeclared`](Schema::drop_undeclared).
    pub fn drop_undeclared_with(
        &self,
        mut progress: impl FnMut(&Step, &Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        self.not_dry()?;
        self.refuse_unless_declared()?;
        let mut done = Progress::complete();
        for step in &self.plan()?.steps {
            let Step::UndeclaredDerived { table, name, .. } = step else { continue };
            let on_progress = |done: &Progress| progress(step, done);
            done = done.followed_by(&self.drop_derived_with(table, name, BATCH, on_progress)?);
            if !done.finished {
                break;
            }
        }
        Ok(done)
    }

    /// Refuses work of a value without declarations on a store with tables: the program has
    /// declared its tables with another value, so this value has no work to do.
    fn refuse_unless_declared(&self) -> Result<()> {
        let known = self.known();
        match known.declared.is_empty() && !known.stored.is_empty() {
            false => Ok(()),
            true => Err(keyloom::Error::InvalidArgument {
                what: "the schema",
                value: self.name.to_string(),
                why: "no table was declared with this value of `Schema`, so it has nothing to apply; declare all tables with the same value first",
            }),
        }
    }

    fn do_step(&self, store: &S, step: &Step, progress: OnProgress<'_>) -> Result<Progress> {
        let mut done = Progress::complete();
        match step {
            Step::Build { table, name, .. } => {
                let is_it =
                    |work: &Arc<dyn Work<S>>| work.derived().is_some_and(|(of, _)| of == name);
                if let Some(work) = self.works.of(table).into_iter().find(is_it) {
                    done = work.run(store, progress)?;
                }
            }
            Step::Migrate { table, .. } => done = self.drain_and_migrate(store, table, progress)?,
            _ => {}
        }
        Ok(done)
    }

    /// Drains the queues of a table, and then migrates the table: programs of earlier versions have
    /// queued records of those versions.
    fn drain_and_migrate(
        &self,
        store: &S,
        table: &str,
        progress: OnProgress<'_>,
    ) -> Result<Progress> {
        let works = self.works.of(table);
        let mut done = Progress::complete();
        for work in works.iter().filter(|work| work.derived().is_some()) {
            done = done.followed_by(&work.drain(store, progress)?);
            if !done.finished {
                return Ok(done);
            }
        }
        match works.iter().find(|work| work.derived().is_none()) {
            Some(work) => Ok(done.followed_by(&work.run(store, progress)?)),
            None => Ok(done),
        }
    }

    /// The entries of the schema; in a dry run, with the changes of its declarations.
    pub(super) fn stored(&self) -> Result<BTreeMap<String, StoredTable>> {
        let snapshot = self.store.snapshot()?;
        match &self.dry_run {
            Some(dry) => dry.run(snapshot, self.store.limits(), |txn| read_tables(txn, &self.name)),
            None => read_tables(&snapshot, &self.name),
        }
    }

    fn plan_table(
        &self,
        known: &Known,
        before: &BTreeMap<String, StoredTable>,
        name: &str,
        table: &StoredTable,
        reader: &impl Reader,
        plan: &mut Planned,
    ) -> Result<()> {
        let name = name.to_owned();
        if !known.declared.contains(&name) {
            plan.left.push(Step::UndeclaredTable { table: name });
            return Ok(());
        }
        // Find the old entry by id, since the table may have been renamed. Otherwise find it by
        // name: an empty table that is declared with other types gets another id.
        let renamed = before.iter().find(|(_, old)| old.id == table.id);
        let old = renamed.map(|(_, old)| old).or_else(|| before.get(&name));
        plan.enter_table(&name, table, renamed.map(|(old, _)| &**old), old);
        let works = self.works.of(&name);
        works.iter().try_for_each(|work| work.refuse_newer(table))?;
        let records = once(|| reader.count(table.space().self_and_children()));
        for one in &table.derived {
            let of = |work: &Arc<dyn Work<S>>| {
                let (name, definition) = work.derived()?;
                (name == one.name).then(|| definition.clone())
            };
            let declared = works.iter().find_map(of);
            plan.enter_derived(&name, one, old);
            match declared {
                None => plan.left.push(undeclared(&name, one)),
                Some(definition) if is_whole(one, &definition) => {}
                Some(definition) => {
                    let replaces = Some(&one.definition).filter(|old| !old.covers(&definition));
                    plan.built.push(Step::Build {
                        table: name.clone(),
                        name: one.name.clone(),
                        replaces: replaces.cloned(),
                        definition,
                        records: records()?,
                    });
                }
            }
        }
        if let Some((earlier, version)) = table.definition.earlier_versions() {
            let records = records()?;
            plan.migrated.push(Step::Migrate { table: name, earlier, version, records });
        }
        Ok(())
    }
}

/// The steps of a plan, by their kind.
#[derive(Default)]
struct Planned {
    entered: Vec<Step>,
    built: Vec<Step>,
    migrated: Vec<Step>,
    left: Vec<Step>,
}

impl Planned {
    fn enter_table(
        &mut self,
        name: &str,
        table: &StoredTable,
        old_name: Option<&str>,
        old: Option<&StoredTable>,
    ) {
        let (table_name, declared) = (name.to_owned(), table.definition.clone());
        if let Some(old) = old_name.filter(|old| *old != name) {
            self.entered.push(Step::RenameTable { old: old.into(), table: name.into() });
        }
        match old.map(|old| &old.definition) {
            None => self.entered.push(Step::AddTable { table: table_name, definition: declared }),
            Some(stored) if *stored != declared => {
                let stored = stored.clone();
                self.entered.push(Step::ChangeTable { table: table_name, stored, declared });
            }
            Some(_) => {}
        }
    }

    fn enter_derived(&mut self, table: &str, one: &StoredDerived, old: Option<&StoredTable>) {
        let (table, name) = (table.to_owned(), one.name.clone());
        let old = old.and_then(|old| old.derived.iter().find(|old| old.id == one.id));
        match old {
            None => {
                let definition = one.definition.clone();
                self.entered.push(Step::AddDerived { table, name, definition });
            }
            Some(old) if old.name != name => {
                let old = old.name.clone();
                self.entered.push(Step::RenameDerived { table, old, name });
            }
            Some(_) => {}
        }
    }
}

fn is_whole(one: &StoredDerived, declared: &Definition) -> bool {
    one.state == State::Readable && one.definition.covers(declared)
}

fn undeclared(table: &str, one: &StoredDerived) -> Step {
    let (table, name, definition) = (table.into(), one.name.clone(), one.definition.clone());
    Step::UndeclaredDerived { table, name, definition, state: one.state }
}

/// Computes a number when it is first needed.
fn once(count: impl Fn() -> Result<u64>) -> impl Fn() -> Result<u64> {
    let known = std::cell::Cell::new(None);
    move || {
        if known.get().is_none() {
            known.set(Some(count()?));
        }
        Ok(known.get().unwrap_or_default())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::entry;
    use keyloom::Memory;

    /// The work of the dropped table is forgotten; the plan has the work of the new table.
    #[test]
    fn a_table_that_is_dropped_and_declared_again_is_applied() {
        let store = Memory::new();
        let schema = Schema::open(&store, "shop").unwrap();
        for _ in 0..3 {
            let prices = schema.table::<u32, u32>("prices").unwrap();
            store.transact(|txn| prices.put_many(txn, [(1, 250), (2, 120)])).unwrap();
            let index = |_: &u32, cents: &u32| entry(*cents);
            let by_price = schema.index(&prices, "by_price", 1, index).unwrap();
            assert!(!schema.plan().unwrap().is_done());
            assert!(schema.apply().unwrap().finished);
            let snapshot = store.snapshot().unwrap();
            assert_eq!(by_price.at(&snapshot).unwrap().count(&snapshot, 250).unwrap(), 1);
            assert!(schema.plan().unwrap().is_done());
            drop(snapshot);
            schema.drop_table("prices").unwrap();
        }
    }
}
