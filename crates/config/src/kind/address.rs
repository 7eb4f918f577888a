//! Addresses and networks as values of keys. Names are not resolved, so that a config means the
//! same at any time and on any machine.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use toml::de::DeValue;

use crate::toml_file::kind::{InvalidValue, Kind};

/// IP address and port to listen on.
pub(crate) struct Address;

impl Kind for Address {
    type Value = SocketAddr;

    fn allowed(&self) -> String {
        "an IP address and a port, such as \"127.0.0.1:8080\" or \"[::1]:8080\"".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<SocketAddr, InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?;
        text.parse().map_err(|_| {
            let meant = text
                .strip_prefix("localhost:")
                .map(|port| format!("127.0.0.1:{port}"))
                .or_else(|| text.strip_prefix(':').map(|port| format!("0.0.0.0:{port}")))
                .filter(|meant| meant.parse::<SocketAddr>().is_ok());
            meant.map_or(InvalidValue::PLAIN, |meant| {
                InvalidValue::hint(format!("did you mean {meant:?}?"))
            })
        })
    }
}

/// IP address or network.
pub(crate) struct Network;

impl Kind for Network {
    type Value = IpNet;

    fn allowed(&self) -> String {
        "an IP address or a network, such as \"10.0.0.0/8\"".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<IpNet, InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?;
        text.parse::<IpAddr>()
            .map(IpNet::from)
            .or_else(|_| text.parse::<IpNet>().map(|network| network.trunc()))
            .map_err(|_| InvalidValue::PLAIN)
    }
}
