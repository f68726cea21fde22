//! Result files: what the last run of a campaign came to.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

/// One run of one campaign, as a file `<campaign>.json` keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// The campaign.
    pub campaign: String,
    /// The command that runs it again.
    pub command: String,
    /// The day, `2026-11-21`.
    pub date: String,
    /// The commit, with a `+` where the tree was another.
    #[serde(default)]
    pub commit: String,
    /// The workloads that took part.
    #[serde(default)]
    pub workloads: Vec<String>,
    /// What the random choices came from, if there were any.
    pub seed: Option<u64>,
    /// How many were done.
    pub count: u64,
    /// What is counted.
    pub unit: String,
    /// How many failed.
    pub failures: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// What was broken on purpose, and whether it was found for the right reason; what nothing is
    /// broken in, and whether nothing was found.
    pub controls: BTreeMap<String, bool>,
    /// Other counts.
    #[serde(default)]
    pub details: BTreeMap<String, u64>,
}

impl Record {
    /// Whether nothing failed and every control was caught.
    pub fn is_sound(&self) -> bool {
        self.failures == 0 && self.controls.values().all(|caught| *caught)
    }

    /// Writes the file of this campaign in a directory.
    ///
    /// # Errors
    /// What the file system says.
    pub fn save(&self, directory: &Path) -> Result<()> {
        std::fs::create_dir_all(directory)?;
        let path = directory.join(format!("{}.json", self.campaign));
        let text = serde_json::to_string_pretty(self)? + "\n";
        std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
    }

    /// Reads the files of a directory, by campaign.
    ///
    /// # Errors
    /// A file that cannot be read or is no record.
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
