//! Rules about words: short sentences, words of the field, and doc comments that stand alone.

use super::problem::Problem;
use super::prose::{Kind, Passage, passages, sentences};
use super::source::SourceFile;

/// Most words of a sentence.
const SENTENCE_WORDS_MAX: usize = 25;

/// Withdrawn words, and their replacements.
const WITHDRAWN: &[(&str, &str)] = &[
    ("crowd", "visitors, load generator, or overflow entry"),
    ("crowded", "full, or overflow"),
    ("dice", "random numbers"),
    ("doorway", "listener"),
    ("errand", "upstream sync"),
    ("judge", "checker"),
    ("judges", "checkers, or checks"),
    ("lend", "lease, or grant"),
    ("lending", "leasing, or granting"),
    ("lends", "leases, or grants"),
    ("lent", "leased, or granted"),
    ("outlook", "snapshot"),
    ("prolong", "extend"),
    ("prolonged", "extended"),
    ("prolongs", "extends"),
    ("referee", "oracle"),
    ("tally", "counters"),
    ("thereby", "a sentence of its own"),
    ("told", "reply, report, or the actor and what it says"),
    ("whoever", "the actor"),
    ("whom", "the actor"),
];

/// First words of doc comments that are questions or fragments of sentences.
const OPENINGS: &[&str] = &[
    "And",
    "As",
    "At",
    "Because",
    "But",
    "By",
    "For",
    "From",
    "He",
    "How",
    "If",
    "In",
    "It",
    "Its",
    "Like",
    "Likewise",
    "Neither",
    "Nobody",
    "Nor",
    "Not",
    "Of",
    "On",
    "Or",
    "She",
    "So",
    "Somebody",
    "Something",
    "That",
    "Then",
    "There",
    "They",
    "To",
    "Too",
    "Until",
    "We",
    "What",
    "When",
    "Whenever",
    "Where",
    "Wherever",
    "Which",
    "Whichever",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "Why",
    "With",
    "Without",
    "You",
];

/// Checks the prose of a page or of a Rust file.
pub(super) fn prose_is_not_plain(file: &SourceFile) -> Vec<Problem> {
    let passages = passages(file);
    let problems = passages.iter().flat_map(|passage| {
        let long = long_sentences(file, passage);
        let withdrawn = withdrawn_words(file, passage);
        long.into_iter()
            .chain(withdrawn)
            .chain(fragment(file, passage))
    });
    problems.collect()
}

/// Returns the long sentences of pages and of texts for people.
fn long_sentences(file: &SourceFile, passage: &Passage) -> Vec<Problem> {
    if !matches!(passage.kind, Kind::Page | Kind::Text) {
        return Vec::new();
    }
    let mut parts = sentences(&passage.text);
    if passage.kind == Kind::Text {
        // In errors a semicolon stands between the fact and the next step.
        parts = parts.iter().flat_map(|part| part.split("; ")).collect();
    }
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    let counted = parts.into_iter().map(|sentence| {
        let words = sentence.split_whitespace().filter(is_word);
        (words.count(), sentence)
    });
    counted
        .filter(|(words, _)| *words > SENTENCE_WORDS_MAX)
        .map(|(words, sentence)| {
            let what = format!(
                "a sentence of {words} words, {SENTENCE_WORDS_MAX} are the most: {}",
                shortened(sentence)
            );
            problem(file, passage, what, "make two of it")
        })
        .collect()
}

/// Returns the withdrawn words in pages, doc comments and texts.
fn withdrawn_words(file: &SourceFile, passage: &Passage) -> Vec<Problem> {
    let words = passage
        .text
        .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
    let withdrawn = words.filter_map(|word| {
        let mut rows = WITHDRAWN.iter();
        let (_, new) = rows.find(|(old, _)| old.eq_ignore_ascii_case(word))?;
        let what = format!("`{word}` in: {}", shortened(&passage.text));
        Some(problem(file, passage, what, &format!("write: {new}")))
    });
    withdrawn.collect()
}

/// Checks that a doc comment begins with a verb or a noun.
fn fragment(file: &SourceFile, passage: &Passage) -> Option<Problem> {
    let mut words = passage.text.split(|c: char| !c.is_alphanumeric());
    let first = words.next().unwrap_or_default();
    let is_fragment = OPENINGS.contains(&first) || passage.text.starts_with("The same");
    if passage.kind != Kind::Opening || !is_fragment {
        return None;
    }
    let what = format!("a doc comment opens with: {}", shortened(&passage.text));
    let remedy = "begin with a verb or a noun and say what it is";
    Some(problem(file, passage, what, remedy))
}

fn problem(file: &SourceFile, passage: &Passage, what: String, remedy: &str) -> Problem {
    Problem::new(&file.path, passage.line, what, remedy)
}

/// Returns the first words of a text, to find it by.
fn shortened(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(12).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let problems = prose_is_not_plain(&SourceFile::new(path, text));
        problems.into_iter().map(|problem| problem.line).collect()
    }

    #[test]
    fn long_sentences_are_found_in_pages_and_texts_alone() {
        let long = ["Word"; SENTENCE_WORDS_MAX + 1].join(" ");
        let fit = ["Word"; SENTENCE_WORDS_MAX].join(" ");
        let page = format!("# A\n\n{fit}. {fit}.\n\n{long}.\n");
        assert_eq!(lines("docs/a.md", &page), [5]);
        let source = format!(
            "/// A.\n///\n/// {long}.\nconst A: &str =\n    \"{long}\";\n\
             const B: &str = \"{fit}\";\n"
        );
        assert_eq!(lines("crates/a/src/a.rs", &source), [5]);
    }

    #[test]
    fn withdrawn_words_are_found_as_whole_words() {
        let page = "# A\n\nThe node is told.\n\nThe lender's `lent` is not one.\n";
        assert_eq!(lines("docs/a.md", page), [3]);
        let source = "/// Visitor, whoever waits.\nstruct A;\n";
        assert_eq!(lines("crates/a/src/a.rs", source), [1]);
    }

    #[test]
    fn doc_comments_that_are_questions_or_fragments_are_found() {
        let source = "//! What is it?\n\n/// Returns it.\n///\n/// What follows is fine.\n\
                      fn a() {}\n\
                      /// The same with b.\nfn b() {}\n/// The end.\nfn c() {}\n";
        assert_eq!(lines("crates/a/src/a.rs", source), [1, 7]);
    }
}
