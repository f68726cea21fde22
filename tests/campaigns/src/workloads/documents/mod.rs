//! Documents with nested elements and children, each searched through a separate index.

mod model;

use std::collections::BTreeMap;

use fastrand::Rng;
use keyloom::{DynWriter, Memory, Result, Subspace};
use keyloom_patterns::Schema;
use keyloom_patterns::documents::collapse::Collapse;
use keyloom_patterns::documents::parent_child::{Children, Link, OnParentDelete};
use keyloom_patterns::documents::{Documents as Store, Matches, Nested, PARENT, ScoreMode};
use keyloom_patterns::text::{Analyzer, Query};
use serde::{Deserialize, Serialize};

use crate::Workload;
use model::Model;

/// A nested element.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    author: String,
    stars: i64,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Project {
    title: String,
    notes: Vec<Note>,
}

/// The project and the number of a task.
type TaskKey = (u8, u8);

/// Projects with notes and tasks.
#[derive(Clone)]
pub struct Documents {
    projects: Store<u8, Project>,
    notes: Nested<u8, Project, Note>,
    tasks: Children<u8, Project, TaskKey, String>,
}

/// An operation of the patterns. If its target does not exist, it does nothing.
#[derive(Clone, Debug)]
pub enum Change {
    PutProject(u8, Project),
    /// Deletes a project with its notes and tasks.
    DeleteProject(u8),
    /// Changes the key of a project with its notes and tasks, unless the new key exists.
    RenameProject(u8, u8),
    PushNote(u8, Note),
    ReplaceNote(u8, usize, Note),
    RemoveNote(u8, usize),
    PutTask(TaskKey, String),
    DeleteTask(TaskKey),
    /// Moves a task to another project, unless that project has a task with this number.
    MoveTask(TaskKey, u8),
}

/// The results of the searches, in key order.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// The projects with a note whose author gave more than two stars.
    by_note: Vec<u8>,
    /// The projects with at least two tasks that contain a word.
    by_two_tasks: Vec<u8>,
    /// The tasks of the projects whose titles contain a word.
    by_project: Vec<TaskKey>,
    /// The number of tasks that contain the word, and the number of their projects.
    tasks: u64,
    groups: u64,
}

/// So few projects that each has many tasks, and that keys often exist already.
const PROJECTS: u8 = 6;
const TASKS: u8 = 8;
const WORDS: [&str; 3] = ["ada", "bob", "eve"];
/// The word of the searches.
const WORD: &str = "ada";
/// A project that no operation uses.
const UNUSED: u8 = 200;

impl Documents {
    pub fn new(schema: &Schema<'_, Memory>) -> Result<Self> {
        let projects =
            Store::declare(schema, "projects", 1, |index| {
                index.field("title", Analyzer::simple(), |_, project: &Project, add| {
                    add(&project.title)
                })
            })?;
        let notes = Nested::declare(
            schema,
            &projects,
            "notes",
            1,
            |project: &Project| &project.notes,
            |project| &mut project.notes,
            |index| {
                index
                    .field("author", Analyzer::names(), |_, note: &Note, add| add(&note.author))
                    .integers("stars", |_, note| Some(note.stars))
            },
        )?;
        let (link, rule) = (Link::by_key(), OnParentDelete::Delete);
        let tasks = Children::declare(schema, &projects, "tasks", 1, link, rule, |index| {
            index.field("text", Analyzer::simple(), |_, text: &String, add| add(text))
        })?;
        Ok(Self { projects, notes, tasks })
    }

    fn nth_note(&self, txn: &DynWriter<'_>, project: u8, nth: usize) -> Result<Option<u32>> {
        let all = self.notes.elements(txn, &project)?;
        Ok(all.get(nth % all.len().max(1)).map(|(ordinal, _)| *ordinal))
    }

    fn has_project(&self, txn: &DynWriter<'_>, key: u8) -> Result<bool> {
        Ok(self.projects.table().get(txn, &key)?.is_some())
    }

    fn has_task(&self, txn: &DynWriter<'_>, key: &TaskKey) -> Result<bool> {
        Ok(self.tasks.documents().table().get(txn, key)?.is_some())
    }

    fn answers(&self, txn: &DynWriter<'_>) -> Result<Answers> {
        let notes = self.notes.at(txn)?;
        let good = notes.records().integers_of("stars")?.gt(2);
        let good = notes.search(Query::term("author", WORD)).filter(good);
        let good = Matches::of(notes, &good, txn)?;
        let by_note = self.notes.to_parents(txn, &good, ScoreMode::None)?;
        let with_word = self.tasks.matches(txn, Query::term("text", WORD))?;
        let by_tasks = self.tasks.to_parents_with(txn, &with_word, ScoreMode::Sum, 2..)?;
        let projects = self.projects.text().at(txn)?;
        let titled = projects.search(Query::term("title", WORD));
        let titled = Matches::of(projects, &titled, txn)?;
        let search = self.tasks.at(txn)?.search(Query::term("text", WORD));
        let counts = Collapse::new(search, PARENT).counts(txn)?;
        Ok(Answers {
            by_note: sorted(by_note.keys(txn)?),
            by_two_tasks: sorted(by_tasks.keys(txn)?),
            by_project: sorted(self.tasks.to_children(txn, &titled)?.keys(txn)?),
            tasks: counts.records,
            groups: counts.groups,
        })
    }
}

