//! One token: its parts and their verification (RFC 7515 in its compact form, RFC 7519).

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::jwt::algorithm::Algorithm;
use crate::jwt::key_set::KeySet;

/// Decoder that takes every spelling of a signature that a lenient origin takes: with or without
/// `=`, and with any spare bits at the end. A client can change those in a valid token, and the
/// origin would still accept it. If this decoder did not, the client could bypass its limit.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    NO_PAD
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Longest token, in bytes. Request headers have 64 KiB at most, and usual tokens one or two.
pub const TOKEN_BYTES_MAX: usize = 8 * 1_024;

/// Error of an invalid token. The client cannot tell these apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// Length above the maximum.
    #[error("longer than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    /// Malformed token.
    #[error("not a token of three parts with JSON")]
    Malformed,
    /// Critical extensions, which are not supported.
    #[error("critical extensions")]
    Critical,
    /// Unsupported algorithm, or no signature.
    #[error("unsupported algorithm")]
    Algorithm,
    /// Unknown `kid`, or not exactly one key for the algorithm.
    #[error("no matching key")]
    NoKey,
    /// Signed with another key, or changed.
    #[error("wrong signature")]
    Signature,
    /// Missing `exp`, or an invalid time.
    #[error("no valid times")]
    Times,
    /// Expired.
    #[error("expired")]
    Expired,
    /// Valid only later.
    #[error("not valid yet")]
    NotYet,
    /// Another issuer.
    #[error("another issuer")]
    Issuer,
    /// Another audience.
    #[error("another audience")]
    Audience,
}

/// Values that a token must have.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Expected {
    /// Issuer (`iss`); `None` for any.
    pub issuer: Option<String>,
    /// Audience (`aud`); `None` for any.
    pub audience: Option<String>,
    /// Largest difference between the clocks of issuer and verifier, in seconds.
    pub leeway_seconds: u64,
}

/// Header of a token. A repeated member is an error.
#[derive(Deserialize)]
struct Header<'t> {
    #[serde(borrow)]
    alg: std::borrow::Cow<'t, str>,
    #[serde(borrow, default)]
    kid: Option<std::borrow::Cow<'t, str>>,
    #[serde(default)]
    crit: Option<IgnoredAny>,
    /// Switch for unencoded payloads, which are not supported (RFC 7797).
    #[serde(default)]
    b64: Option<IgnoredAny>,
}

/// Claims of a valid token.
pub(crate) struct Claims {
    members: Map<String, Value>,
    pub(crate) times: Times,
}

/// Claims of a valid token that limits use, in their order. Its `Debug` shows none of them.
#[derive(Default, Eq, PartialEq)]
pub struct Proof {
    claims: Box<[Option<Box<str>>]>,
}

impl std::fmt::Debug for Proof {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proof([{} claims])", self.claims.len())
    }
}

impl Proof {
    pub(crate) fn of(claims: &Claims, names: &[String]) -> Self {
        let names = names.iter();
        Self {
            claims: names.map(|name| text(&claims.members, name)).collect(),
        }
    }

    /// Returns the claim at this index.
    pub(crate) fn claim(&self, at: usize) -> Option<&str> {
        self.claims.get(at)?.as_deref()
    }
}

fn text(members: &Map<String, Value>, name: &str) -> Option<Box<str>> {
    match members.get(name)? {
        Value::String(text) => Some(text.as_str().into()),
        Value::Number(number) => Some(number.to_string().into()),
        Value::Bool(switch) => Some(switch.to_string().into()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Validity of a token in whole seconds since 1970, leeway included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Times {
    from: u64,
    /// First second in which it is not valid.
    until: u64,
}

impl Times {
    #[cfg(test)]
    pub(crate) const fn of(from: u64, until: u64) -> Self {
        Self { from, until }
    }

    /// Checks that it is valid now.
    pub(crate) fn check(self, now: u64) -> Result<(), Rejection> {
        if now >= self.until {
            Err(Rejection::Expired)
        } else if now < self.from {
            Err(Rejection::NotYet)
        } else {
            Ok(())
        }
    }
}

/// Verifies one token.
pub(crate) fn verify(
    token: &[u8],
    keys: &KeySet,
    expected: &Expected,
    now: u64,
) -> Result<Claims, Rejection> {
    if token.len() > TOKEN_BYTES_MAX {
        return Err(Rejection::TooLong);
    }
    let mut parts = token.split(|byte| *byte == b'.');
    let (Some(header), Some(payload), Some(signature), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(Rejection::Malformed);
    };
    let signed = &token[..header.len() + 1 + payload.len()];
    let header = decoded(header)?;
    let header: Header<'_> = serde_json::from_slice(&header).map_err(|_| Rejection::Malformed)?;
    if header.crit.is_some() || header.b64.is_some() {
        return Err(Rejection::Critical);
    }
    let algorithm = Algorithm::named(&header.alg).ok_or(Rejection::Algorithm)?;
    let key = keys.find(algorithm, header.kid.as_deref());
    let key = key.ok_or(Rejection::NoKey)?;
    let signature = LENIENT.decode(signature);
    let signature = signature.map_err(|_| Rejection::Malformed)?;
    let is_ours = key.verify_sig(signed, &signature).is_ok();
    if !is_ours {
        return Err(Rejection::Signature);
    }
    let members = decoded(payload)?;
    let members = serde_json::from_slice(&members).map_err(|_| Rejection::Malformed)?;
    let times = times(&members, expected.leeway_seconds)?;
    times.check(now)?;
    expected.check(&members)?;
    Ok(Claims { members, times })
}

/// Decodes strictly: one text for the same bytes. The text is signed, so only the issuer can choose
/// it.
fn decoded(part: &[u8]) -> Result<Vec<u8>, Rejection> {
    let decoded = URL_SAFE_NO_PAD.decode(part);
    decoded.map_err(|_| Rejection::Malformed)
}

fn times(members: &Map<String, Value>, leeway: u64) -> Result<Times, Rejection> {
    let time = |name: &str| members.get(name).map(seconds).transpose();
    let until = time("exp")?.ok_or(Rejection::Times)?;
    Ok(Times {
        from: time("nbf")?.unwrap_or(0).saturating_sub(leeway),
        until: until.saturating_add(leeway),
    })
}

/// Reads a point in time (NumericDate): seconds since 1970, with or without a fraction, rounded
/// down.
fn seconds(value: &Value) -> Result<u64, Rejection> {
    let Value::Number(number) = value else {
        return Err(Rejection::Times);
    };
    if let Some(whole) = number.as_u64() {
        return Ok(whole);
    }
    let fraction = number
        .as_f64()
        .filter(|seconds| (0.0..1e15).contains(seconds));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is in range, and the fraction is dropped on purpose"
    )]
    fraction
        .map(|seconds| seconds as u64)
        .ok_or(Rejection::Times)
}

impl Expected {
    fn check(&self, members: &Map<String, Value>) -> Result<(), Rejection> {
        let is_in = |name: &str, expected: &str| match members.get(name) {
            Some(Value::String(text)) => text == expected,
            Some(Value::Array(texts)) => texts.iter().any(|text| text == expected),
            _ => false,
        };
        if let Some(issuer) = &self.issuer
            && members.get("iss").and_then(Value::as_str) != Some(issuer)
        {
            return Err(Rejection::Issuer);
        }
        match &self.audience {
            Some(audience) if !is_in("aud", audience) => Err(Rejection::Audience),
            _ => Ok(()),
        }
    }
}
