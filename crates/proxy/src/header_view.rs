//! Headers of a request, in a map or as the parser found them.
//!
//! Decisions read headers through this view. So the fast path, which makes no map, and the layers
//! decide alike.

use http::header::{HeaderName, ValueIter};
use http::{HeaderMap, HeaderValue};

/// Header lines of a request: name and value.
pub(crate) type Line<'a> = httparse::Header<'a>;

/// Headers of a request. Names compare without case.
#[derive(Clone, Copy, Debug)]
pub struct HeaderView<'a>(Source<'a>);

#[derive(Clone, Copy, Debug)]
enum Source<'a> {
    Map(&'a HeaderMap),
    Lines(&'a [Line<'a>]),
}

impl<'a> From<&'a HeaderMap> for HeaderView<'a> {
    fn from(map: &'a HeaderMap) -> Self {
        Self(Source::Map(map))
    }
}

impl<'a> HeaderView<'a> {
    /// Creates a view of lines in the order in which they came.
    pub(crate) const fn of_lines(lines: &'a [Line<'a>]) -> Self {
        Self(Source::Lines(lines))
    }

    /// Returns the first value of a header.
    #[must_use]
    pub fn get(self, name: &HeaderName) -> Option<&'a [u8]> {
        self.get_all(name).next()
    }

    /// Returns the first value of a header as text; `None` unless it is visible ASCII, blanks and
    /// tabs.
    #[must_use]
    pub fn text(self, name: &HeaderName) -> Option<&'a str> {
        visible(self.get(name)?)
    }

    /// Returns all names and values, those of one name in their order.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        let (map, lines) = match self.0 {
            Source::Map(map) => (Some(map), &[][..]),
            Source::Lines(lines) => (None, lines),
        };
        let of_map = map.into_iter().flatten();
        let of_map = of_map.map(|(name, value)| (name.as_str(), value.as_bytes()));
        of_map.chain(lines.iter().map(|line| (line.name, line.value)))
    }

    /// Returns all values of a header, in their order.
    #[must_use]
    pub fn get_all<'n>(self, name: &'n HeaderName) -> Values<'a, 'n> {
        match self.0 {
            Source::Map(map) => Values::Map(map.get_all(name).iter()),
            Source::Lines(lines) => Values::Lines(lines.iter(), name.as_str()),
        }
    }
}

/// Values of one header.
#[derive(Debug)]
pub enum Values<'a, 'n> {
    #[doc(hidden)]
    Map(ValueIter<'a, HeaderValue>),
    #[doc(hidden)]
    Lines(std::slice::Iter<'a, Line<'a>>, &'n str),
}

impl<'a> Iterator for Values<'a, '_> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            Self::Map(values) => values.next().map(HeaderValue::as_bytes),
            Self::Lines(lines, name) => lines
                .find(|line| line.name.eq_ignore_ascii_case(name))
                .map(|line| line.value),
        }
    }
}

impl DoubleEndedIterator for Values<'_, '_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match self {
            Self::Map(values) => values.next_back().map(HeaderValue::as_bytes),
            Self::Lines(lines, name) => lines
                .rfind(|line| line.name.eq_ignore_ascii_case(name))
                .map(|line| line.value),
        }
    }
}

/// Returns a value as text, if it is visible ASCII, blanks and tabs.
pub(crate) fn visible(value: &[u8]) -> Option<&str> {
    let is_visible = |byte: &u8| matches!(byte, b' '..=b'~' | b'\t');
    let value = Some(value).filter(|value| value.iter().all(is_visible))?;
    std::str::from_utf8(value).ok()
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, COOKIE, HOST};

    use super::*;

    #[test]
    fn lines_and_a_map_of_them_look_alike() {
        let line = |name, value: &'static str| Line {
            name,
            value: value.as_bytes(),
        };
        let lines = [
            line("Host", "a"),
            line("COOKIE", "x=1"),
            line("cookie", "y=2"),
        ];
        let mut map = HeaderMap::new();
        for line in &lines {
            let name = HeaderName::from_bytes(line.name.as_bytes()).unwrap();
            map.append(name, HeaderValue::from_bytes(line.value).unwrap());
        }
        for view in [HeaderView::of_lines(&lines), HeaderView::from(&map)] {
            assert_eq!(view.get(&HOST), Some(&b"a"[..]));
            let cookies: Vec<_> = view.get_all(&COOKIE).collect();
            assert_eq!(cookies, [b"x=1", b"y=2"]);
            let backwards: Vec<_> = view.get_all(&COOKIE).rev().collect();
            assert_eq!(backwards, [b"y=2", b"x=1"]);
            assert_eq!(view.get(&ACCEPT), None);
            let named = view
                .iter()
                .map(|(name, value)| (name.to_lowercase(), value));
            let named: Vec<_> = named.collect();
            assert_eq!(named.len(), 3);
            assert_eq!(named[1], ("cookie".to_owned(), &b"x=1"[..]));
        }
    }
}
