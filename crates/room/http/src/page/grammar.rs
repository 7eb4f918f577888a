//! How does a language write numbers and lengths of time?
//!
//! Plural categories and the rules that choose them are those of Unicode's CLDR for whole numbers.
//! What is said with them is in `texts`.

/// A plural category.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Category {
    Zero,
    One,
    Two,
    Few,
    Many,
    Other,
}

/// The forms of "so many units", by category; `Other` is the last one and the only one that must
/// name the number.
pub(crate) type Forms = &'static [(Category, &'static str)];

/// A unit of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// As it stands alone: "5 minutes".
    pub(crate) alone: Forms,
    /// As it stands behind "up to", "within", "more than".
    pub(crate) bound: Forms,
}

impl Unit {
    /// A unit of a language that does not inflect it.
    pub(crate) const fn plain(forms: Forms) -> Self {
        Self {
            alone: forms,
            bound: forms,
        }
    }
}

/// A text with `value` wherever `mark` stands, which begins with a brace.
pub(crate) fn filled(text: &str, mark: &str, value: &str) -> String {
    let mut whole = String::with_capacity(text.len() + value.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'{', rest.as_bytes()) {
        let (before, from) = rest.split_at(at);
        whole.push_str(before);
        rest = match from.strip_prefix(mark) {
            Some(after) => {
                whole.push_str(value);
                after
            }
            None => {
                whole.push('{');
                &from[1..]
            }
        };
    }
    whole.push_str(rest);
    whole
}

/// How a language writes numbers and lengths of time.
pub(crate) struct Grammar {
    /// What stands between thousands.
    pub(crate) separator: &'static str,
    /// From how many digits on it stands there.
    pub(crate) digits_grouped: usize,
    /// Which form a number takes.
    pub(crate) category: fn(u64) -> Category,
    pub(crate) seconds: Unit,
    pub(crate) minutes: Unit,
    pub(crate) hours: Unit,
    pub(crate) days: Unit,
}

/// One form for all numbers: Japanese, Korean, Chinese.
pub(crate) const fn always_other(_: u64) -> Category {
    Category::Other
}

/// English, German, Dutch, Italian, Swedish, Turkish; Spanish below a million.
pub(crate) const fn one_or_other(n: u64) -> Category {
    if n == 1 {
        Category::One
    } else {
        Category::Other
    }
}

/// French and Brazilian Portuguese, below a million: 0 and 1 are singular.
pub(crate) const fn one_with_zero(n: u64) -> Category {
    if n <= 1 {
        Category::One
    } else {
        Category::Other
    }
}

/// Hebrew.
pub(crate) const fn one_two_other(n: u64) -> Category {
    match n {
        1 => Category::One,
        2 => Category::Two,
        _ => Category::Other,
    }
}

/// Polish. No whole number is `other` there; it stands for `many`, which is the last form.
pub(crate) const fn polish(n: u64) -> Category {
    match (n, n % 10, n % 100) {
        (1, ..) => Category::One,
        (_, 2..=4, hundred) if hundred < 12 || hundred > 14 => Category::Few,
        _ => Category::Other,
    }
}

/// Russian and Ukrainian. No whole number is `other` there; it stands for `many`.
pub(crate) const fn east_slavic(n: u64) -> Category {
    match (n % 10, n % 100) {
        (1, hundred) if hundred != 11 => Category::One,
        (2..=4, hundred) if hundred < 12 || hundred > 14 => Category::Few,
        _ => Category::Other,
    }
}

/// Arabic.
pub(crate) const fn arabic(n: u64) -> Category {
    match (n, n % 100) {
        (0, _) => Category::Zero,
        (1, _) => Category::One,
        (2, _) => Category::Two,
        (_, 3..=10) => Category::Few,
        (_, 11..=99) => Category::Many,
        _ => Category::Other,
    }
}

impl Grammar {
    /// A number with its thousands apart.
    pub(crate) fn count(&self, n: u64) -> String {
        let digits = n.to_string();
        let is_grouped = digits.len() >= self.digits_grouped;
        let mut text = String::with_capacity(digits.len() + 8);
        for (i, digit) in digits.chars().enumerate() {
            if is_grouped && i > 0 && (digits.len() - i).is_multiple_of(3) {
                text.push_str(self.separator);
            }
            text.push(digit);
        }
        text
    }

