//! Ticket keys as values. Messages show nothing of a key.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_PAD_INDIFFERENT, URL_SAFE_PAD_INDIFFERENT};
use toml::de::DeValue;

use crate::toml_file::kind::{InvalidValue, Kind};

/// Key that encrypts tickets. Messages show only its length.
pub(crate) struct TicketKey;

impl Kind for TicketKey {
    type Value = [u8; 32];

    fn allowed(&self) -> String {
        "base64 of exactly 32 random bytes, such as `openssl rand -base64 32` prints".to_owned()
    }

    fn read(&self, value: &DeValue<'_>) -> Result<[u8; 32], InvalidValue> {
        let text = value.as_str().ok_or(InvalidValue::PLAIN)?;
        let bytes = STANDARD_PAD_INDIFFERENT
            .decode(text)
            .or_else(|_| URL_SAFE_PAD_INDIFFERENT.decode(text))
            .map_err(|_| InvalidValue {
                found: Some(format!("{} characters, not base64", text.chars().count())),
                hint: None,
            })?;
        let key = <[u8; 32]>::try_from(bytes.as_slice()).map_err(|_| InvalidValue {
            found: Some(format!("base64 of {} bytes", bytes.len())),
            hint: None,
        })?;
        // People type such keys into examples.
        if key.iter().all(|byte| *byte == key[0]) {
            return Err(InvalidValue {
                found: Some("32 equal bytes".to_owned()),
                hint: Some("a key that is easy to guess lets clients forge tickets".to_owned()),
            });
        }
        Ok(key)
    }

    fn is_secret(&self) -> bool {
        true
    }
}
