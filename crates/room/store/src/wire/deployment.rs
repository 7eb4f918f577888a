//! Record of a deployment, and of the names of its data centers. It is JSON, so that an operator
//! can read it.

use std::collections::BTreeMap;

use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DataCenterId, DeploymentId};
use anteroom_room::time::Timestamp;
use serde::{Deserialize, Serialize};

/// Facts of a deployment. Their `Debug` shows no secret.
#[derive(Clone, Eq, PartialEq)]
pub struct DeploymentFacts {
    /// Id of the deployment. Tickets of another deployment are invalid.
    pub deployment_id: DeploymentId,
    /// Secret key of its lotteries.
    pub lottery_key: LotteryKey,
    /// Ticket keys, newest first; used unless the configuration has its own.
    pub ticket_keys: Vec<[u8; 32]>,
    /// Identity of the server that has this record.
    pub keeper: u64,
    /// Time since when the server has it, by its clock.
    pub kept_since: Timestamp,
    /// Whether the deployment began on this server, so that no earlier leases exist.
    pub is_first: bool,
}

/// Error of a record that is damaged or of an unknown version.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the record of the deployment is damaged")]
pub struct DamagedDeployment;

#[derive(Deserialize, Serialize)]
struct DeploymentRecord {
    version: u8,
    birth: String,
    lottery_key: String,
    ticket_keys: Vec<String>,
    keeper: String,
    kept_since: u64,
    is_first: bool,
}

const VERSION: u8 = 1;

impl std::fmt::Debug for DeploymentFacts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeploymentFacts")
            .field("birth", &self.deployment_id)
            .field("ticket_keys", &self.ticket_keys.len())
            .field("keeper", &self.keeper)
            .field("kept_since", &self.kept_since)
            .field("is_first", &self.is_first)
            .finish_non_exhaustive()
    }
}

/// Encodes the facts.
///
/// # Panics
///
/// Never: they are text and numbers.
#[must_use]
pub fn encode(facts: &DeploymentFacts) -> Vec<u8> {
    let record = DeploymentRecord {
        version: VERSION,
        birth: hex(&facts.deployment_id.0.to_be_bytes()),
        lottery_key: hex(&facts.lottery_key.0),
        ticket_keys: facts.ticket_keys.iter().map(|key| hex(key)).collect(),
        keeper: hex(&facts.keeper.to_be_bytes()),
        kept_since: facts.kept_since.0,
        is_first: facts.is_first,
    };
    serde_json::to_vec(&record).expect("text and numbers can be written")
}

/// Decodes the facts.
///
/// # Errors
///
/// [`DamagedDeployment`] if the bytes are no facts of this version.
pub fn decode(bytes: &[u8]) -> Result<DeploymentFacts, DamagedDeployment> {
    let record: DeploymentRecord = serde_json::from_slice(bytes).map_err(|_| DamagedDeployment)?;
    if record.version != VERSION {
        return Err(DamagedDeployment);
    }
    let keys = record.ticket_keys.iter().map(|key| from_hex(key));
    let facts = || {
        Some(DeploymentFacts {
            deployment_id: DeploymentId(u64::from_be_bytes(from_hex(&record.birth)?)),
            lottery_key: LotteryKey(from_hex(&record.lottery_key)?),
            ticket_keys: keys.collect::<Option<_>>()?,
            keeper: u64::from_be_bytes(from_hex(&record.keeper)?),
            kept_since: Timestamp(record.kept_since),
            is_first: record.is_first,
        })
    };
    let facts = facts().ok_or(DamagedDeployment)?;
    if facts.ticket_keys.is_empty() {
        return Err(DamagedDeployment);
    }
    Ok(facts)
}

/// Encodes the names of data centers.
///
/// # Panics
///
/// Never: they are text and numbers.
#[must_use]
pub fn encode_names(names: &BTreeMap<DataCenterId, String>) -> Vec<u8> {
    let names: BTreeMap<String, &String> = names
        .iter()
        .map(|(id, name)| (hex(&id.0.to_be_bytes()), name))
        .collect();
    serde_json::to_vec(&names).expect("text can be written")
}

/// Decodes the names of data centers. Invalid entries are left out: names are for display only.
#[must_use]
pub fn decode_names(bytes: &[u8]) -> BTreeMap<DataCenterId, String> {
    let names: BTreeMap<String, String> = serde_json::from_slice(bytes).unwrap_or_default();
    let id = |text: &str| Some(DataCenterId(u32::from_be_bytes(from_hex(text)?)));
    let names = names.into_iter();
    names
        .filter_map(|(text, name)| Some((id(&text)?, name)))
        .collect()
}

/// Encodes bytes as lower-case hex digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes exactly `2 * N` hex digits.
#[must_use]
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != N * 2 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> DeploymentFacts {
        DeploymentFacts {
            deployment_id: DeploymentId(7),
            lottery_key: LotteryKey([9; 16]),
            ticket_keys: vec![[1; 32], [2; 32]],
            keeper: u64::MAX,
            kept_since: Timestamp(1_694_432_700_000),
            is_first: true,
        }
    }

    #[test]
    fn encoded_facts_decode_to_the_same() {
        assert_eq!(decode(&encode(&facts())), Ok(facts()));
    }

    #[test]
    fn a_damaged_record_is_an_error_and_never_another_deployment() {
        let good = String::from_utf8(encode(&facts())).unwrap();
        let bad = [
            String::new(),
            "{}".to_owned(),
            good[..good.len() - 1].to_owned(),
            good.replace("\"version\":1", "\"version\":2"),
            good.replace("\"birth\":\"0", "\"birth\":\"x"),
            good.replace("\"birth\":\"0", "\"birth\":\"+"),
            good.replace(&hex(&[1; 32]), "00"),
            good.replace(&format!("\"{}\",\"{}\"", hex(&[1; 32]), hex(&[2; 32])), ""),
        ];
        for text in bad {
            assert_eq!(decode(text.as_bytes()), Err(DamagedDeployment), "{text}");
        }
    }

    #[test]
    fn names_survive_a_round_trip_and_invalid_entries_are_left_out() {
        let names = BTreeMap::from([
            (DataCenterId(1), "San Jose".to_owned()),
            (DataCenterId(u32::MAX), "Zürich".to_owned()),
        ]);
        assert_eq!(decode_names(&encode_names(&names)), names);
        let found = decode_names(br#"{"00000001": "San Jose", "1": "x", "zz": "y"}"#);
        assert_eq!(found.len(), 1);
        assert!(decode_names(b"[]").is_empty());
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let shown = format!("{:?}", facts());
        assert!(
            !shown.contains("0101") && !shown.contains("1, 1"),
            "{shown}"
        );
        assert!(!shown.contains("9, 9"), "{shown}");
    }
}
