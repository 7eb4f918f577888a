//! Which scenarios does everybody have? Those of the folder `scenarios`, part of the program.

use anteroom_config::Problems;
use anteroom_config::toml_file::nearest;

use super::file::ScenarioText;
use super::model::Scenario;

/// A scenario that is part of the program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shipped {
    /// What to type.
    pub name: &'static str,
    /// The file.
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

/// All of them, the shortest story first.
pub const SHIPPED: &[Shipped] = shipped![
    "flash-sale",
    "slow-ramp-to-95-percent",
    "worldwide-spike",
    "article-two-days",
    "tiny-limit",
    "partition",
    "rolling-restart",
];

impl Shipped {
    /// The scenario of this name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        SHIPPED.iter().find(|shipped| shipped.name == name).copied()
    }

    /// The name that was probably meant.
    #[must_use]
    pub fn nearest(name: &str) -> Option<&'static str> {
        nearest(name, SHIPPED.iter().map(|shipped| shipped.name))
    }

    /// The file, to be read.
    #[must_use]
    pub const fn text(&self) -> ScenarioText<'static> {
        ScenarioText {
            source: self.name,
            name: self.name,
            text: self.text,
            folder: None,
        }
    }

    /// What it means as it is.
    ///
    /// # Errors
    ///
    /// None: a test reads them all.
    pub fn scenario(&self) -> Result<Scenario, Problems> {
        self.text().read(&[])
    }
}
