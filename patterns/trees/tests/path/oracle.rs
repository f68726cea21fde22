//! The language, compared with PostgreSQL: the same expressions are evaluated there.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use fastrand::Rng;
use keyloom_trees::path::{
    LabelPath, Lquery, Ltxtquery, PathError, PathPattern, SyntaxProblem, first_ancestor,
    first_descendant, first_match, lca,
};

use crate::naive::{self, Condition};
use keyloom_testing::servers::{Postgres, Server, or_skip};

/// Creates a database with Unicode letters, like this implementation, and a function that evaluates
/// an expression or returns its error.
const DATABASE: &str = "CREATE DATABASE ltree TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'";
const SETUP: &str = r"
CREATE EXTENSION ltree;
CREATE FUNCTION answer(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    answer text;
    detail text;
BEGIN
    EXECUTE 'SELECT (' || expression || ')::text' INTO answer;
    RETURN coalesce('=' || answer, 'null');
EXCEPTION WHEN OTHERS THEN
    GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
    RETURN '!' || SQLERRM || '|' || detail;
END $$;
CREATE TABLE expressions (n int, expression text);
";

/// A result of PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Null,
    Value(String),
    Error(String),
}

struct Oracle {
    address: String,
    /// The server; it stops when this value is dropped.
    _server: Postgres,
}

impl Oracle {
    fn start() -> Self {
        let server = Postgres::start();
        let admin = server.address().replace("keyloom@", "postgres@");
        let address = format!("{}/ltree", admin.rsplit_once('/').unwrap().0);
        psql(&admin, DATABASE);
        psql(&address, SETUP);
        Self { address, _server: server }
    }

    fn answers(&self, expressions: &[String]) -> Vec<Answer> {
        let mut script = String::from("TRUNCATE expressions;\nCOPY expressions FROM STDIN;\n");
        for (n, expression) in expressions.iter().enumerate() {
            writeln!(script, "{n}\t{}", expression.replace('\\', "\\\\")).unwrap();
        }
        script += "\\.\nSELECT answer(expression) FROM expressions ORDER BY n;\n";
        let said = psql(&self.address, &script);
        let answers: Vec<Answer> = said.lines().map(answer).collect();
        assert_eq!(answers.len(), expressions.len());
        answers
    }
}

fn answer(line: &str) -> Answer {
    match line.split_at(1) {
        ("=", value) => Answer::Value(value.into()),
        ("!", error) => Answer::Error(error.into()),
        _ => Answer::Null,
    }
}

fn psql(address: &str, script: &str) -> String {
    let mut psql = Command::new("psql")
        .args(["--no-psqlrc", "--no-password", "--tuples-only", "--no-align", "--quiet"])
        .args(["--set=ON_ERROR_STOP=1", "--file=-", address])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = psql.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // A thread writes the input, because the program may fill the output pipe before it has
        // read all of it.
        scope.spawn(move || input.write_all(script.as_bytes()).unwrap());
        psql.wait_with_output().unwrap()
    });
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// An expression, and its expected result.
#[derive(Default)]
struct Cases {
    expressions: Vec<String>,
    expected: Vec<Answer>,
}

impl Cases {
    fn add(&mut self, expression: String, expected: Answer) {
        self.expressions.push(expression);
        self.expected.push(expected);
    }

    fn is(&mut self, expression: String, expected: bool) {
        self.add(expression, Answer::Value(expected.to_string()));
    }

    /// Adds an expression that returns a path, or any error.
    fn path(&mut self, expression: String, expected: Result<Option<&LabelPath>, &PathError>) {
        self.add(
            expression,
            match expected {
                Ok(Some(path)) => Answer::Value(path.to_string()),
                Ok(None) => Answer::Null,
                Err(_) => Answer::Error(String::new()),
            },
        );
    }

    fn check(self, oracle: &Oracle) -> usize {
        let answers = oracle.answers(&self.expressions);
        for ((expression, expected), answer) in
            self.expressions.iter().zip(&self.expected).zip(answers)
        {
            match (expected, &answer) {
                (Answer::Error(_), Answer::Error(_)) => {}
                _ => assert_eq!(*expected, answer, "{expression}"),
            }
        }
        self.expressions.len()
    }
}

fn quoted(text: &str, type_: &str) -> String {
    format!("'{}'::{type_}", text.replace('\'', "''"))
}

fn random_path(rng: &mut Rng) -> LabelPath {
    LabelPath::new(naive::path(rng)).unwrap()
}

fn of_path(path: &LabelPath) -> String {
    quoted(&path.to_string(), "ltree")
}

