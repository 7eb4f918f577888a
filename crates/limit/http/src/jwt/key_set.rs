//! Key set (JWKS): public keys in JSON (RFC 7517) that verify signatures.
//!
//! Read strictly: a key that could never verify anything is a mistake, and so is one that is not
//! public. Encryption keys, which many sets contain, are skipped.

use std::collections::HashMap;

use aws_lc_rs::signature::{ParsedPublicKey, RsaPublicKeyComponents};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::jwt::algorithm::{Algorithm, Kind};

/// Most bytes of a file: enough for a hundred of the largest keys.
pub const FILE_BYTES_MAX: usize = 256 * 1_024;
/// Most keys. Issuers have two or three; some have one for each of their tenants.
pub const KEYS_MAX: usize = 100;

/// Longest `kid`, in bytes; those in use are digests and short names.
const ID_BYTES_MAX: usize = 256;
/// Bits of an RSA key, as for certificates; smaller ones were broken.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2_048..=8_192;
/// Members that only a private key or a secret has.
const PRIVATE: [&str; 7] = ["d", "p", "q", "dp", "dq", "qi", "k"];

/// Keys that verify tokens.
#[derive(Debug)]
pub struct KeySet {
    keys: Vec<PublicKey>,
}

/// Key, ready for each algorithm that it may be used with.
struct PublicKey {
    /// Value of `kid`.
    id: Option<String>,
    uses: Vec<(Algorithm, ParsedPublicKey)>,
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PublicKey({:?})", self.id)
    }
}

/// Error of a text that is not a key set. It shows no key.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KeySetError {
    /// The text is too long.
    #[error("it is too large: at most {FILE_BYTES_MAX} bytes are allowed")]
    TooLarge,
    /// The text is not JSON, or not a key set.
    #[error(
        "found no JSON object with a list of keys (line {line}, column {column}), allowed: \
         {{\"keys\": [...]}}"
    )]
    NoSet {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// Number of keys out of range.
    #[error("found {0} keys, allowed: 1 to {KEYS_MAX}")]
    Count(usize),
    /// All keys are for encryption.
    #[error("found no key for signatures, allowed: at least one")]
    NoneForSignatures,
    /// A key is wrong.
    #[error("{key}: {member}: {found}, allowed: {allowed}")]
    Key {
        /// Number of the key, from 1, and its `kid`.
        key: String,
        /// Member of the key.
        member: &'static str,
        /// Value that was found.
        found: String,
        /// Values that are allowed.
        allowed: String,
    },
}

impl KeySet {
    /// Parses a key set.
    ///
    /// # Errors
    ///
    /// Every mistake, in the order of the keys.
    pub fn parse(text: &[u8]) -> Result<Self, Vec<KeySetError>> {
        read(text)
    }

    /// Returns the key for a token with this `alg` and `kid`; `None` if no key fits, or several do.
    pub(crate) fn find(&self, algorithm: Algorithm, id: Option<&str>) -> Option<&ParsedPublicKey> {
        let named = self.keys.iter();
        let named = named.filter(|key| id.is_none() || key.id.as_deref() == id);
        let mut fitting = named.filter_map(|key| {
            let mut uses = key.uses.iter();
            uses.find(|(known, _)| *known == algorithm)
        });
        let (_, key) = fitting.next()?;
        // Trying one key after the other would let the client choose the cost.
        fitting.next().is_none().then_some(key)
    }

    /// Returns the number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are no keys, which is never true after parsing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[derive(Deserialize)]
struct Written {
    keys: Vec<Map<String, Value>>,
}

fn read(text: &[u8]) -> Result<KeySet, Vec<KeySetError>> {
    if text.len() > FILE_BYTES_MAX {
        return Err(vec![KeySetError::TooLarge]);
    }
    let written: Written = serde_json::from_slice(text).map_err(|error| {
        vec![KeySetError::NoSet {
            line: error.line(),
            column: error.column(),
        }]
    })?;
    let count = written.keys.len();
    if !(1..=KEYS_MAX).contains(&count) {
        return Err(vec![KeySetError::Count(count)]);
    }
    let mut keys = Vec::new();
    let mut mistakes = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for (index, members) in written.keys.iter().enumerate() {
        let mut reader = Reader::new(index + 1, members, &mut mistakes);
        if reader.is_for_encryption() {
            continue;
        }
        let key = reader.key();
        if let Some(id) = key.as_ref().and_then(|key| key.id.clone()) {
            if let Some(first) = numbers.get(&id) {
                let found = format!("key {first} has the same");
                reader.report("kid", found, "one that no other key has");
            } else {
                numbers.insert(id, index + 1);
            }
        }
        keys.extend(key);
    }
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    if keys.is_empty() {
        return Err(vec![KeySetError::NoneForSignatures]);
    }
    Ok(KeySet { keys })
}

/// Reader of one key.
struct Reader<'k> {
    name: String,
    members: &'k Map<String, Value>,
    mistakes: &'k mut Vec<KeySetError>,
}

