//! Calls are lent to nodes.