fn array(parts: impl IntoIterator<Item = String>, type_: &str) -> String {
    format!("ARRAY[{}]::{type_}[]", parts.into_iter().collect::<Vec<_>>().join(", "))
}

#[test]
fn every_operator_and_function_answers_as_postgresql_does() {
    let Some(oracle) = or_skip(Server::Postgres, Oracle::start) else { return };
    let counts = [
        patterns(&oracle),
        functions(&oracle),
        arrays(&oracle),
        texts(&oracle),
        broken_paths_and_patterns(&oracle),
    ];
    println!("compared with PostgreSQL: {counts:?} expressions");
    assert!(counts.iter().sum::<usize>() > 20_000);
}

fn patterns(oracle: &Oracle) -> usize {
    let mut rng = Rng::with_seed(31);
    let mut cases = Cases::default();
    for _ in 0..5_000 {
        let path = random_path(&mut rng);
        let text = naive::lquery_text(&naive::lquery(&mut rng), &mut rng);
        let query: Lquery = text.parse().unwrap();
        cases.is(format!("{} ~ {}", of_path(&path), quoted(&text, "lquery")), query.matches(&path));
        let text = Condition::random(&mut rng, 3).text(&mut rng);
        let query: Ltxtquery = text.parse().unwrap();
        cases.is(
            format!("{} @ {}", of_path(&path), quoted(&text, "ltxtquery")),
            query.matches(&path),
        );
        // The printed form has the same meaning in PostgreSQL.
        let written = quoted(&query.to_string(), "ltxtquery");
        cases.is(format!("{written} @ {}", of_path(&path)), query.matches(&path));
    }
    cases.check(oracle)
}

fn functions(oracle: &Oracle) -> usize {
    let mut rng = Rng::with_seed(32);
    let mut cases = Cases::default();
    for _ in 0..1_000 {
        let (a, b) = (random_path(&mut rng), random_path(&mut rng));
        let (from, to) = (rng.i32(-8..8), rng.i32(-8..8));
        let [path, other] = [&a, &b].map(of_path);
        let mut is_path = |text: String, outcome: Result<LabelPath, PathError>| {
            cases.path(text, outcome.as_ref().map(Some));
        };
        is_path(format!("subltree({path}, {from}, {to})"), a.subltree(from, to));
        is_path(format!("subpath({path}, {from}, {to})"), a.subpath(from, to));
        is_path(format!("subpath({path}, {from})"), a.subpath_from(from));
        is_path(format!("{path} || {other}"), a.concat(&b));
        is_path(format!("{path} || {}", quoted(&b.to_string(), "text")), a.concat(&b));
        is_path(format!("text2ltree(ltree2text({path}))"), Ok(a.clone()));
        let index = |at: Option<usize>| Answer::Value(at.map_or(-1, |at| at as i64).to_string());
        let part = a.subpath(0, to).unwrap_or_else(|_| b.clone());
        cases.add(format!("index({path}, {})", of_path(&part)), index(a.index(&part)));
        cases.add(format!("index({path}, {other}, {from})"), index(a.index_from(&b, from)));
        cases.add(format!("nlevel({path})"), Answer::Value(a.nlevel().to_string()));
        cases.is(format!("{path} @> {other}"), a.is_ancestor_of(&b));
        cases.is(format!("{path} <@ {}", of_path(&part)), a.is_descendant_of(&part));
        cases.is(format!("{path} < {other}"), a < b);
        cases.is(format!("{path} >= {}", of_path(&part)), a >= part);
        cases.is(format!("{path} = {}", of_path(&part)), a == part);
    }
    cases.check(oracle)
}

