//! Cookies of visitors: reading them, hiding ours from the origin, and setting them.
//!
//! Works on bytes, because a `Cookie` header may hold any bytes, and a malformed foreign cookie
//! must not hide ours. The content of a value and the time to set a ticket are not decided here.
//!
//! Headers are parsed by RFC 6265bis, section 5.7: pairs between `;`, without spaces and tabs
//! around names and values, the name up to the first `=`. Quotes do not protect a `;`. Several
//! headers count as one, in their order.

use std::fmt::Write as _;
use std::ops::Deref;

use anteroom_config::{CookieSettings, SameSite, Secure};
use http::header::{COOKIE, SET_COOKIE};
use http::{HeaderMap, HeaderValue};

use crate::header_view::HeaderView;

/// Prefix of the names of all rooms' cookies.
pub const PREFIX: &str = "__anteroom_";

/// Maximum number of values of one cookie that are examined.
///
/// Honest clients send one, or two after a cookie's attributes changed in the config. Each further
/// value costs the opening of a ticket. With too few, cookies that another site of the same domain
/// has planted can hide ours: browsers send older ones first.
pub(crate) const VALUES_MAX: usize = 8;

/// Values of one cookie, in the order in which they were sent; at most `VALUES_MAX`.
///
/// Stored inline, so that the search for a ticket does not allocate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Values<'a> {
    found: [&'a str; VALUES_MAX],
    count: usize,
}

impl<'a> Deref for Values<'a> {
    type Target = [&'a str];

    fn deref(&self) -> &Self::Target {
        &self.found[..self.count]
    }
}

/// Returns the values of the cookie with exactly this name (case-sensitive), without quotes. Values
/// that are not UTF-8 are skipped, and do not count towards `VALUES_MAX`.
#[must_use]
pub fn values<'a>(headers: impl Into<HeaderView<'a>>, name: &str) -> Values<'a> {
    let mut values = Values::default();
    let named = all_values(headers, name);
    let texts = named.filter_map(|value| std::str::from_utf8(value).ok());
    for value in texts.take(VALUES_MAX) {
        values.found[values.count] = value;
        values.count += 1;
    }
    values
}

/// Returns all values of the cookie with exactly this name, including those that are not UTF-8.
pub fn all_values<'a>(
    headers: impl Into<HeaderView<'a>>,
    name: &str,
) -> impl Iterator<Item = &'a [u8]> {
    let lines = headers.into().get_all(&COOKIE);
    let named = lines.flat_map(pieces).filter_map(name_and_value);
    named
        .filter(move |(found, _)| *found == name.as_bytes())
        .map(|(_, value)| unquoted(value))
}

/// Removes every cookie whose name begins with `prefix`, so that the origin never sees a ticket.
/// This includes nameless values (`prefix...` without `=`), because some origins treat them as
/// names.
///
/// All other pairs stay byte for byte and in their order. A header without remaining pairs is
/// removed. Without a cookie to remove, nothing is changed or allocated.
pub fn without(headers: &mut HeaderMap, prefix: &str) {
    let is_clean = |line: &HeaderValue| !pieces(line.as_bytes()).any(|it| begins(it, prefix));
    let lines = headers.get_all(COOKIE);
    if lines.iter().all(is_clean) {
        return;
    }
    let rest: Vec<HeaderValue> = lines
        .iter()
        .filter_map(|line| {
            if is_clean(line) {
                Some(line.clone())
            } else {
                line_without(line, prefix)
            }
        })
        .collect();
    headers.remove(COOKIE);
    for line in rest {
        headers.append(COOKIE, line);
    }
}

/// Removes from a response every cookie whose name begins with `prefix`: only the gateway may set
/// those. Without one, nothing is changed or allocated.
pub(crate) fn without_set(headers: &mut HeaderMap, prefix: &str) {
    let is_clean = |line: &HeaderValue| !sets(line.as_bytes(), prefix);
    let lines = headers.get_all(SET_COOKIE);
    if lines.iter().all(is_clean) {
        return;
    }
    let rest: Vec<HeaderValue> = lines
        .iter()
        .filter(|line| is_clean(line))
        .cloned()
        .collect();
    headers.remove(SET_COOKIE);
    for line in rest {
        headers.append(SET_COOKIE, line);
    }
}

/// Whether a browser would send back text that begins with `prefix`. Browsers drop blanks around a
/// name, and may send back `=name=value`, a cookie without a name, as `name=value`.
pub(crate) fn sets(line: &[u8], prefix: &str) -> bool {
    let is_name = |byte: &u8| *byte != b'=' && !byte.is_ascii_whitespace();
    let start = line.iter().position(is_name).unwrap_or(line.len());
    line[start..].starts_with(prefix.as_bytes())
}

/// Appends the line without cookies that begin with `prefix`. Returns whether a line remains.
/// Without a cookie to remove it is the whole line, even an empty one.
pub(crate) fn write_without(out: &mut Vec<u8>, line: &[u8], prefix: &str) -> bool {
    if !pieces(line).any(|piece| begins(piece, prefix)) {
        out.extend_from_slice(line);
        return true;
    }
    let start = out.len();
    for piece in pieces(line) {
        if begins(piece, prefix) {
            continue;
        }
        if out.len() == start {
            // Only blanks before it: no separator to keep.
            out.extend_from_slice(piece.trim_ascii_start());
        } else {
            out.push(b';');
            out.extend_from_slice(piece);
        }
    }
    out.len() > start
}

