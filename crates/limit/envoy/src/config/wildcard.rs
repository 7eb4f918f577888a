//! Patterns in which each `*` stands for any text, including none.

/// Pattern, cut at its `*`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Pattern {
    /// Text at the beginning.
    prefix: Box<str>,
    /// Texts between, in this order and without overlap; none of them empty.
    middle: Box<[Box<str>]>,
    /// Text at the end.
    suffix: Box<str>,
}

impl Pattern {
    /// Parses a pattern; `None` if `text` has no `*`.
    pub(crate) fn new(text: &str) -> Option<Self> {
        let (prefix, rest) = text.split_once('*')?;
        let (middle, suffix) = rest.rsplit_once('*').unwrap_or(("", rest));
        let middle = middle.split('*').filter(|part| !part.is_empty());
        Some(Self {
            prefix: prefix.into(),
            middle: middle.map(Box::from).collect(),
            suffix: suffix.into(),
        })
    }

    /// Whether `text` matches. Nothing is copied. Each part is searched for behind the one before,
    /// so that they do not overlap.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let Some(rest) = text.strip_prefix(&*self.prefix) else {
            return false;
        };
        let Some(mut rest) = rest.strip_suffix(&*self.suffix) else {
            return false;
        };
        // The first position is the best: it leaves most for the parts behind it.
        for part in &self.middle {
            let Some(at) = rest.find(&**part) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(pattern: &str, fits: &[&str], fits_not: &[&str]) {
        let pattern = Pattern::new(pattern).unwrap();
        for text in fits {
            assert!(pattern.matches(text), "{pattern:?} {text}");
        }
        for text in fits_not {
            assert!(!pattern.matches(text), "{pattern:?} {text}");
        }
    }

    #[test]
    fn the_reference_services_own_examples_hold() {
        check("foo*", &["foo", "foo1", "foo*"], &["bar", "fo", "xfoo"]);
        check("bar*b", &["barab", "bar123b", "barb"], &["bara", "xbarb"]);
        check(
            "foo*bar*baz",
            &["foo123bar456baz", "foobarbaz"],
            &["foo123baz", "bar456baz"],
        );
        check(
            "/api*v1",
            &["/api/v1", "/api-beta-v1", "/apiXYZv1"],
            &["/api/v2"],
        );
        check(
            "svc*ep*rpc",
            &["svcAepBrpc", "svcLongepLongerrpc", "svceprpc"],
            &["svcABCrpc"],
        );
    }

    #[test]
    fn parts_do_not_overlap() {
        check("ab*ba", &["abba", "abxba"], &["aba"]);
        check("a*aa*a", &["aaaa"], &["aaa"]);
        check("**", &["", "x"], &[]);
        check("a**b", &["ab", "axb"], &["a", "b"]);
        check("*é*", &["é", "xéy"], &["e"]);
    }

    #[test]
    fn a_text_without_a_star_is_no_pattern() {
        assert_eq!(Pattern::new("foo"), None);
        assert_eq!(Pattern::new(""), None);
    }

    /// Matches by trying everything that a star could stand for.
    fn naive(pattern: &[char], text: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('*', rest)) => (0..=text.len()).any(|from| naive(rest, &text[from..])),
            Some((first, rest)) => text
                .split_first()
                .is_some_and(|(character, behind)| character == first && naive(rest, behind)),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn patterns_match_like_a_naive_matcher(
            pattern in "[ab*é]{0,4}\\*[ab*é]{0,4}", text in "[abé]{0,9}"
        ) {
            let characters = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = naive(&characters(&pattern), &characters(&text));
            prop_assert_eq!(Pattern::new(&pattern).unwrap().matches(&text), expected);
        }

        #[test]
        fn a_pattern_matches_any_filling_of_its_stars(
            pattern in "[ab*]{0,6}\\*[ab*]{0,6}", filling in "[ab]{0,3}"
        ) {
            prop_assert!(Pattern::new(&pattern).unwrap().matches(&pattern.replace('*', &filling)));
        }
    }
}
