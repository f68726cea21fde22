//! How the scores of several children become the score of their parent.

/// How the scores of the matching children of a parent are combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoreMode {
    /// The score is 0: it matters only whether a child matches.
    None,
    /// The average of the scores.
    #[default]
    Average,
    /// The greatest score.
    Maximum,
    /// The smallest score.
    Minimum,
    /// The sum of the scores.
    Sum,
}

/// The count, the sum, the least and the greatest of the scores of the children of one parent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    pub(crate) count: u64,
    sum: f64,
    least: f64,
    most: f64,
}

impl Default for Tally {
    fn default() -> Self {
        Self { count: 0, sum: 0.0, least: f64::INFINITY, most: f64::NEG_INFINITY }
    }
}

impl Tally {
    pub(crate) fn add(&mut self, score: f64) {
        self.count += 1;
        self.sum += score;
        self.least = self.least.min(score);
        self.most = self.most.max(score);
    }

    pub(crate) fn score(&self, mode: ScoreMode) -> f64 {
        match mode {
            ScoreMode::None => 0.0,
            ScoreMode::Average => self.sum / self.count.max(1) as f64,
            ScoreMode::Maximum => self.most,
            ScoreMode::Minimum => self.least,
            ScoreMode::Sum => self.sum,
        }
    }
}
