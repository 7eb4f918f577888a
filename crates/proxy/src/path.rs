//! Readings of a path: all paths for which an origin may take a request.
//!
//! A room guards a path, but origins do not agree on what a path is: some decode `%2F`, some treat
//! `\` as `/`, some drop `;params`, merge `//` or resolve `..`, and some do none of it. Rewriting
//! the path would break origins that sign or count its bytes. So the path is forwarded byte for
//! byte, and a room covers a request if **any** plausible reading of its path lies under the room's
//! path.
//!
//! The readings of a path are all results of these steps, each of which an origin may or may not
//! take:
//!
//! 1. on the raw text: treat `\` as `/`; drop `;params` from each segment; treat the text after two
//!    or more slashes at the beginning as a host, and drop it (`new URL(path, base)` reads
//!    `//x/shop` as `/shop`); resolve `.` and `..`, with or without merging `//` first;
//! 2. percent-decode once: everything, or everything except an encoded `/` and `\`. `%uHHHH` is
//!    decoded too (HTTP.sys does). What was encoded twice (`%252e`) stays literal;
//! 3. on the decoded text: treat `\` as `/`, before or after dropping `;params` again;
//! 4. drop a host again; merge `//`; resolve `.` and `..`.
//!
//! An origin may decode twice, as a server and the application behind it do ([`Decoding::Twice`]).
//! Then these are readings as well:
//!
//! 5. the decoded text before a `?`, a `#` or a control byte;
//! 6. each decoded reading, decoded once more and taken through steps 3 to 5.
//!
//! Upper and lower case are not readings: [`route`](crate::route) ignores case. Paths are rejected
//! if no honest client sends them and origins disagree the most: control bytes (raw or encoded,
//! `%00` among them), overlong UTF-8 (`%c0%af`), and paths so disguised that their readings would
//! exceed `READING_BYTES_MAX`. Control bytes that are encoded twice end the path in a reading and
//! are not rejected: clients that encode text twice do send them.
//!
//! Not covered: a third decoding, Unicode normalization, 8.3 file names.

mod decode;
mod error;

use anteroom_config::ServerConfig;
use decode::{Controls, Separators, decode};
pub use error::BadPathError;

/// Budget of readings for one path, in bytes, with 256 bytes extra per reading.
///
/// An ordinary path has one reading and makes none, one with `%XX` has two or three. An attacker
/// who uses every disguise at once gets about a hundred, so one request costs tens of microseconds
/// at most. If it is too small, long honest paths with oddities are rejected.
pub(crate) const READING_BYTES_MAX: usize = 64 * 1024;

/// Number of times that origins may decode a path.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Decoding {
    /// One decoding, as the standard requires.
    #[default]
    Once,
    /// Possibly a second decoding, in which case `%253f` becomes a `?` and ends the path.
    Twice,
}

impl Decoding {
    /// Returns the setting of `[server]`.
    #[must_use]
    pub const fn of(server: &ServerConfig) -> Self {
        if server.guard_double_decoding {
            Self::Twice
        } else {
            Self::Once
        }
    }
}

/// Plausible readings of one path; the path as sent is always among them.
#[derive(Clone, Debug)]
pub struct Readings<'a> {
    sent: &'a str,
    others: Vec<Reading>,
    can_escape: bool,
}

#[derive(Clone, Debug, Eq, PartialEq)]
struct Reading {
    text: String,
    is_decoded: bool,
}

impl<'a> Readings<'a> {
    /// Lists the readings of a path as in the request line, without the query, for origins that
    /// decode once.
    ///
    /// # Errors
    ///
    /// The errors of [`Readings::under`].
    pub fn of(sent: &'a str) -> Result<Self, BadPathError> {
        Self::under(Decoding::Once, sent)
    }

    /// Lists the readings of a path as in the request line, without the query.
    ///
    /// A path without `%`, `\`, `;`, `//` and `/.` costs one scan and allocates nothing.
    ///
    /// # Errors
    ///
    /// [`BadPathError`] if the path must not be interpreted.
    pub fn under(decoding: Decoding, sent: &'a str) -> Result<Self, BadPathError> {
        if !sent.starts_with('/') {
            return Err(BadPathError::NotAbsolute);
        }
        if !is_odd(sent.as_bytes())? {
            return Ok(Self {
                sent,
                others: Vec::new(),
                can_escape: false,
            });
        }
        let mut reader = Reader::default();
        reader.read(sent)?;
        if decoding == Decoding::Twice && sent.contains('%') {
            reader.read_again()?;
        }
        Ok(Self {
            sent,
            others: reader.found,
            can_escape: reader.can_escape,
        })
    }

