//! The checker can fail: each anomaly, written by hand, is found by its name, and correct histories
//! pass.

use keyloom_list_append::anomaly::{Anomaly, Edge, Name};
use keyloom_list_append::checker::{check, check_with_snapshots_in_commit_order};
use keyloom_list_append::history::{
    Attempt, Element, End, History, List, Mark, Operation, Outcome,
};

/// Builds a history. Transactions are concurrent unless `then` orders them.
#[derive(Default)]
struct Told(History);

impl Told {
    /// Adds a transaction that overlaps with all others.
    fn then(self, operations: impl Into<Vec<Operation>>) -> Self {
        self.during(0, 1_000, operations)
    }

    fn during(mut self, began: u64, ended: u64, operations: impl Into<Vec<Operation>>) -> Self {
        let (operations, outcome) = (operations.into(), Outcome::Committed);
        let writer = self.0.attempts.len();
        self.0.attempts.push(Attempt {
            writer,
            began,
            ended,
            operations,
            outcome,
            by_snapshot: false,
        });
        self
    }

    /// Turns the last transaction into a snapshot read.
    fn by_snapshot(mut self) -> Self {
        self.0.attempts.last_mut().unwrap().by_snapshot = true;
        self
    }

    /// Sets the outcome of the last transaction.
    fn but(mut self, outcome: Outcome) -> Self {
        self.0.attempts.last_mut().unwrap().outcome = outcome;
        self
    }

    /// Sets the final lists.
    fn left(mut self, lists: &[(List, &[Element])]) -> Self {
        self.0.end.lists = lists.iter().map(|(list, all)| (*list, all.to_vec())).collect();
        self
    }

    fn marks(mut self, marks: &[(List, Element)]) -> Self {
        self.0.end.marks = marks.iter().copied().collect();
        self
    }

    fn found(&self) -> Vec<Anomaly> {
        check(&self.0)
    }

