//! Tables that a limit needs elsewhere in the file.

use super::client_key::KEY;
use super::store::STORE;
use crate::limit_stores::{self, LimitStore};
use crate::model::{ClientKey, KeyPart};
use crate::need::Need;
use crate::notes::Location;
use crate::reader::Table;

/// Table of the keys that verify tokens.
pub(crate) const JWT: Need = Need {
    table: "jwt",
    finding: "there is no [jwt], so no token is valid",
    allowed: "\"jwt_claim:NAME\" only beside a table [jwt] with keys_file",
};

/// Returns the tables that a limit needs, and the locations of the keys that need them.
pub(super) fn of(
    table: &Table<'_>,
    store: LimitStore,
    key: Option<&ClientKey>,
) -> Vec<(Need, Location)> {
    let of_store = limit_stores::needed_by(store);
    let of_store = of_store.map(|need| (need, table.location(STORE.name)));
    let is_claim = |part: &KeyPart| matches!(part, KeyPart::JwtClaim(_));
    let has_claim = key.is_some_and(|key| key.parts.iter().any(is_claim));
    let of_key = has_claim.then(|| (JWT, table.location(KEY.name)));
    of_store.into_iter().chain(of_key).collect()
}