impl<'k> Reader<'k> {
    fn new(
        number: usize,
        members: &'k Map<String, Value>,
        mistakes: &'k mut Vec<KeySetError>,
    ) -> Self {
        let id = members.get("kid").and_then(Value::as_str);
        let id = id.filter(|id| id.len() <= ID_BYTES_MAX);
        let name = match id {
            Some(id) => format!("key {number} (kid {id:?})"),
            None => format!("key {number}"),
        };
        Self {
            name,
            members,
            mistakes,
        }
    }

    fn report(&mut self, member: &'static str, found: String, allowed: &str) {
        self.mistakes.push(KeySetError::Key {
            key: self.name.clone(),
            member,
            found,
            allowed: allowed.to_owned(),
        });
    }

    fn is_for_encryption(&self) -> bool {
        self.members.get("use").and_then(Value::as_str) == Some("enc")
    }

    fn key(&mut self) -> Option<PublicKey> {
        let mistakes = self.mistakes.len();
        if PRIVATE
            .iter()
            .any(|member| self.members.contains_key(*member))
        {
            let found = "found a private key or a secret".to_owned();
            self.report(
                "kty",
                found,
                "public keys only; a verifier needs no private key",
            );
            return None;
        }
        let id = self.id();
        self.check_use();
        let kind = self.kind()?;
        let algorithms = self.algorithms(kind);
        let uses = match kind {
            Kind::Rsa => self.rsa(&algorithms),
            Kind::P256 => self.point("P-256", 32, &algorithms),
            Kind::P384 => self.point("P-384", 48, &algorithms),
            Kind::Ed25519 => {
                let point = self.bytes("x", 32..=32, "32 bytes")?;
                self.curve(&point, &algorithms)
            }
        };
        (self.mistakes.len() == mistakes).then_some(PublicKey { id, uses })
    }

    fn id(&mut self) -> Option<String> {
        let typed = self.members.get("kid")?;
        match typed.as_str() {
            Some(id) if (1..=ID_BYTES_MAX).contains(&id.len()) => Some(id.to_owned()),
            _ => {
                let allowed = format!("a text of 1 to {ID_BYTES_MAX} bytes");
                self.report("kid", "found another value".to_owned(), &allowed);
                None
            }
        }
    }

    fn check_use(&mut self) {
        if let Some(typed) = self.members.get("use").filter(|typed| **typed != "sig") {
            let found = shown(typed);
            self.report("use", found, "\"sig\" or \"enc\"");
        }
        let Some(typed) = self.members.get("key_ops") else {
            return;
        };
        let operations = typed.as_array();
        if !operations.is_some_and(|list| list.iter().any(|operation| operation == "verify")) {
            self.report(
                "key_ops",
                "found no \"verify\"".to_owned(),
                "a list with \"verify\"",
            );
        }
    }

    fn kind(&mut self) -> Option<Kind> {
        let text = |member: &str| self.members.get(member).and_then(Value::as_str);
        let (member, allowed) = match (text("kty"), text("crv")) {
            (Some("RSA"), _) => return Some(Kind::Rsa),
            (Some("EC"), Some("P-256")) => return Some(Kind::P256),
            (Some("EC"), Some("P-384")) => return Some(Kind::P384),
            (Some("OKP"), Some("Ed25519")) => return Some(Kind::Ed25519),
            (Some("EC"), _) => ("crv", "\"P-256\" or \"P-384\""),
            (Some("OKP"), _) => ("crv", "\"Ed25519\""),
            _ => ("kty", "\"RSA\", \"EC\" or \"OKP\""),
        };
        let found = self.members.get(member);
        let found = found.map_or_else(|| "missing".to_owned(), shown);
        self.report(member, found, allowed);
        None
    }

