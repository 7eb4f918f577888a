//! Completeness of the texts of all languages.

use std::collections::BTreeSet;

use super::*;
use crate::page::grammar::Category;

fn placeholders(text: &str) -> BTreeSet<&str> {
    let parts = text.split('{').skip(1);
    parts.map(|rest| rest.split('}').next().unwrap()).collect()
}

#[test]
fn every_language_has_every_text_with_the_placeholders_of_english() {
    let english = Texts::of(Language::English).all();
    for language in Language::ALL {
        for ((name, text), (_, in_english)) in Texts::of(language).all().iter().zip(&english) {
            assert!(!text.trim().is_empty(), "{language:?} has no {name}");
            assert_eq!(
                text.trim(),
                *text,
                "{language:?} {name} has blanks around it"
            );
            // The grammar of a language may not allow the operator's word.
            let (mut found, mut expected) = (placeholders(text), placeholders(in_english));
            if !found.contains("noun") {
                expected.remove("noun");
            }
            found.retain(|name| *name != "noun" || expected.contains("noun"));
            assert_eq!(found, expected, "{language:?} {name}");
            assert!(!text.contains("  "), "{language:?} {name} has two blanks");
            assert!(
                !text.contains('<') && !text.contains('&'),
                "{language:?} {name}: markup"
            );
        }
    }
}

#[test]
fn no_text_is_left_in_english_and_no_two_languages_are_equal() {
    let english = Texts::of(Language::English).all();
    for language in Language::ALL {
        if language == Language::English {
            continue;
        }
        for ((name, text), (_, in_english)) in Texts::of(language).all().iter().zip(&english) {
            // Short words are the same in some languages, such as "Notification".
            let may_be_equal = in_english.chars().count() < 13;
            assert!(may_be_equal || text != in_english, "{language:?} {name}");
        }
    }
    let explanations: BTreeSet<_> = Language::ALL.iter().map(|l| Texts::of(*l).moving).collect();
    assert_eq!(explanations.len(), Language::ALL.len());
}

#[test]
fn no_language_has_a_text_twice() {
    for language in Language::ALL {
        let mut seen = BTreeSet::new();
        for (name, text) in Texts::of(language).all() {
            assert!(seen.insert(text), "{language:?} has {name} already: {text}");
        }
    }
}

#[test]
fn every_unit_has_exactly_the_forms_that_numbers_take() {
    for language in Language::ALL {
        let grammar = &Texts::of(language).grammar;
        let taken: BTreeSet<Category> = (0..=1_000).map(|n| (grammar.category)(n)).collect();
        for unit in [
            grammar.seconds,
            grammar.minutes,
            grammar.hours,
            grammar.days,
        ] {
            for forms in [unit.alone, unit.bound] {
                let present: BTreeSet<Category> = forms.iter().map(|(c, _)| *c).collect();
                assert_eq!(present, taken, "{language:?} {forms:?}");
                assert_eq!(present.len(), forms.len(), "{language:?} {forms:?}");
                let last = forms.last().unwrap();
                assert_eq!(last.0, Category::Other, "{language:?} {forms:?}");
                assert!(last.1.contains("{n}"), "{language:?} {forms:?}");
            }
        }
    }
}