    /// Returns the path as the client sent it.
    #[must_use]
    pub const fn sent(&self) -> &'a str {
        self.sent
    }

    /// Returns all readings, the one that was sent first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.sent).chain(self.others.iter().map(|reading| reading.text.as_str()))
    }

    /// Returns the percent-decoded readings; for a path without `%` these are all of them.
    pub fn decoded(&self) -> impl Iterator<Item = &str> {
        let sent = Some(self.sent).filter(|sent| !sent.contains('%'));
        let others = self.others.iter().filter(|reading| reading.is_decoded);
        sent.into_iter()
            .chain(others.map(|reading| reading.text.as_str()))
    }

    /// Returns the reading in which every step was taken: decoded once, merged, resolved. It is for
    /// logs and keys; decisions use every reading.
    #[must_use]
    pub fn normal(&self) -> &str {
        // Every step is tried in the order "not taken, taken", so the last result is the normal
        // form.
        self.others
            .last()
            .map_or(self.sent, |reading| reading.text.as_str())
    }

    /// Whether some reading climbs with `..`, or drops a beginning that looks like a host. Then
    /// readings can end up anywhere, and a path that leads to two rooms must not be resolved in the
    /// client's favor.
    #[must_use]
    pub(crate) const fn can_escape(&self) -> bool {
        self.can_escape
    }
}

/// Whether a path may have more than one reading.
fn is_odd(bytes: &[u8]) -> Result<bool, BadPathError> {
    let mut is_odd = false;
    let mut previous = 0;
    for &byte in bytes {
        match byte {
            0..0x20 | 0x7f => return Err(BadPathError::Control),
            b'%' | b'\\' | b';' => is_odd = true,
            b'/' | b'.' if previous == b'/' => is_odd = true,
            _ => {}
        }
        previous = byte;
    }
    Ok(is_odd)
}

/// Builder of readings that counts their cost.
#[derive(Default)]
struct Reader {
    found: Vec<Reading>,
    spent: usize,
    can_escape: bool,
    /// Whether escapes remain after the first decoding.
    is_encoded_again: bool,
}

impl Reader {
    fn read(&mut self, sent: &str) -> Result<(), BadPathError> {
        let raw = self.either(vec![sent.to_owned()], turn_backslashes)?;
        let raw = self.either(raw, drop_params)?;
        let raw = self.resolved(raw)?;
        self.finish(raw.clone(), !sent.contains('%'))?;
        if !sent.contains('%') {
            return Ok(());
        }
        for separators in [Separators::Literal, Separators::Decoded] {
            let mut decoded = Vec::with_capacity(raw.len());
            for path in &raw {
                let path = decode(path, separators, Controls::Refused)?;
                self.spend(path.len())?;
                self.is_encoded_again |= separators == Separators::Decoded && path.contains('%');
                push_new(&mut decoded, path);
            }
            self.finish(decoded, true)?;
        }
        Ok(())
    }

    /// Takes steps 3 and 4 and adds the results to the readings.
    fn finish(&mut self, paths: Vec<String>, is_decoded: bool) -> Result<(), BadPathError> {
        for text in self.finished(paths)? {
            let reading = Reading { text, is_decoded };
            // The normal form is the last one, so a repeated reading moves to the end.
            self.found.retain(|known| *known != reading);
            self.found.push(reading);
        }
        Ok(())
    }

    fn finished(&mut self, paths: Vec<String>) -> Result<Vec<String>, BadPathError> {
        // A `\` inside a parameter ends it or belongs to it, depending on which step comes first.
        let paths = self.either(paths, turn_backslashes)?;
        let paths = self.either(paths, drop_params)?;
        let paths = self.either(paths, turn_backslashes)?;
        self.resolved(paths)
    }

    /// Takes steps 5 and 6. Their readings come before the others, of which the last is the normal
    /// form.
    fn read_again(&mut self) -> Result<(), BadPathError> {
        let decoded = self.found.iter().filter(|reading| reading.is_decoded);
        let once: Vec<String> = decoded.map(|reading| reading.text.clone()).collect();
        let mut again = Vec::new();
        for path in &once {
            if let Some(cut) = cut(path) {
                self.spend(cut.len())?;
                push_new(&mut again, cut);
            }
        }
        if self.is_encoded_again {
            for path in once.iter().filter(|path| path.contains('%')) {
                for separators in [Separators::Literal, Separators::Decoded] {
                    let path = decode(path, separators, Controls::Kept)?;
                    self.spend(path.len())?;
                    push_new(&mut again, path);
                }
            }
        }
        let again = self.either(again, cut)?;
        let has_control = |path: &String| path.bytes().any(|byte| byte < 0x20 || byte == 0x7f);
        let again = self.finished(again)?.into_iter();
        let again = again.filter(|path| !has_control(path)).map(|text| Reading {
            text,
            is_decoded: true,
        });
        let again: Vec<_> = again
            .filter(|reading| !self.found.contains(reading))
            .collect();
        self.found.splice(..0, again);
        Ok(())
    }

