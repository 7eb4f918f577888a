//! Kinds of values that say where another server is.

use crate::address::host::HostPort;
use toml::de::DeValue;

use crate::toml_file::kind::{InvalidValue, Kind};

/// A server that somebody else runs, and its port.
pub(crate) struct Place {
    /// What it is, with an example.
    pub(crate) allowed: &'static str,
    /// The port of those that name none; `None` if all have to.
    pub(crate) usual_port: Option<u16>,
}

impl Kind for Place {
    type Value = HostPort;

    fn allowed(&self) -> String {
        self.allowed.to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<HostPort, InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?;
        HostPort::parse(text, self.usual_port).ok_or(InvalidValue::PLAIN)
    }
}
