//! All tests from outside in one program: linking one for each file takes longer.

mod calls;
mod clusters;
mod deploy;
mod doorway;
mod haproxy;
mod processes;
mod proxy;
mod replay;
