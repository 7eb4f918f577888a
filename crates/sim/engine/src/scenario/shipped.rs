//! Scenarios that are part of the program, from the folder `scenarios`.

use anteroom_config::Problems;
use anteroom_config::toml_file::nearest;

use super::file::ScenarioText;
use super::model::Scenario;

/// Scenario that is part of the program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shipped {
    /// Name to type.
    pub name: &'static str,
    /// Text of the file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../../scenarios/", $name, ".toml")),
        }),*]
    };
}

/// All shipped scenarios, the shortest story first.
pub const SHIPPED: &[Shipped] = shipped![
    "flash-sale",
    "slow-ramp-to-95-percent",
    "worldwide-spike",
    "article-two-days",
    "tiny-limit",
    "partition",
    "rolling-restart",
    "rush-late-in-a-minute",
];

impl Shipped {
    /// Returns the scenario of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        SHIPPED.iter().find(|shipped| shipped.name == name).copied()
    }

    /// Returns the name that was probably meant.
    #[must_use]
    pub fn nearest(name: &str) -> Option<&'static str> {
        nearest(name, SHIPPED.iter().map(|shipped| shipped.name))
    }

    /// Returns the file for the reader.
    #[must_use]
    pub const fn text(&self) -> ScenarioText<'static> {
        ScenarioText {
            source: self.name,
            name: self.name,
            text: self.text,
            folder: None,
        }
    }

    /// Reads the scenario without settings.
    ///
    /// # Errors
    ///
    /// Returns no error: a test reads them all.
    pub fn scenario(&self) -> Result<Scenario, Problems> {
        self.text().read(&[])
    }
}
