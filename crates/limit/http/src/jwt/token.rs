//! One token: what it says of itself, and whether that is true (RFC 7515 in its compact form, RFC
//! 7519).

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};

use crate::jwt::algorithm::Algorithm;
use crate::jwt::key_set::KeySet;

/// Reads every spelling of a signature that a lenient origin takes: with `=` behind it or without,
/// and whatever its spare last bits are. Anybody can change those in a token that is good, and the
/// origin would still take it; one that was none here would be a way around its limit.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    NO_PAD
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Longest token. Heads of requests hold 64 KiB at most, and tokens in use one or two.
pub const TOKEN_BYTES_MAX: usize = 8 * 1_024;

/// Why a token proves nothing. To whoever sent it all of these are the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// It is longer than tokens are.
    #[error("longer than {TOKEN_BYTES_MAX} bytes")]
    TooLong,
    /// It is no token.
    #[error("no token of three parts with JSON in them")]
    Malformed,
    /// It demands what is not understood here.
    #[error("critical extensions")]
    Critical,
    /// It is signed in another way, or not at all.
    #[error("an algorithm that is not taken")]
    Algorithm,
    /// No key is called so, none fits its algorithm, or several do.
    #[error("no key that fits")]
    NoKey,
    /// Somebody else has signed it, or changed it.
    #[error("a signature of somebody else's")]
    Signature,
    /// It says no end, or nothing that is a time.
    #[error("no times")]
    Times,
    /// It was good.
    #[error("expired")]
    Expired,
    /// It will be good.
    #[error("not good yet")]
    NotYet,
    /// Another issuer has signed it.
    #[error("another issuer")]
    Issuer,
    /// It is meant for somebody else.
    #[error("another audience")]
    Audience,
}

/// What a token must say.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Expected {
    /// Who has issued it (`iss`); `None`: whoever has the key.
    pub issuer: Option<String>,
    /// For whom it is (`aud`); `None`: for whoever gets it.
    pub audience: Option<String>,
    /// How far the clocks of issuer and verifier may be apart.
    pub leeway_seconds: u64,
}

/// What stands in front; a member that stands there twice is refused.
#[derive(Deserialize)]
struct Header<'t> {
    #[serde(borrow)]
    alg: std::borrow::Cow<'t, str>,
    #[serde(borrow, default)]
    kid: Option<std::borrow::Cow<'t, str>>,
    #[serde(default)]
    crit: Option<IgnoredAny>,
    /// Encoded payloads are the only ones that are read (RFC 7797).
    #[serde(default)]
    b64: Option<IgnoredAny>,
}

/// What a token that is good says.
pub(crate) struct Claims {
    members: Map<String, Value>,
    pub(crate) times: Times,
}

/// What a good token says: the claims that were asked for, in their order. Shows none of them.
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

    /// The claim that was asked for in this place.
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

/// From when to when a token is good, in whole seconds since 1970, leeway included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Times {
    from: u64,
    /// The first second in which it is not.
    until: u64,
}

impl Times {
    #[cfg(test)]
    pub(crate) const fn of(from: u64, until: u64) -> Self {
        Self { from, until }
    }

    /// Whether it is good now.
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

/// Strictly: one text for the same bytes. Its text is signed, so nobody but the issuer spells it.
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

/// A point in time (NumericDate): seconds since 1970, with a fraction or without, rounded down.
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
        reason = "it is in the range, and what is cut off is the fraction"
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