fn arrays(oracle: &Oracle) -> usize {
    let mut rng = Rng::with_seed(33);
    let mut cases = Cases::default();
    for _ in 0..600 {
        let stem = random_path(&mut rng);
        let random = |rng: &mut Rng| stem.concat(&random_path(rng)).unwrap();
        let paths: Vec<LabelPath> = (0..rng.usize(1..4)).map(|_| random(&mut rng)).collect();
        let list = array(paths.iter().map(of_path), "ltree");
        let common = lca(&paths);
        cases.path(format!("lca({list})"), Ok(common.as_ref()));
        if let [a, b] = &paths[..] {
            cases.path(format!("lca({}, {})", of_path(a), of_path(b)), Ok(common.as_ref()));
        }
        let one = match rng.bool() {
            true => random(&mut rng),
            false => stem.parent().unwrap_or_default(),
        };
        let path = of_path(&one);
        let (above, below) = (first_ancestor(&paths, &one), first_descendant(&paths, &one));
        cases.path(format!("{list} ?@> {path}"), Ok(above));
        cases.path(format!("{list} ?<@ {path}"), Ok(below));
        cases.is(format!("{list} @> {path}"), above.is_some());
        cases.is(format!("{path} <@ {list}"), above.is_some());
        cases.is(format!("{list} <@ {path}"), below.is_some());

        let texts: Vec<String> = (0..rng.usize(1..4))
            .map(|_| naive::lquery_text(&naive::lquery(&mut rng), &mut rng))
            .collect();
        let queries = texts.iter().map(|text| text.parse::<Lquery>().unwrap());
        let any = PathPattern::any_of(queries.clone());
        let first = PathPattern::from(queries.clone().next().unwrap());
        let quoted_queries = array(texts.iter().map(|text| quoted(text, "lquery")), "lquery");
        let query = quoted(&texts[0], "lquery");
        cases.is(format!("{path} ? {quoted_queries}"), any.matches(&one));
        cases.is(format!("{list} ? {quoted_queries}"), first_match(&paths, &any).is_some());
        cases.is(format!("{list} ~ {query}"), first_match(&paths, &first).is_some());
        cases.path(format!("{list} ?~ {query}"), Ok(first_match(&paths, &first)));
        let text = Condition::random(&mut rng, 2).text(&mut rng);
        let pattern = PathPattern::from(text.parse::<Ltxtquery>().unwrap());
        let query = quoted(&text, "ltxtquery");
        cases.is(format!("{list} @ {query}"), first_match(&paths, &pattern).is_some());
        cases.path(format!("{list} ?@ {query}"), Ok(first_match(&paths, &pattern)));
    }
    cases.check(oracle)
}

/// Patterns are printed in the same form as by PostgreSQL.
fn texts(oracle: &Oracle) -> usize {
    let mut rng = Rng::with_seed(34);
    let mut cases = Cases::default();
    for _ in 0..1_000 {
        let text = naive::lquery_text(&naive::lquery(&mut rng), &mut rng);
        let query: Lquery = text.parse().unwrap();
        cases.add(quoted(&text, "lquery"), Answer::Value(query.to_string()));
    }
    cases.check(oracle)
}

/// Input that PostgreSQL rejects is rejected here, at the same character and for the same reason.
fn broken_paths_and_patterns(oracle: &Oracle) -> usize {
    let mut rng = Rng::with_seed(35);
    let letters: Vec<char> = "aab1_é..**!|{},23@% &()'".chars().collect();
    let mut expressions = vec![];
    let mut expected = vec![];
    for _ in 0..2_500 {
        let items = naive::lquery(&mut rng);
        let mut text: Vec<char> = naive::lquery_text(&items, &mut rng).chars().collect();
        for _ in 0..rng.usize(1..4) {
            let (at, c) = (rng.usize(..=text.len()), letters[rng.usize(..letters.len())]);
            match rng.u8(..3) {
                0 => text.insert(at, c),
                1 => text.truncate(at),
                _ => drop((at < text.len()).then(|| text.remove(at))),
            }
        }
        let text: String = text.into_iter().collect();
        for (type_, outcome) in [
            ("ltree", text.parse::<LabelPath>().map(drop)),
            ("lquery", text.parse::<Lquery>().map(drop)),
        ] {
            expressions.push(quoted(&text, type_));
            expected.push(outcome);
        }
        // After a word, PostgreSQL treats letters of several bytes as white space.
        let text: String = text.chars().filter(char::is_ascii).collect();
        expressions.push(quoted(&text, "ltxtquery"));
        expected.push(text.parse::<Ltxtquery>().map(drop));
    }
    let answers = oracle.answers(&expressions);
    let mut refused = 0;
    for ((expression, expected), answer) in expressions.iter().zip(expected).zip(answers) {
        let Answer::Error(said) = answer else {
            assert_eq!(expected, Ok(()), "{expression}");
            continue;
        };
        let Err(PathError::Syntax { position, problem, .. }) = expected else {
            panic!("{expression} is no error here, and there {said}")
        };
        refused += 1;
        if expression.ends_with("::ltxtquery") {
            continue;
        }
        let problem = match problem {
            SyntaxProblem::UnexpectedEnd => "Unexpected end of input.".into(),
            SyntaxProblem::EmptyLabel => {
                format!("at character {position}|Empty labels are not allowed.")
            }
            SyntaxProblem::LowAboveHigh { low, high } => format!(
                "Low limit ({low}) is greater than high limit ({high}), at character {position}."
            ),
            _ => format!("at character {position}|"),
        };
        assert!(said.ends_with(&problem), "{expression}: expected {problem}, and there {said}");
    }
    assert!(refused > 1_000, "{refused}");
    expressions.len()
}
