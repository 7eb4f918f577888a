//! Lenient parser of the `Accept-Language` header.
//!
//! RFC 9110, section 12.5.4, with the lookup of RFC 4647, section 3.4: a range is shortened from
//! its end until a supported language matches. A malformed header is read as far as possible.

use anteroom_config::language::Language;

/// Maximum ranges of one header that are read. Browsers send up to ten; more would only cost time.
const RANGES_MAX: usize = 32;

/// Language of a range.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Wanted {
    /// `*`
    Any,
    /// Language, if it is supported.
    One(Option<Language>),
}

/// Returns the language for a browser with this `Accept-Language`, `None` if it accepts no
/// supported one. The highest weight wins, the first of equals. A language of weight 0 is not
/// chosen for `*` either.
#[must_use]
pub(super) fn language_of(header: &str) -> Option<Language> {
    best(header.split(',').take(RANGES_MAX).filter_map(range))
}

/// Finds the best range in one pass, so that a long header costs linear time.
fn best(ranges: impl Iterator<Item = (Wanted, u32)>) -> Option<Language> {
    let mut excluded = Vec::new();
    let mut wanted = Vec::new();
    for (what, weight) in ranges {
        match what {
            Wanted::One(language) if weight == 0 => excluded.extend(language),
            _ => wanted.push((what, weight)),
        }
    }
    let any = any_but(&excluded);
    let mut best: Option<(u32, Language)> = None;
    for (what, weight) in wanted.into_iter().filter(|(_, weight)| *weight > 0) {
        let found = match what {
            Wanted::Any => any,
            Wanted::One(language) => language,
        };
        let is_better = best.is_none_or(|(most, _)| weight > most);
        if let Some(language) = found.filter(|_| is_better) {
            best = Some((weight, language));
        }
    }
    best.map(|(_, language)| language)
}

/// Returns English, or the first other language that is not excluded.
fn any_but(excluded: &[Language]) -> Option<Language> {
    let english_first = std::iter::once(Language::English).chain(Language::ALL);
    english_first
        .into_iter()
        .find(|language| !excluded.contains(language))
}

/// Parses a range and its weight in thousandths.
fn range(member: &str) -> Option<(Wanted, u32)> {
    let mut parts = member.split(';').map(str::trim);
    let tag = parts.next().filter(|tag| !tag.is_empty())?;
    let weight = parts
        .find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("q").then(|| value.trim())
        })
        .map_or(Some(1_000), weight);
    let wanted = match tag {
        "*" => Wanted::Any,
        tag => Wanted::One(of_range(tag)),
    };
    Some((wanted, weight?))
}

/// Parses a weight such as `0.8` to thousandths; `None` if it is malformed.
fn weight(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole: u32 = whole.parse().ok().filter(|whole| *whole <= 1)?;
    if part.len() > 3 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths: u32 = format!("{part:0<3}").parse().ok()?;
    Some((whole * 1_000 + thousandths).min(1_000))
}

/// Looks up the language of a range.
fn of_range(range: &str) -> Option<Language> {
    let primary = range.split('-').next().unwrap_or_default();
    match primary.to_ascii_lowercase().as_str() {
        // The script decides; without one, the region does.
        "zh" => Some(chinese(range)),
        // Code of Hebrew before 1989, which some browsers still send.
        "iw" => Some(Language::Hebrew),
        primary => Language::of_tag(primary),
    }
}

fn chinese(range: &str) -> Language {
    let mut subtags = range.split('-').skip(1);
    let is_traditional = |subtag: &str| {
        ["hant", "tw", "hk", "mo"]
            .iter()
            .any(|known| subtag.eq_ignore_ascii_case(known))
    };
    let is_simplified = |subtag: &str| subtag.eq_ignore_ascii_case("hans");
    let subtag = subtags.find(|subtag| is_traditional(subtag) || is_simplified(subtag));
    match subtag {
        Some(subtag) if is_traditional(subtag) => Language::TraditionalChinese,
        _ => Language::SimplifiedChinese,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(header: &str, expected: Option<Language>) {
        assert_eq!(language_of(header), expected, "{header}");
    }

    #[test]
    fn the_highest_weight_that_we_have_wins() {
        check("de", Some(Language::German));
        check("de-AT,de;q=0.9,en;q=0.8", Some(Language::German));
        check("en;q=0.5, fr;q=0.9", Some(Language::French));
        check("fi, sv;q=0.7, en;q=0.6", Some(Language::Swedish));
        check("es-419,es;q=0.9", Some(Language::Spanish));
        check("fr;q=0.8,it;q=0.8", Some(Language::French));
        check("tlh", None);
        check("", None);
    }

    #[test]
    fn a_weight_of_zero_excludes_a_language() {
        check("de;q=0", None);
        check("de;q=0, en;q=0.1", Some(Language::English));
        check("*, en;q=0", Some(Language::Arabic));
        check("*", Some(Language::English));
        check("fi, *;q=0.5", Some(Language::English));
    }

    #[test]
    fn a_star_does_not_match_an_excluded_language() {
        let exclusions = Language::ALL.map(|language| format!("{};q=0", language.tag()));
        let exclusions = exclusions.join(",");
        check(&format!("*,{exclusions}"), None);
        check(
            &format!("{exclusions},*;q=0.2,*;q=0.3,sv;q=0.1"),
            Some(Language::Swedish),
        );
        check("*;q=0", None);
        check("*;q=0.3,de;q=0.3,fr;q=0.2", Some(Language::English));
    }

    #[test]
    fn a_header_of_stars_and_exclusions_is_read_once() {
        let all = Language::ALL.map(|language| (Wanted::One(Some(language)), 0));
        let stars = (1..=14).map(|weight| (Wanted::Any, weight));
        let mut taken = 0;
        let ranges = all.into_iter().chain(stars).inspect(|_| taken += 1);
        assert_eq!(best(ranges), None);
        assert_eq!(taken, RANGES_MAX);
    }

    #[test]
    fn scripts_regions_and_old_names_are_understood() {
        check("zh", Some(Language::SimplifiedChinese));
        check("zh-CN", Some(Language::SimplifiedChinese));
        check("zh-TW", Some(Language::TraditionalChinese));
        check("zh-Hant-HK", Some(Language::TraditionalChinese));
        check("zh-Hans-TW", Some(Language::SimplifiedChinese));
        check("zh-HK", Some(Language::TraditionalChinese));
        check("pt-PT", Some(Language::Portuguese));
        check("iw-IL", Some(Language::Hebrew));
        check("DE-ch", Some(Language::German));
    }

    #[test]
    fn a_range_with_a_malformed_weight_is_ignored() {
        check("de;q=2, en", Some(Language::English));
        check("de;q=x, en;q=0.2", Some(Language::English));
        check("de;q=0.12345, fr", Some(Language::French));
        check("de ; Q = 0.3 , fr ;q=0.2", Some(Language::German));
        check(",;,,q=1,en", Some(Language::English));
    }

    proptest::proptest! {
        #[test]
        fn any_header_is_read_without_a_panic(header in "([a-z]{1,3}|[-,;=. \
                                                         *]|q=|[0-9.]|\\PC){0,40}") {
            let _ = language_of(&header);
        }
    }

    #[test]
    fn a_long_header_is_read_up_to_the_maximum() {
        let header = "xx,".repeat(10_000) + "de";
        check(&header, None);
    }
}