/// Returns the line without cookies that begin with `prefix`; `None` if nothing remains.
fn line_without(line: &HeaderValue, prefix: &str) -> Option<HeaderValue> {
    let mut rest = Vec::with_capacity(line.len());
    if !write_without(&mut rest, line.as_bytes(), prefix) {
        return None;
    }
    let mut rest =
        HeaderValue::try_from(rest).expect("what is left of a header is made of its bytes");
    rest.set_sensitive(line.is_sensitive());
    Some(rest)
}

fn pieces(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let line = rest?;
        let Some(end) = memchr::memchr(b';', line) else {
            return rest.take();
        };
        rest = Some(&line[end + 1..]);
        Some(&line[..end])
    })
}

/// Whether the piece between two `;` is a cookie whose name begins with `prefix`.
fn begins(piece: &[u8], prefix: &str) -> bool {
    piece.trim_ascii_start().starts_with(prefix.as_bytes())
}

/// Splits a pair at the first `=`. A pair without one has no name.
fn name_and_value(piece: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memchr(b'=', piece)?;
    let (name, value) = piece.split_at(at);
    Some((name.trim_ascii(), value[1..].trim_ascii()))
}

/// Removes quotes around a value. Some client libraries add them, which RFC 6265, section 4.1.1,
/// allows.
fn unquoted(value: &[u8]) -> &[u8] {
    match value {
        [b'"', inner @ .., b'"'] => inner,
        _ => value,
    }
}

/// Attributes of a cookie.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Attributes {
    /// Lifetime in seconds; 0 deletes the cookie. Browsers cap it at 400 days.
    pub max_age_seconds: u64,
    /// `SameSite`: whether requests from other sites carry the cookie.
    pub same_site: SameSite,
    /// Whether the cookie is sent over HTTPS only.
    pub is_secure: bool,
}

impl Attributes {
    /// Returns the attributes by the config, for a response over HTTPS or plain HTTP.
    #[must_use]
    pub const fn of(settings: &CookieSettings, is_https: bool, max_age_seconds: u64) -> Self {
        let is_secure = match settings.secure {
            Secure::Auto => is_https,
            Secure::Always => true,
            Secure::Never => false,
        };
        Self {
            max_age_seconds,
            same_site: settings.same_site,
            is_secure,
        }
    }

    /// Returns the value of `SameSite`. Browsers drop a cookie with `None` that is not `Secure`,
    /// and its visitor would wait forever. So over plain HTTP the value is `Lax`.
    const fn same_site(&self) -> &'static str {
        match self.same_site {
            SameSite::None if self.is_secure => "None",
            SameSite::Strict => "Strict",
            SameSite::Auto | SameSite::Lax | SameSite::None => "Lax",
        }
    }

    /// Whether the cookie is partitioned. `SameSite=None` is for pages embedded in other sites.
    /// Browsers that block third-party cookies keep partitioned ones: one jar per embedding site.
    /// The price: a person who comes through two embedding sites is two visitors.
    const fn is_partitioned(&self) -> bool {
        matches!(self.same_site, SameSite::None) && self.is_secure
    }
}

/// Returns a `Set-Cookie` value for the whole host, out of reach of scripts. It is marked as
/// sensitive, so that `Debug` does not show it.
///
/// # Panics
///
/// If `name` is empty, or if `name` or `value` has invalid bytes: anything but visible ASCII, one
/// of `" , ; \`, or `=` in the name. Names from the config and sealed tickets never do.
#[must_use]
pub fn set_cookie(name: &str, value: &str, attributes: &Attributes) -> HeaderValue {
    assert!(
        !name.is_empty() && !name.contains('=') && name.bytes().all(is_cookie_byte),
        "not the name of a cookie: {name:?}"
    );
    // The value is a secret, so the message omits it.
    assert!(
        value
            .bytes()
            .fold(true, |good, byte| good & is_cookie_byte(byte)),
        "not the value of a cookie"
    );
    // 96 bytes are enough for the longest attributes.
    let mut text = String::with_capacity(name.len() + value.len() + 96);
    for part in [
        name,
        "=",
        value,
        "; Path=/; HttpOnly; SameSite=",
        attributes.same_site(),
        "; Max-Age=",
    ] {
        text.push_str(part);
    }
    write!(text, "{}", attributes.max_age_seconds)
        .expect("a String takes all that is written to it");
    if attributes.is_secure {
        text.push_str("; Secure");
    }
    if attributes.is_partitioned() {
        text.push_str("; Partitioned");
    }
    let mut header = HeaderValue::try_from(text).expect("visible ASCII and spaces make a header");
    header.set_sensitive(true);
    header
}

/// Returns a `Set-Cookie` value that deletes a cookie. Browsers compare `Partitioned`, so the
/// attributes must be those it was set with; the lifetime is ignored.
///
/// # Panics
///
/// The conditions of [`set_cookie`].
#[must_use]
pub fn delete_cookie(name: &str, attributes: &Attributes) -> HeaderValue {
    let attributes = Attributes {
        max_age_seconds: 0,
        ..*attributes
    };
    set_cookie(name, "", &attributes)
}

/// `cookie-octet` of RFC 6265, section 4.1.1.
const fn is_cookie_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\')
}

#[cfg(test)]
mod tests;
