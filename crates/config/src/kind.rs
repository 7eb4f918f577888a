//! What may a key of the config file hold, besides what keys of any file may?

mod address;
mod exponent;
mod place;
mod store;
mod ticket_key;

pub use crate::toml_file::kind::{
    Choice, Duration, Kind, Moment, Number, Refusal, Switch, Text, Whole, nearest,
};
pub(super) use crate::toml_file::kind::{OffSwitch, OneNumber, Shown};
pub(super) use address::{Address, Network};
pub(super) use exponent::Exponent;
pub(super) use place::Place;
pub(super) use store::{Password, StoreAddress};
pub(super) use ticket_key::TicketKey;
