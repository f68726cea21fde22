//! Result files: the outcome of the last run of each campaign.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// One run of a campaign, as stored in `<campaign>.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The name of the campaign.
    pub campaign: String,
    /// The command that repeats the run.
    pub command: String,
    /// The day, `2026-11-21`.
    pub date: String,
    /// The commit, with a `+` if the working tree had changes.
    #[serde(default)]
    pub commit: String,
    /// The workloads that took part.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// The seed of the random choices, if there were any.
    pub seed: Option<u64>,
    /// The count.
    pub count: u64,
    /// The counted unit.
    pub unit: String,
    /// The number of failures.
    pub failures: u64,
    /// The run time in seconds.
    pub seconds: f64,
    /// The controls by name: whether each flaw was found for the right reason, and whether nothing
    /// was found in sound targets.
    pub controls: BTreeMap<String, bool>,
    /// Other counts.
    #[serde(default)]
    pub details: BTreeMap<String, u64>,
}

impl Record {
    /// Whether there were no failures and every control held.
    pub fn is_sound(&self) -> bool {
        self.failures == 0 && self.controls.values().all(|caught| *caught)
    }

    /// Writes the file of this campaign in a directory.
    ///
    /// # Errors
    /// I/O errors.
    pub fn save(&self, directory: &Path) -> Result<()> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join(format!("{}.json", self.campaign));
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    }

    /// Reads the files of a directory, by campaign.
    ///
    /// # Errors
    /// If a file cannot be read or is not a valid record.
    pub fn load_all(directory: &Path) -> Result<BTreeMap<String, Self>> {
        let mut found = BTreeMap::new();
        for file in std::fs::read_dir(directory)
            .with_context(|| format!("reading {}", directory.display()))?
        {
            let path = file?.path();
            let text = std::fs::read_to_string(&path)?;
            let record: Self = serde_json::from_str(&text)
                .with_context(|| format!("{} is no result file", path.display()))?;
            found.insert(record.campaign.clone(), record);
        }
        Ok(found)
    }
}
