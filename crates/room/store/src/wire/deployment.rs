//! What nodes that share a store have in common, as it is written down there: JSON, for an operator
//! may have to look at it.

use std::collections::BTreeMap;

use anteroom_room::hash::LotteryKey;
use anteroom_room::id::{DataCenterId, DeploymentId};
use anteroom_room::time::Timestamp;
use serde::{Deserialize, Serialize};

/// The facts of a deployment. Its `Debug` shows no secret.
#[derive(Clone, Eq, PartialEq)]
pub struct DeploymentFacts {
    /// Tickets of another birth are no tickets.
    pub birth: DeploymentId,
    /// The secret of its lotteries.
    pub lottery_key: LotteryKey,
    /// Keys of tickets, newest first; used unless the configuration has its own.
    pub ticket_keys: Vec<[u8; 32]>,
    /// Identity of the server that keeps this.
    pub keeper: u64,
    /// Since when that has been so, by its clock.
    pub kept_since: Timestamp,
    /// Nothing was ever lent before that: the deployment was born on this server.
    pub is_first: bool,
}

/// The record is damaged, or of a version that is not known here.
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
            .field("birth", &self.birth)
            .field("ticket_keys", &self.ticket_keys.len())
            .field("keeper", &self.keeper)
            .field("kept_since", &self.kept_since)
            .field("is_first", &self.is_first)
            .finish_non_exhaustive()
    }
}

/// Writes the facts down.
///
/// # Panics
///
/// Never: they are text and numbers.
#[must_use]
pub fn encode(facts: &DeploymentFacts) -> Vec<u8> {
    let record = DeploymentRecord {
        version: VERSION,
        birth: hex(&facts.birth.0.to_be_bytes()),
        lottery_key: hex(&facts.lottery_key.0),
        ticket_keys: facts.ticket_keys.iter().map(|key| hex(key)).collect(),
        keeper: hex(&facts.keeper.to_be_bytes()),
        kept_since: facts.kept_since.0,
        is_first: facts.is_first,
    };
    serde_json::to_vec(&record).expect("text and numbers can be written")
}

/// Reads the facts.
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
            birth: DeploymentId(u64::from_be_bytes(from_hex(&record.birth)?)),
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

/// Writes down what data centers are called.
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

/// Reads what data centers are called. What makes no sense is left out: names are for people.
#[must_use]
pub fn decode_names(bytes: &[u8]) -> BTreeMap<DataCenterId, String> {
    let names: BTreeMap<String, String> = serde_json::from_slice(bytes).unwrap_or_default();
    let id = |text: &str| Some(DataCenterId(u32::from_be_bytes(from_hex(text)?)));
    let names = names.into_iter();
    names
        .filter_map(|(text, name)| Some((id(&text)?, name)))
        .collect()
}

/// Bytes as lower-case hex digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes from exactly as many hex digits as they need.
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
            birth: DeploymentId(7),
            lottery_key: LotteryKey([9; 16]),
            ticket_keys: vec![[1; 32], [2; 32]],
            keeper: u64::MAX,
            kept_since: Timestamp(1_694_432_700_000),
            is_first: true,
        }
    }

    #[test]
    fn what_was_written_is_read() {
        assert_eq!(decode(&encode(&facts())), Ok(facts()));
    }

    #[test]
    fn damage_is_an_error_and_never_another_deployment() {
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
    fn names_are_read_as_they_were_written_and_nonsense_is_left_out() {
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
    fn a_log_shows_no_secret() {
        let shown = format!("{:?}", facts());
        assert!(
            !shown.contains("0101") && !shown.contains("1, 1"),
            "{shown}"
        );
        assert!(!shown.contains("9, 9"), "{shown}");
    }
}
