//! What may a key of the config file hold, besides what keys of any file may?

mod address;
mod exponent;
mod place;
mod store;
mod ticket_key;

pub(super) use crate::toml_file::kind::{
    Choice, Duration, InvalidValue, Kind, LiveKind, Moment, OffSwitch, OneNumber, Switch, Text,
    Whole, nearest,
};
pub(super) use address::{Address, Network};
pub(super) use exponent::Exponent;
pub(super) use place::Place;
pub(super) use store::{Password, StoreAddress};
pub(super) use ticket_key::TicketKey;
