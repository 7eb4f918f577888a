//! Numbers and durations in a language.
//!
//! Plural categories and their rules are those of Unicode's CLDR for whole numbers. The texts are
//! in `texts`.

/// Plural category.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Category {
    Zero,
    One,
    Two,
    Few,
    Many,
    Other,
}

/// Forms of a unit with its number, by category. `Other` is the last one, and the only one that
/// must contain `{n}`.
pub(crate) type Forms = &'static [(Category, &'static str)];

/// Unit of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// Forms without a preposition: "5 minutes".
    pub(crate) alone: Forms,
    /// Forms after "up to", "within", "more than".
    pub(crate) bound: Forms,
}

impl Unit {
    /// Returns a unit that the language does not inflect.
    pub(crate) const fn plain(forms: Forms) -> Self {
        Self {
            alone: forms,
            bound: forms,
        }
    }
}

/// Replaces every `placeholder` in a text by `value`. The placeholder begins with a brace.
pub(crate) fn filled(text: &str, placeholder: &str, value: &str) -> String {
    let mut whole = String::with_capacity(text.len() + value.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'{', rest.as_bytes()) {
        let (before, from) = rest.split_at(at);
        whole.push_str(before);
        rest = match from.strip_prefix(placeholder) {
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

/// Rules by which a language writes numbers and durations.
pub(crate) struct Grammar {
    /// Separator of thousands.
    pub(crate) separator: &'static str,
    /// Least number of digits with a separator.
    pub(crate) digits_grouped: usize,
    /// Rule that returns the plural category of a number.
    pub(crate) category: fn(u64) -> Category,
    pub(crate) seconds: Unit,
    pub(crate) minutes: Unit,
    pub(crate) hours: Unit,
    pub(crate) days: Unit,
}

/// Rule with one form for all numbers: Japanese, Korean, Chinese.
pub(crate) const fn always_other(_: u64) -> Category {
    Category::Other
}

/// Rule of English, German, Dutch, Italian, Swedish, Turkish, and of Spanish below a million.
pub(crate) const fn one_or_other(n: u64) -> Category {
    if n == 1 {
        Category::One
    } else {
        Category::Other
    }
}

/// Rule of French and Brazilian Portuguese below a million: 0 and 1 are singular.
pub(crate) const fn one_with_zero(n: u64) -> Category {
    if n <= 1 {
        Category::One
    } else {
        Category::Other
    }
}

/// Rule of Hebrew.
pub(crate) const fn one_two_other(n: u64) -> Category {
    match n {
        1 => Category::One,
        2 => Category::Two,
        _ => Category::Other,
    }
}

/// Rule of Polish. No whole number is `other` there; it stands for `many`, which is the last form.
pub(crate) const fn polish(n: u64) -> Category {
    match (n, n % 10, n % 100) {
        (1, ..) => Category::One,
        (_, 2..=4, hundred) if hundred < 12 || hundred > 14 => Category::Few,
        _ => Category::Other,
    }
}

/// Rule of Russian and Ukrainian. No whole number is `other` there; it stands for `many`.
pub(crate) const fn east_slavic(n: u64) -> Category {
    match (n % 10, n % 100) {
        (1, hundred) if hundred != 11 => Category::One,
        (2..=4, hundred) if hundred < 12 || hundred > 14 => Category::Few,
        _ => Category::Other,
    }
}

/// Rule of Arabic.
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
    /// Formats a number with separators of thousands.
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

    /// Formats a number of units.
    pub(crate) fn units(&self, n: u64, forms: Forms) -> String {
        filled(self.form(n, forms), "{n}", &self.count(n))
    }

    /// Formats a range of units, in the form of its upper end. A dual form contains no number, so a
    /// range that ends with one takes the general form.
    pub(crate) fn unit_range(&self, range: &str, low: u64, high: u64, forms: Forms) -> String {
        let form = self.form(high, forms);
        let form = if form.contains("{n}") {
            form
        } else {
            forms.last().map_or("{n}", |(_, form)| form)
        };
        let range = filled(range, "{from}", &self.count(low));
        let range = filled(&range, "{to}", &self.count(high));
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
    fn minutes_have_the_plural_of_their_number() {
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
    fn a_range_that_ends_with_a_dual_has_both_numbers() {
        for (language, expected) in [
            (Language::Arabic, "1\u{2013}2 دقيقة"),
            (Language::Hebrew, "1\u{2013}2 דקות"),
            (Language::Russian, "1\u{2013}2 минуты"),
        ] {
            let grammar = &Texts::of(language).grammar;
            let range = "{from}\u{2013}{to}";
            let found = grammar.unit_range(range, 1, 2, grammar.minutes.alone);
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn thousands_are_separated_as_in_the_language() {
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