/// Sorts keys, because ids are not in key order.
fn sorted<K: Ord>(mut keys: Vec<K>) -> Vec<K> {
    keys.sort_unstable();
    keys
}

fn word(rng: &mut Rng) -> String {
    rng.choice(WORDS).unwrap_or_default().to_owned()
}

fn text(rng: &mut Rng) -> String {
    (0..rng.usize(..4)).map(|_| word(rng)).collect::<Vec<_>>().join(" ")
}

fn note(rng: &mut Rng) -> Note {
    Note { author: word(rng), stars: rng.i64(1..=5) }
}

impl Workload for Documents {
    type Operation = Change;
    type Model = Model;

    fn name(&self) -> &'static str {
        "documents"
    }

    fn records(&self) -> Vec<Subspace> {
        let (notes, tasks) = (self.notes.documents().table(), self.tasks.documents().table());
        [self.projects.table().space(), notes.space(), tasks.space()].map(Subspace::clone).to_vec()
    }

    fn derived(&self) -> Vec<Subspace> {
        let (notes, tasks) = (self.notes.documents().text(), self.tasks.documents().text());
        vec![self.projects.text().space(), notes.space(), tasks.space()]
    }

    fn operation(&self, rng: &mut Rng) -> Change {
        let (project, nth) = (rng.u8(..PROJECTS), rng.usize(..4));
        let task = (project, rng.u8(..TASKS));
        match rng.u8(..20) {
            0..4 => {
                let notes = (0..rng.usize(..4)).map(|_| note(rng)).collect();
                Change::PutProject(project, Project { title: text(rng), notes })
            }
            4 => Change::DeleteProject(project),
            5 => Change::RenameProject(project, rng.u8(..PROJECTS)),
            6..8 => Change::PushNote(project, note(rng)),
            8..10 => Change::ReplaceNote(project, nth, note(rng)),
            10 => Change::RemoveNote(project, nth),
            11..16 => Change::PutTask(task, text(rng)),
            16 => Change::DeleteTask(task),
            _ => Change::MoveTask(task, rng.u8(..PROJECTS)),
        }
    }

    fn perform(&self, operation: &Change, txn: &mut DynWriter<'_>) -> Result<()> {
        match operation {
            Change::PutProject(key, project) => self.projects.put(txn, key, project),
            Change::DeleteProject(key) => self.projects.delete(txn, key).map(drop),
            Change::RenameProject(from, to) => {
                match self.has_project(txn, *from)? && !self.has_project(txn, *to)? {
                    true => self.projects.rename(txn, from, to),
                    false => Ok(()),
                }
            }
            Change::PushNote(project, note) => match self.has_project(txn, *project)? {
                true => self.notes.push(txn, project, note).map(drop),
                false => Ok(()),
            },
            Change::ReplaceNote(project, nth, note) => match self.nth_note(txn, *project, *nth)? {
                Some(ordinal) => self.notes.replace(txn, project, ordinal, note),
                None => Ok(()),
            },
            Change::RemoveNote(project, nth) => match self.nth_note(txn, *project, *nth)? {
                Some(ordinal) => self.notes.remove(txn, project, ordinal).map(drop),
                None => Ok(()),
            },
            Change::PutTask(key, text) => match self.has_project(txn, key.0)? {
                true => self.tasks.put(txn, key, text),
                false => Ok(()),
            },
            Change::DeleteTask(key) => self.tasks.delete(txn, key).map(drop),
            Change::MoveTask(key, project) => {
                let is_free = !self.has_task(txn, &(*project, key.1))?;
                match is_free && self.has_task(txn, key)? && self.has_project(txn, *project)? {
                    true => self.tasks.move_to(txn, key, project).map(drop),
                    false => Ok(()),
                }
            }
        }
    }

    fn imitate(&self, operation: &Change, model: &mut Model) {
        model.imitate(operation);
    }

    fn check(&self, txn: &DynWriter<'_>) -> Result<Vec<String>> {
        let mut found = self.projects.text().check(txn)?;
        found.extend(self.notes.check(txn)?);
        found.extend(self.tasks.check(txn)?);
        Ok(super::reported(&found))
    }

    fn judge(&self, txn: &DynWriter<'_>, model: &Model) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        for (key, wanted) in model.documents() {
            let found = self.projects.get(txn, &key)?;
            super::compare(&mut wrong, "a document", found, Some(wanted));
        }
        let (notes, tasks) = (self.notes.documents(), self.tasks.documents());
        let all = self.projects.table().range(txn, ..)?;
        let all: BTreeMap<u8, Project> = all.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the projects", &all, &model.projects.records);
        let all = notes.table().range(txn, ..)?;
        let all: BTreeMap<(u8, u32), Note> = all.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the notes", &all, &model.notes.records);
        let all = tasks.table().range(txn, ..)?;
        let all: BTreeMap<TaskKey, String> = all.collect::<Result<_>>()?;
        super::compare(&mut wrong, "the tasks", &all, &model.tasks.records);
        let projects = self.projects.text().at(txn)?;
        model.projects.judge_ids(&mut wrong, projects.records(), txn)?;
        model.notes.judge_ids(&mut wrong, self.notes.at(txn)?.records(), txn)?;
        model.tasks.judge_ids(&mut wrong, self.tasks.at(txn)?.records(), txn)?;
        super::compare(&mut wrong, "what is found", self.answers(txn)?, model.answers());
        Ok(wrong)
    }

    fn rebuild(&self, model: &Model, txn: &mut DynWriter<'_>) -> Result<()> {
        let small = |id: u64| u8::try_from(id).unwrap_or(u8::MAX);
        let project = |id| UNUSED.saturating_add(small(id));
        let empty = Project { title: String::new(), notes: Vec::new() };
        model.projects.rebuild(self.projects.table(), txn, project, &empty)?;
        let note = |id: u64| (UNUSED, u32::try_from(id).unwrap_or(u32::MAX));
        let empty = Note { author: String::new(), stars: 0 };
        model.notes.rebuild(self.notes.documents().table(), txn, note, &empty)?;
        let task = |id| (UNUSED, small(id));
        model.tasks.rebuild(self.tasks.documents().table(), txn, task, &String::new())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use keyloom::Store as _;

    use super::*;
    use crate::Mix;

    fn history() -> (Memory, Documents, Model) {
        let (store, mut model) = (Memory::new(), Model::default());
        let documents = Documents::new(&Schema::open(&store, "test").unwrap()).unwrap();
        for seed in Mix::history(1, 200) {
            let change = Workload::operation(&documents, &mut Rng::with_seed(seed));
            store.transact(|txn| documents.perform(&change, &mut DynWriter::new(txn))).unwrap();
            model.imitate(&change);
        }
        (store, documents, model)
    }

    /// Otherwise no campaign would test the moves and deletions of the data of a project.
    #[test]
    fn histories_move_tasks_and_delete_projects_that_have_some() {
        let mut model = Model::default();
        let (mut moved, mut renamed, mut deleted) = (0, 0, 0);
        let (_, documents, _) = history();
        for seed in Mix::history(1, 400) {
            let change = Workload::operation(&documents, &mut Rng::with_seed(seed));
            let before = model.clone();
            model.imitate(&change);
            let is_changed = before.tasks.records != model.tasks.records
                && before.notes.records != model.notes.records;
            match change {
                Change::MoveTask(key, _) => {
                    moved += u32::from(
                        before.tasks.records.contains_key(&key)
                            && !model.tasks.records.contains_key(&key),
                    );
                }
                Change::RenameProject(..) => renamed += u32::from(is_changed),
                Change::DeleteProject(_) => deleted += u32::from(is_changed),
                _ => {}
            }
        }
        assert!(moved > 3 && renamed > 0 && deleted > 0, "{moved}, {renamed}, {deleted}");
    }

    #[test]
    fn writes_that_leave_out_a_part_are_found_by_the_check() {
        let (store, documents, _) = history();
        // The findings of the check after a write that omits a part.
        let found = |write: &dyn Fn(&mut <Memory as keyloom::Store>::Transaction<'_>)| {
            let mut txn = store.begin().unwrap();
            write(&mut txn);
            documents.check(&DynWriter::new(&mut txn)).unwrap()
        };
        assert_eq!(found(&|_| ()), [""; 0]);
        let with_a_note = |txn: &<Memory as keyloom::Store>::Transaction<'_>| {
            let notes = documents.notes.documents().table();
            let ((project, _), _) = notes.range(txn, ..).unwrap().next().unwrap().unwrap();
            project
        };
        let project_alone = found(&|txn| {
            let project = with_a_note(txn);
            documents.projects.table().delete(txn, &project).unwrap();
        });
        assert_ne!(project_alone, [""; 0]);
        let task_alone = found(&|txn| {
            let tasks = documents.tasks.documents().table();
            tasks.put(txn, &(UNUSED, 1), &WORD.to_owned()).unwrap();
        });
        assert_ne!(task_alone, [""; 0]);
    }
}
