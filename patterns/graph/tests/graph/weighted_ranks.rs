//! Weighted PageRank, compared with a dense matrix and with PageRank without weights.

use keyloom_graph::algorithms::{self, PageRankOptions};
use keyloom_graph::{Direction, VertexNumber};
use keyloom_testing::laws::long_property;
use proptest::prelude::*;

use super::algorithms::{Model, close, with_rows};
use super::model::{Edges, edges, put};

/// The probability of a step between each pair of vertices.
fn steps(model: &Model, restart: &[f64]) -> Vec<Vec<f64>> {
    let row = |vertex| {
        let mut row = vec![0.0; model.len()];
        let out = model.around(vertex, Direction::Out);
        let total: f64 = out.iter().map(|(_, weight)| weight).sum();
        if total == 0.0 {
            return restart.to_vec();
        }
        out.into_iter().for_each(|(other, weight)| row[other as usize] += weight / total);
        row
    };
    model.all().map(row).collect()
}

#[test]
fn weighted_ranks_agree_with_a_dense_matrix() {
    let case = (any::<bool>(), edges(9, 30), any::<bool>());
    long_property(case, |(is_directed, all, is_personal)| {
        with_rows(is_directed, &all, |csr, model| {
            let count = model.len();
            let mut restart = vec![if is_personal { 0.0 } else { 1.0 / count as f64 }; count];
            if is_personal {
                restart[0] = 1.0;
            }
            let steps = steps(model, &restart);
            let mut expected = restart.clone();
            for _ in 0..6 {
                let next = |to: usize| {
                    let along = expected.iter().zip(&steps).map(|(rank, row)| rank * row[to]);
                    0.2 * restart[to] + 0.8 * along.sum::<f64>()
                };
                expected = (0..count).map(next).collect();
            }
            let restart_at = vec![VertexNumber::from_index(0); usize::from(is_personal)];
            let options =
                PageRankOptions { damping: 0.8, iterations: 6, tolerance: None, restart_at };
            let found = algorithms::weighted_page_rank(csr, &options).unwrap();
            assert!(close(&found, &expected), "{found:?} {expected:?}");
        });
    });
}

#[test]
fn equal_weights_give_the_ranks_without_weights() {
    let weights = [1.0, 0.1, f64::MAX, f64::MIN_POSITIVE / 1024.0];
    let case = (any::<bool>(), edges(9, 30), 0..weights.len());
    long_property(case, |(is_directed, all, weight)| {
        let store = keyloom_testing::memory();
        let graph = put(&store, is_directed, &all);
        let snapshot = keyloom::Store::snapshot(&store).unwrap();
        let rows = graph.at(&snapshot).unwrap().to_weighted_csr(|_| weights[weight]).unwrap();
        let options = PageRankOptions::default();
        let found = algorithms::weighted_page_rank(&rows, &options).unwrap();
        let expected = algorithms::page_rank(&rows, &options).unwrap();
        assert!(close(&found, &expected), "{found:?} {expected:?}");
    });
}

#[test]
fn bad_input_of_weighted_ranks_is_refused() {
    let store = keyloom_testing::memory();
    let graph = put(&store, true, &Edges::from([((1, "a".to_owned(), 2), 3)]));
    let snapshot = keyloom::Store::snapshot(&store).unwrap();
    let view = graph.at(&snapshot).unwrap();
    let options = PageRankOptions::default();
    let error = algorithms::weighted_page_rank(&view.to_csr().unwrap(), &options).unwrap_err();
    assert!(error.to_string().contains("to_weighted_csr"), "{error}");
    let rows = view.to_weighted_csr(|weight| f64::from(*weight)).unwrap();
    let damping = PageRankOptions { damping: 2.0, ..options.clone() };
    assert!(algorithms::weighted_page_rank(&rows, &damping).is_err());
    let never = PageRankOptions { tolerance: Some(0.0), iterations: 1, ..options };
    assert!(algorithms::weighted_page_rank(&rows, &never).is_err());
}