    /// So many of a unit.
    pub(crate) fn units(&self, n: u64, forms: Forms) -> String {
        filled(self.form(n, forms), "{n}", &self.count(n))
    }

    /// From so many to so many of a unit; the second one inflects it. A dual names no number, so a
    /// range that ends with one takes the general form.
    pub(crate) fn unit_range(&self, low: u64, high: u64, forms: Forms) -> String {
        let form = self.form(high, forms);
        let form = if form.contains("{n}") {
            form
        } else {
            forms.last().map_or("{n}", |(_, form)| form)
        };
        let range = format!("{}\u{2013}{}", self.count(low), self.count(high));
        filled(form, "{n}", &range)
    }

    fn form(&self, n: u64, forms: Forms) -> &'static str {
        let wanted = (self.category)(n);
        let found = forms.iter().find(|(category, _)| *category == wanted);
        found
            .or_else(|| forms.last())
            .map_or("{n}", |(_, form)| form)
    }
}

#[cfg(test)]
mod tests {
    use anteroom_config::language::Language;

    use crate::page::texts::Texts;

    #[track_caller]
    fn check(language: Language, expected: &[(u64, &str)]) {
        let grammar = &Texts::of(language).grammar;
        for (n, text) in expected {
            assert_eq!(grammar.units(*n, grammar.minutes.alone), *text);
        }
    }

    #[test]
    fn minutes_have_the_plural_that_the_number_takes() {
        check(
            Language::English,
            &[(0, "0 minutes"), (1, "1 minute"), (2, "2 minutes")],
        );
        check(
            Language::French,
            &[(0, "0 minute"), (1, "1 minute"), (2, "2 minutes")],
        );
        check(
            Language::Russian,
            &[
                (1, "1 минута"),
                (2, "2 минуты"),
                (5, "5 минут"),
                (11, "11 минут"),
                (12, "12 минут"),
                (21, "21 минута"),
                (22, "22 минуты"),
                (112, "112 минут"),
            ],
        );
        check(
            Language::Polish,
            &[
                (1, "1 minuta"),
                (2, "2 minuty"),
                (5, "5 minut"),
                (12, "12 minut"),
                (21, "21 minut"),
                (22, "22 minuty"),
            ],
        );
        check(
            Language::Arabic,
            &[
                (0, "0 دقيقة"),
                (1, "دقيقة واحدة"),
                (2, "دقيقتان"),
                (3, "3 دقائق"),
                (10, "10 دقائق"),
                (11, "11 دقيقة"),
                (100, "100 دقيقة"),
                (103, "103 دقائق"),
            ],
        );
        check(
            Language::Hebrew,
            &[(1, "דקה אחת"), (2, "שתי דקות"), (3, "3 דקות")],
        );
        check(Language::Japanese, &[(1, "1分"), (2, "2分")]);
    }

    #[test]
    fn a_range_that_ends_with_a_dual_still_names_both_ends() {
        for (language, expected) in [
            (Language::Arabic, "1\u{2013}2 دقيقة"),
            (Language::Hebrew, "1\u{2013}2 דקות"),
            (Language::Russian, "1\u{2013}2 минуты"),
        ] {
            let grammar = &Texts::of(language).grammar;
            assert_eq!(grammar.unit_range(1, 2, grammar.minutes.alone), expected);
        }
    }

    #[test]
    fn thousands_stand_apart_as_the_language_does_it() {
        for (language, four, seven) in [
            (Language::English, "1,204", "1,204,000"),
            (Language::German, "1.204", "1.204.000"),
            (Language::French, "1\u{202f}204", "1\u{202f}204\u{202f}000"),
            (Language::Spanish, "1204", "1.204.000"),
            (Language::Polish, "1204", "1\u{a0}204\u{a0}000"),
        ] {
            let grammar = &Texts::of(language).grammar;
            assert_eq!(grammar.count(1_204), four);
            assert_eq!(grammar.count(1_204_000), seven);
            assert_eq!(grammar.count(999), "999");
        }
    }
}
