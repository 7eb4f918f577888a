//! What was lent of calls, in a real file: what every store of records does, and what restarts,
//! crashes and broken disks leave of it.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail the test, like the tests themselves"
)]

mod bounds;
mod conformance;
mod crashes;
mod disk;
mod folder;
mod losses;
mod owners;
