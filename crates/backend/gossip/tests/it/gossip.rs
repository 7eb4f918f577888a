//! Nodes that tell each other what they have counted: in a network of a time of their own, and over
//! real sockets.

mod conformance;
mod leaving;
mod network;
mod overshoot;
mod sockets;
mod support;