    /// Returns the algorithms of the key: its own `alg`, or all of its kind.
    fn algorithms(&mut self, kind: Kind) -> Vec<Algorithm> {
        let fitting = Algorithm::ALL.into_iter();
        let fitting: Vec<_> = fitting.filter(|known| known.kind() == kind).collect();
        let Some(typed) = self.members.get("alg") else {
            return fitting;
        };
        let named = typed.as_str().and_then(Algorithm::named);
        if let Some(named) = named.filter(|named| fitting.contains(named)) {
            return vec![named];
        }
        let names: Vec<String> = fitting
            .iter()
            .map(|known| format!("{:?}", known.name()))
            .collect();
        let found = shown(typed);
        self.report(
            "alg",
            found,
            &format!("{} for this key", names.join(" or ")),
        );
        Vec::new()
    }

    fn rsa(&mut self, algorithms: &[Algorithm]) -> Vec<(Algorithm, ParsedPublicKey)> {
        let bytes_max = RSA_BITS.end() / 8;
        let modulus = self.bytes("n", 1..=bytes_max, "256 to 1024 bytes");
        let exponent = self.bytes("e", 1..=4, "1 to 4 bytes, mostly \"AQAB\"");
        let (Some(modulus), Some(exponent)) = (modulus, exponent) else {
            return Vec::new();
        };
        let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
        let modulus = &modulus[zeros..];
        let top = modulus
            .first()
            .map_or(0, |byte| byte.leading_zeros() as usize);
        let bits = modulus.len() * 8 - top;
        if !RSA_BITS.contains(&bits) {
            let allowed = format!("{} to {} bits", RSA_BITS.start(), RSA_BITS.end());
            self.report("n", format!("found {bits} bits"), &allowed);
            return Vec::new();
        }
        let components = RsaPublicKeyComponents {
            n: modulus,
            e: &exponent,
        };
        let uses = algorithms.iter().filter_map(|algorithm| {
            let parsed = components.to_parsed_public_key(algorithm.rsa()?);
            Some((*algorithm, parsed.ok()?))
        });
        let uses = uses.collect();
        self.all_of(uses, algorithms, "n")
    }

    fn point(
        &mut self,
        curve: &str,
        length: usize,
        algorithms: &[Algorithm],
    ) -> Vec<(Algorithm, ParsedPublicKey)> {
        let allowed = format!("{length} bytes for {curve}");
        let x = self.bytes("x", length..=length, &allowed);
        let y = self.bytes("y", length..=length, &allowed);
        let (Some(x), Some(y)) = (x, y) else {
            return Vec::new();
        };
        // Uncompressed (SEC 1, section 2.3.3).
        let point = [&[4][..], &x, &y].concat();
        self.curve(&point, algorithms)
    }

    fn curve(
        &mut self,
        point: &[u8],
        algorithms: &[Algorithm],
    ) -> Vec<(Algorithm, ParsedPublicKey)> {
        let uses = algorithms.iter().filter_map(|algorithm| {
            let parsed = ParsedPublicKey::new(algorithm.curve()?, point);
            Some((*algorithm, parsed.ok()?))
        });
        let uses = uses.collect();
        self.all_of(uses, algorithms, "x")
    }

    /// Reports a key that the library accepts for none of its algorithms.
    fn all_of(
        &mut self,
        uses: Vec<(Algorithm, ParsedPublicKey)>,
        algorithms: &[Algorithm],
        member: &'static str,
    ) -> Vec<(Algorithm, ParsedPublicKey)> {
        if uses.len() < algorithms.len() {
            let found = "found numbers that are no key".to_owned();
            self.report(member, found, "a public key as its issuer publishes it");
        }
        uses
    }

    fn bytes(
        &mut self,
        member: &'static str,
        length: std::ops::RangeInclusive<usize>,
        allowed: &str,
    ) -> Option<Vec<u8>> {
        let typed = self.members.get(member).and_then(Value::as_str);
        let bytes = typed.and_then(|typed| URL_SAFE_NO_PAD.decode(typed).ok());
        let found = match (&bytes, typed) {
            (Some(bytes), _) if length.contains(&bytes.len()) => {
                return Some(bytes.clone());
            }
            (Some(bytes), _) => format!("found {} bytes", bytes.len()),
            (None, Some(_)) => "found no base64url".to_owned(),
            (None, None) => "missing".to_owned(),
        };
        self.report(member, found, &format!("{allowed} in base64url without ="));
        None
    }
}

/// Shows a short word as typed; anything else may be too long for a message.
fn shown(value: &Value) -> String {
    match value.as_str() {
        Some(word) if word.len() <= 32 => format!("found {word:?}"),
        Some(_) => "found a long text".to_owned(),
        None => "found no text".to_owned(),
    }
}
