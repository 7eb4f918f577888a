//! Kinds of values that only the gateway's config file has.

mod address;
mod exponent;
mod host;
mod store;
mod ticket_key;

pub(super) use crate::toml_file::kind::{
    Choice, Duration, InvalidValue, Kind, LiveKind, Moment, OffSwitch, OneNumber, Switch, Text,
    Whole, nearest,
};
pub(super) use address::{Address, Network};
pub(super) use exponent::Exponent;
pub(super) use host::ServerAddress;
pub(super) use store::{Password, StoreAddress};
pub(super) use ticket_key::TicketKey;