    /// Adds for each path the results of dropping a host, merging `//` and resolving dot segments.
    fn resolved(&mut self, paths: Vec<String>) -> Result<Vec<String>, BadPathError> {
        let paths = self.without_host(paths)?;
        let paths = self.either(paths, |path| path.contains("//").then(|| merge(path)))?;
        let mut climbs = false;
        let paths = self.either(paths, |path| {
            let (path, can_escape) = path.contains("/.").then(|| resolve(path))?;
            climbs |= can_escape;
            Some(path)
        })?;
        self.can_escape |= climbs;
        Ok(paths)
    }

    /// Adds each path without a host, before the path itself: the normal form keeps the host.
    fn without_host(&mut self, paths: Vec<String>) -> Result<Vec<String>, BadPathError> {
        let mut both = Vec::with_capacity(paths.len());
        for path in paths {
            if let Some(bare) = drop_host(&path) {
                self.spend(bare.len())?;
                self.can_escape = true;
                push_new(&mut both, bare);
            }
            push_new(&mut both, path);
        }
        Ok(both)
    }

    /// Adds for each path the result of `step`.
    fn either(
        &mut self,
        paths: Vec<String>,
        mut step: impl FnMut(&str) -> Option<String>,
    ) -> Result<Vec<String>, BadPathError> {
        let mut both = Vec::with_capacity(paths.len());
        for path in paths {
            let stepped = step(&path);
            push_new(&mut both, path);
            if let Some(stepped) = stepped {
                self.spend(stepped.len())?;
                push_new(&mut both, stepped);
            }
        }
        Ok(both)
    }

    fn spend(&mut self, bytes: usize) -> Result<(), BadPathError> {
        // Each reading also costs an allocation and a few look-ups, even if it is short.
        self.spent += bytes + 256;
        if self.spent > READING_BYTES_MAX {
            return Err(BadPathError::TooManyReadings);
        }
        Ok(())
    }
}

fn push_new(paths: &mut Vec<String>, path: String) {
    paths.retain(|known| *known != path);
    paths.push(path);
}

/// Turns `/a\b` into `/a/b`.
fn turn_backslashes(path: &str) -> Option<String> {
    path.contains('\\').then(|| path.replace('\\', "/"))
}

/// Turns `/a;x=1/b` into `/a/b`.
fn drop_params(path: &str) -> Option<String> {
    if !path.contains(';') {
        return None;
    }
    let segments = path.split('/');
    let bare = segments.map(|segment| segment.split(';').next().unwrap_or_default());
    Some(bare.collect::<Vec<_>>().join("/"))
}

/// Turns `//a/b` and `///a/b` into `/b`.
fn drop_host(path: &str) -> Option<String> {
    let host = path.strip_prefix("//")?.trim_start_matches('/');
    let end = host.find('/').unwrap_or(host.len());
    Some(format!("/{}", host[end..].trim_start_matches('/')))
}

/// Turns `/a?b`, `/a#b` and `/a\0b` into `/a`.
fn cut(path: &str) -> Option<String> {
    let is_end = |byte: u8| matches!(byte, b'?' | b'#' | 0..0x20 | 0x7f);
    let end = path.bytes().position(is_end)?;
    Some(path[..end].to_owned())
}

/// Turns `//a///b` into `/a/b`.
fn merge(path: &str) -> String {
    let mut merged = String::with_capacity(path.len());
    for character in path.chars() {
        if character != '/' || !merged.ends_with('/') {
            merged.push(character);
        }
    }
    merged
}

/// Resolves `.` and `..`, and returns whether there was a `..`.
fn resolve(path: &str) -> (String, bool) {
    let mut kept: Vec<&str> = Vec::new();
    let mut climbs = false;
    let mut ends_open = false;
    for segment in path.split('/').skip(1) {
        ends_open = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => {
                climbs = true;
                kept.pop();
            }
            _ => kept.push(segment),
        }
    }
    let mut resolved = String::with_capacity(path.len());
    for segment in &kept {
        resolved.push('/');
        resolved.push_str(segment);
    }
    if ends_open || kept.is_empty() {
        resolved.push('/');
    }
    (resolved, climbs)
}

#[cfg(test)]
mod tests;
