//! Kind of values that name another server.

use crate::address::host::HostPort;
use toml::de::DeValue;

use crate::toml_file::kind::{InvalidValue, Kind};

/// Host and port of a server.
pub(crate) struct ServerAddress {
    /// Text of what is allowed, with an example.
    pub(crate) allowed: &'static str,
    /// Port of servers that name none; `None` if a port is required.
    pub(crate) usual_port: Option<u16>,
}

impl Kind for ServerAddress {
    type Value = HostPort;

    fn allowed(&self) -> String {
        self.allowed.to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<HostPort, InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?;
        HostPort::parse(text, self.usual_port).ok_or(InvalidValue::PLAIN)
    }
}