    fn names(&self) -> Vec<Name> {
        let mut names: Vec<_> = self.found().iter().map(Anomaly::name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    #[track_caller]
    fn shows(&self, names: &[Name]) {
        assert_eq!(self.names(), names, "{:#?}", self.found());
    }
}

fn append(list: List, found: &[Element], element: Element) -> Operation {
    Operation::Append { list, found: found.to_vec(), element, mark: Mark::Left }
}

fn set(list: List, found: &[Element], element: Element) -> Operation {
    Operation::Append { list, found: found.to_vec(), element, mark: Mark::Set }
}

fn unset(list: List, found: &[Element], element: Element) -> Operation {
    Operation::Append { list, found: found.to_vec(), element, mark: Mark::Deleted }
}

fn read(list: List, found: &[Element]) -> Operation {
    Operation::Read { list, found: found.to_vec() }
}

fn read_range(lists: std::ops::Range<List>, found: &[(List, &[Element])]) -> Operation {
    let found = found.iter().map(|(list, all)| (*list, all.to_vec())).collect();
    Operation::ReadRange { lists, found }
}

fn read_marks(lists: std::ops::Range<List>, found: &[(List, Element)]) -> Operation {
    Operation::ReadMarks { lists, found: found.to_vec() }
}

#[test]
fn nothing_is_silent() {
    Told::default().shows(&[]);
    assert_eq!(check(&History { attempts: vec![], end: End::default() }), []);
}

#[test]
fn a_serial_history_is_silent() {
    Told::default()
        .during(0, 10, [append(1, &[], 1), read(1, &[1]), append(1, &[1], 2)])
        .during(20, 30, [read(1, &[1, 2]), append(2, &[], 3)])
        .during(40, 50, [read_range(0..4, &[(1, &[1, 2]), (2, &[3])])])
        .left(&[(1, &[1, 2]), (2, &[3])])
        .shows(&[]);
}

#[test]
fn transactions_side_by_side_may_come_in_either_order() {
    // The reader saw one append and not the other.
    Told::default()
        .then([append(1, &[], 1)])
        .then([append(2, &[], 2)])
        .then([read(1, &[]), read(2, &[2])])
        .left(&[(1, &[1]), (2, &[2])])
        .shows(&[]);
}

#[test]
fn one_overwritten_read_between_two_transactions_is_no_cycle() {
    Told::default()
        .then([read(1, &[]), append(2, &[], 2)])
        .then([read(2, &[2]), append(1, &[], 1)])
        .left(&[(1, &[1]), (2, &[2])])
        .shows(&[]);
}

#[test]
fn an_append_that_is_gone_is_lost() {
    Told::default()
        .during(0, 1, [append(1, &[], 1)])
        .during(0, 1, [append(2, &[], 2)])
        .left(&[(1, &[1])])
        .shows(&[Name::LostAppend]);
}

#[test]
fn an_element_that_is_there_twice_is_doubled() {
    Told::default().then([append(1, &[], 1)]).left(&[(1, &[1, 1])]).shows(&[Name::DoubledAppend]);
}

#[test]
fn an_element_that_no_one_appended_is_unwritten() {
    Told::default().then([read(1, &[7])]).left(&[(1, &[7])]).shows(&[Name::Unwritten]);
    // The element was not appended to this list.
    Told::default()
        .then([append(1, &[], 1)])
        .left(&[(1, &[1]), (2, &[1])])
        .shows(&[Name::Unwritten]);
}

#[test]
fn g1a_what_was_aborted_is_seen() {
    let told = Told::default().then([append(1, &[], 1)]).but(Outcome::Aborted);
    told.left(&[(1, &[1])]).shows(&[Name::G1a]);
    // A reader saw the append, but it is missing at the end.
    Told::default()
        .then([append(1, &[], 1)])
        .but(Outcome::Aborted)
        .then([read(1, &[1])])
        .shows(&[Name::G1a]);
    // The uncommitted element is beside a committed one.
    Told::default()
        .then([append(1, &[], 1)])
        .but(Outcome::Aborted)
        .then([append(1, &[], 2)])
        .then([read(1, &[1])])
        .left(&[(1, &[2])])
        .shows(&[Name::G1a, Name::IncompatibleOrder]);
}

#[test]
fn what_an_aborted_transaction_saw_is_nothing() {
    Told::default()
        .then([read(1, &[9]), read(1, &[]), append(1, &[], 1)])
        .but(Outcome::Aborted)
        .shows(&[]);
}

#[test]
fn g1b_a_part_of_a_transaction_is_seen() {
    // The reader comes both after the writer, since it read one of its writes, and before it.
    Told::default()
        .then([append(1, &[], 1), append(1, &[1], 2)])
        .then([read(1, &[1])])
        .left(&[(1, &[1, 2])])
        .shows(&[Name::G1b, Name::GSingle]);
}

#[test]
fn lists_that_do_not_continue_each_other_are_incompatible() {
    Told::default()
        .then([append(1, &[], 1)])
        .then([append(1, &[1], 2)])
        .then([read(1, &[2])])
        .left(&[(1, &[1, 2])])
        .shows(&[Name::IncompatibleOrder]);
}

#[test]
fn a_transaction_that_misses_its_own_write_is_inconsistent() {
    Told::default()
        .then([append(1, &[], 1), read(1, &[])])
        .left(&[(1, &[1])])
        .shows(&[Name::Internal]);
    Told::default()
        .then([set(1, &[], 1), read_marks(0..2, &[])])
        .left(&[(1, &[1])])
        .marks(&[(1, 1)])
        .shows(&[Name::Internal]);
}

#[test]
fn two_different_answers_to_one_question_are_inconsistent() {
    Told::default()
        .then([append(1, &[], 1)])
        .then([read(1, &[]), read_range(1..2, &[(1, &[1])])])
        .left(&[(1, &[1])])
        .shows(&[Name::Internal]);
}

#[test]
fn lost_update_two_transactions_continue_the_same_version() {
    let told =
        Told::default().then([append(1, &[], 1)]).then([append(1, &[], 2)]).left(&[(1, &[2])]);
    told.shows(&[Name::LostAppend, Name::LostUpdate]);
    let lost = told.found().into_iter().find(|found| found.name() == Name::LostUpdate);
    assert!(matches!(lost, Some(Anomaly::Element { transactions, .. }) if transactions == [0, 1]));
}

#[test]
fn g0_writes_over_writes_in_both_orders() {
    // Appends without reads, like those of a store with a native append.
    let told = Told::default()
        .then([append(1, &[], 1), append(2, &[4], 2)])
        .then([append(1, &[1], 3), append(2, &[], 4)])
        .left(&[(1, &[1, 3]), (2, &[4, 2])]);
    assert!(told.names().contains(&Name::G0), "{:?}", told.names());
}

#[test]
fn g1c_each_saw_the_other() {
    let told = Told::default()
        .then([append(1, &[], 1), read(2, &[2])])
        .then([append(2, &[], 2), read(1, &[1])])
        .left(&[(1, &[1]), (2, &[2])]);
    told.shows(&[Name::G1c]);
    let cycle = told.found().remove(0);
    let edges = [Edge::WriteRead(1), Edge::WriteRead(2)];
    let Anomaly::Cycle { steps, .. } = &cycle else { panic!("{cycle}") };
    assert!(steps.iter().all(|(from, edge)| *edge == edges[*from]), "{cycle}");
    assert!(cycle.to_string().contains("-(wr on list 1)-> T1"), "{cycle}");
}

#[test]
fn g_single_a_reader_sees_half_of_a_transaction() {
    Told::default()
        .then([append(1, &[], 1), append(2, &[], 2)])
        .then([read(1, &[1]), read(2, &[])])
        .left(&[(1, &[1]), (2, &[2])])
        .shows(&[Name::GSingle]);
}

#[test]
fn g2_item_write_skew() {
    let told = Told::default()
        .then([read(1, &[]), append(2, &[], 2)])
        .then([read(2, &[]), append(1, &[], 1)])
        .left(&[(1, &[1]), (2, &[2])]);
    told.shows(&[Name::G2Item]);
}

/// The read-only anomaly of Fekete, O'Neil and O'Neil (2004). Two transactions are serializable
/// until a third one reads the write of the second, but not yet that of the first. A snapshot that
/// shows commits in commit order may do so, because it does not promise a serial order.
#[test]
fn read_only_anomaly_is_allowed_for_snapshots_in_commit_order() {
    let looked = || {
        Told::default()
            .then([read(1, &[]), append(2, &[], 2)])
            .then([append(1, &[], 1)])
            .then([read(1, &[1]), read(2, &[])])
    };
    let left = [(1, &[1][..]), (2, &[2][..])];
    looked().left(&left).shows(&[Name::G2Item]);
    let by_snapshot = looked().by_snapshot().left(&left);
    assert_ne!(check(&by_snapshot.0), []);
    assert_eq!(check_with_snapshots_in_commit_order(&by_snapshot.0), []);
    // An anomaly that no order permits is still reported: a snapshot with half of a transaction.
    let torn = Told::default()
        .then([append(1, &[], 1), append(2, &[], 2)])
        .then([read(1, &[1]), read(2, &[])])
        .by_snapshot()
        .left(&left);
    assert_eq!(check_with_snapshots_in_commit_order(&torn.0)[0].name(), Name::GSingle);
}

#[test]
fn g2_phantoms_in_ranges() {
    Told::default()
        .then([read_range(0..5, &[]), append(7, &[], 2)])
        .then([read_range(5..9, &[]), append(3, &[], 1)])
        .left(&[(3, &[1]), (7, &[2])])
        .shows(&[Name::G2]);
}

#[test]
fn g2_phantoms_among_marks() {
    Told::default()
        .then([read_marks(0..5, &[]), set(7, &[], 2)])
        .then([read_marks(5..9, &[]), set(3, &[], 1)])
        .left(&[(3, &[1]), (7, &[2])])
        .marks(&[(3, 1), (7, 2)])
        .shows(&[Name::G2]);
}

#[test]
fn a_deleted_mark_that_is_still_seen_was_overwritten() {
    // The reader saw the list after the deletion, but the mark before it.
    Told::default()
        .then([set(1, &[], 1)])
        .then([unset(1, &[1], 2)])
        .then([read(1, &[1, 2]), read_marks(1..2, &[(1, 1)])])
        .left(&[(1, &[1, 2])])
        .shows(&[Name::GSingle]);
}

#[test]
fn an_absent_mark_may_be_one_before_or_after() {
    Told::default()
        .then([set(1, &[], 1)])
        .then([unset(1, &[1], 2)])
        .then([read_marks(1..2, &[]), append(2, &[], 3)])
        .left(&[(1, &[1, 2]), (2, &[3])])
        .shows(&[]);
}

#[test]
fn a_mark_that_its_list_does_not_explain_is_astray() {
    let told = || Told::default().then([set(1, &[], 1)]).left(&[(1, &[1])]);
    told().marks(&[(1, 1)]).shows(&[]);
    told().shows(&[Name::MarkAstray]);
    told().marks(&[(1, 1), (2, 1)]).shows(&[Name::MarkAstray]);
}

#[test]
fn a_cycle_of_many_transactions_is_found() {
    // Each transaction missed the write of the next one, and the last missed the write of the
    // first.
    let many = 30_000;
    let mut told = Told::default();
    let mut lists = Vec::new();
    for n in 0..many {
        let next = (n + 1) % many;
        told = told.then([read(next, &[]), append(n, &[], u64::from(n) + 1)]);
        lists.push((n, vec![u64::from(n) + 1]));
    }
    told.0.end.lists = lists.into_iter().collect();
    told.shows(&[Name::G2Item]);
}

#[test]
fn real_time_what_was_committed_before_is_seen() {
    let told = |began| {
        Told::default()
            .during(0, 10, [append(1, &[], 1)])
            .during(began, 30, [read(1, &[])])
            .left(&[(1, &[1])])
    };
    told(11).shows(&[Name::GSingleRealTime]);
    // At equal times the two are concurrent.
    told(10).shows(&[]);
}

#[test]
fn real_time_reaches_over_others() {
    let told = Told::default()
        .during(0, 10, [append(1, &[], 1)])
        .during(20, 30, [append(2, &[], 2)])
        .during(25, 40, [append(3, &[], 3)])
        .during(50, 60, [append(4, &[], 4)])
        .during(70, 80, [read(1, &[])])
        .left(&[(1, &[1]), (2, &[2]), (3, &[3]), (4, &[4])]);
    told.shows(&[Name::GSingleRealTime]);
}

#[test]
fn real_time_writes_do_not_go_back() {
    let told = Told::default()
        .during(0, 10, [append(1, &[2], 1)])
        .during(20, 30, [append(1, &[], 2)])
        .left(&[(1, &[2, 1])]);
    assert!(told.names().contains(&Name::G0RealTime), "{:?}", told.names());
}

#[test]
fn real_time_nothing_is_seen_before_it_is_written() {
    Told::default()
        .during(0, 10, [read(1, &[1])])
        .during(20, 30, [append(1, &[], 1)])
        .left(&[(1, &[1])])
        .shows(&[Name::G1cRealTime]);
}

#[test]
fn real_time_between_two_overwritten_reads() {
    // The long transaction missed the first, and the last missed the long one.
    let told = |miss: Operation| {
        Told::default()
            .during(0, 100, [miss, append(2, &[], 2)])
            .during(10, 20, [append(1, &[], 1)])
            .during(30, 40, [read(2, &[])])
            .left(&[(1, &[1]), (2, &[2])])
    };
    told(read(1, &[])).shows(&[Name::G2ItemRealTime]);
    told(read_range(0..2, &[])).shows(&[Name::G2RealTime]);
}

#[test]
fn an_unknown_outcome_may_be_either() {
    let told = |lists: &[(List, &[Element])]| {
        Told::default()
            .then([append(1, &[], 1), append(2, &[], 2)])
            .but(Outcome::Unknown)
            .left(lists)
            .names()
    };
    assert_eq!(told(&[]), []);
    assert_eq!(told(&[(1, &[1]), (2, &[2])]), []);
    // A half of it must not be stored.
    assert_eq!(told(&[(1, &[1])]), [Name::LostAppend]);
}

#[test]
fn an_unknown_outcome_may_come_late() {
    // The outcome was reported as unknown before the reader began, and the commit happened after
    // that.
    Told::default()
        .during(0, 10, [append(1, &[], 1)])
        .but(Outcome::Unknown)
        .during(20, 30, [read(1, &[])])
        .left(&[(1, &[1])])
        .shows(&[]);
}
