//! Nodes that exchange their counts: in a simulated network, and over real sockets.

mod conformance;
mod leaving;
mod network;
mod overshoot;
mod sockets;
mod support;
