//! The expected data: the records of three tables, and query results from loops over them.

use super::super::numbered::Numbered;
use super::{Answers, Change, Note, Project, TaskKey, WORD};

/// The records of projects, of their notes by ordinal, and of their tasks.
#[derive(Clone, Default)]
pub struct Model {
    pub projects: Numbered<u8, Project>,
    pub notes: Numbered<(u8, u32), Note>,
    pub tasks: Numbered<TaskKey, String>,
}

impl Model {
    pub fn imitate(&mut self, change: &Change) {
        match change {
            Change::PutProject(key, project) => self.put(*key, project),
            Change::DeleteProject(key) => self.delete(*key),
            Change::RenameProject(from, to) => self.rename(*from, *to),
            Change::PushNote(project, note) => self.push(*project, note),
            Change::ReplaceNote(project, nth, note) => {
                let key = self.nth_note(*project, *nth);
                key.into_iter().for_each(|key| self.notes.put(key, note.clone()));
            }
            Change::RemoveNote(project, nth) => {
                let key = self.nth_note(*project, *nth);
                key.into_iter().for_each(|key| drop(self.notes.delete(&key)));
            }
            Change::PutTask(key, text) => {
                if self.projects.records.contains_key(&key.0) {
                    self.tasks.put(*key, text.clone());
                }
            }
            Change::DeleteTask(key) => drop(self.tasks.delete(key)),
            Change::MoveTask(key, project) => self.move_task(*key, *project),
        }
    }

    fn notes_of(&self, project: u8) -> Vec<(u32, Note)> {
        let all = self.notes.records.range((project, 0)..=(project, u32::MAX));
        all.map(|((_, ordinal), note)| (*ordinal, note.clone())).collect()
    }

    fn tasks_of(&self, project: u8) -> Vec<TaskKey> {
        self.tasks.records.range((project, 0)..=(project, u8::MAX)).map(|(key, _)| *key).collect()
    }

    fn nth_note(&self, project: u8, nth: usize) -> Option<(u8, u32)> {
        let all = self.notes_of(project);
        all.get(nth % all.len().max(1)).map(|(ordinal, _)| (project, *ordinal))
    }

    fn put(&mut self, key: u8, project: &Project) {
        self.projects.put(key, Project { notes: Vec::new(), ..project.clone() });
        let old = self.notes_of(key);
        let ordinals = ordinals(&old, &project.notes);
        for (ordinal, _) in old.iter().filter(|(ordinal, _)| !ordinals.contains(ordinal)) {
            self.notes.delete(&(key, *ordinal));
        }
        for (ordinal, note) in ordinals.into_iter().zip(&project.notes) {
            self.notes.put((key, ordinal), note.clone());
        }
    }

    fn push(&mut self, project: u8, note: &Note) {
        if self.projects.records.contains_key(&project) {
            let next = self.notes_of(project).last().map_or(0, |(last, _)| last + 1);
            self.notes.put((project, next), note.clone());
        }
    }

    fn delete(&mut self, key: u8) {
        self.projects.delete(&key);
        self.notes_of(key)
            .iter()
            .for_each(|(ordinal, _)| drop(self.notes.delete(&(key, *ordinal))));
        self.tasks_of(key).iter().for_each(|task| drop(self.tasks.delete(task)));
    }

    /// Both keys have a record for a moment, so the record gets another id.
    fn rename(&mut self, from: u8, to: u8) {
        let projects = &self.projects.records;
        let Some(project) = projects.get(&from).cloned() else { return };
        if projects.contains_key(&to) {
            return;
        }
        self.projects.put(to, project);
        self.projects.delete(&from);
        for (ordinal, note) in self.notes_of(from) {
            self.notes.put((to, ordinal), note);
            self.notes.delete(&(from, ordinal));
        }
        let mut tasks = self.tasks_of(from);
        tasks.sort_by_key(|task| self.tasks.ids.get(task));
        tasks.into_iter().for_each(|task| self.move_task(task, to));
    }

    fn move_task(&mut self, key: TaskKey, project: u8) {
        let to = (project, key.1);
        let tasks = &self.tasks.records;
        if !self.projects.records.contains_key(&project) || tasks.contains_key(&to) {
            return;
        }
        let Some(text) = tasks.get(&key).cloned() else { return };
        self.tasks.put(to, text);
        self.tasks.delete(&key);
    }

    /// All documents with their notes.
    pub fn documents(&self) -> Vec<(u8, Project)> {
        let whole = |(key, project): (&u8, &Project)| {
            let notes = self.notes_of(*key).into_iter().map(|(_, note)| note).collect();
            (*key, Project { notes, ..project.clone() })
        };
        self.projects.records.iter().map(whole).collect()
    }

    /// The answers of the searches.
    pub fn answers(&self) -> Answers {
        let has = |text: &str| text.split(' ').any(|word| word == WORD);
        let projects = self.projects.records.iter();
        let is_good = |note: &Note| note.author == WORD && note.stars > 2;
        let of_notes = |key: u8| self.notes_of(key).iter().any(|(_, note)| is_good(note));
        let matching = |key: u8| {
            self.tasks_of(key).iter().filter(|task| has(&self.tasks.records[task])).count()
        };
        let in_matching = |key: u8| has(&self.projects.records[&key].title);
        let of_tasks: Vec<usize> = projects.clone().map(|(key, _)| matching(*key)).collect();
        Answers {
            by_note: projects.clone().map(|(key, _)| *key).filter(|key| of_notes(*key)).collect(),
            by_two_tasks: projects.map(|(key, _)| *key).filter(|key| matching(*key) > 1).collect(),
            by_project: self
                .tasks
                .records
                .keys()
                .copied()
                .filter(|key| in_matching(key.0))
                .collect(),
            tasks: of_tasks.iter().sum::<usize>() as u64,
            groups: of_tasks.iter().filter(|count| **count > 0).count() as u64,
        }
    }
}

/// The ordinals of the notes in a new list. Notes in a common prefix or suffix of both lists keep
/// their ordinals.
fn ordinals(old: &[(u32, Note)], new: &[Note]) -> Vec<u32> {
    let is_same = |(old, new): &(&(u32, Note), &Note)| old.1 == **new;
    let start = old.iter().zip(new).take_while(is_same).count();
    let shorter = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(shorter).take_while(is_same).count();
    let with_end = |end: usize| {
        let (before, after) = old.split_at(old.len() - end);
        let mut all: Vec<u32> = before.iter().map(|(ordinal, _)| *ordinal).collect();
        all.truncate(new.len() - end);
        while all.len() < new.len() - end {
            all.push(all.last().map_or(0, |last| last + 1));
        }
        let is_free = all.last().zip(after.first()).is_none_or(|(last, (first, _))| last < first);
        all.extend(after.iter().map(|(ordinal, _)| *ordinal));
        is_free.then_some(all)
    };
    with_end(end).or_else(|| with_end(0)).unwrap_or_default()
}
