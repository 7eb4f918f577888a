//! Removes comments, indentation and needless blanks from a page, a script or a style.
//!
//! It is no minifier: only the functions of a script get short names, in the order of the source:
//! `A`, `B` and so on. It cannot parse texts in double quotes, template literals or regular
//! expressions, so the script must not contain them. A test checks that.

/// Packs a page. Its lines begin and end with blocks, or end with a quote inside a tag that goes on
/// after a blank.
pub(super) fn html(source: &str) -> String {
    lines(source).replace("\"\n", "\" ").replace('\n', "")
}

/// Packs a style.
pub(super) fn style(source: &str) -> String {
    lines(source).replace("}\n", "}").replace(";\n", ";")
}

/// Packs a script.
pub(super) fn script(source: &str) -> String {
    let source = lines(source);
    let names = names(&source);
    let mut packed = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some(at) = rest.find(['\'', ' ', '/']) {
        push_renamed(&mut packed, &rest[..at], &names);
        let tail = &rest[at..];
        let taken = if tail.starts_with('\'') {
            let end = end_of_text(tail);
            packed.push_str(&tail[..end]);
            end
        } else if tail.starts_with("/*") {
            tail.find("*/").map_or(tail.len(), |end| end + 2)
        } else if tail.starts_with('/') {
            packed.push('/');
            1
        } else {
            let next = tail[1..].chars().next();
            let divides =
                packed.chars().next_back().is_some_and(is_of_name) && next.is_some_and(is_of_name);
            if divides {
                packed.push(' ');
            }
            1
        };
        rest = &tail[taken..];
    }
    push_renamed(&mut packed, rest, &names);
    // After these characters a line end means nothing: every statement has its semicolon.
    packed
        .replace(";\n", ";")
        .replace("}\n", "}")
        .replace("{\n", "{")
        .replace(",\n", ",")
}

/// Returns the functions of a script and their short names. Names of one capital letter, or of two,
/// are not in use.
fn names(source: &str) -> Vec<(&str, String)> {
    let functions = source.lines().filter_map(|line| {
        let (name, _) = line.strip_prefix("function ")?.split_once('(')?;
        Some(name)
    });
    let letter = |at: usize| char::from(b'A' + u8::try_from(at % 26).unwrap_or_default());
    let short = |at: usize| match at / 26 {
        0 => letter(at).to_string(),
        more => format!("{}{}", letter(more - 1), letter(at)),
    };
    let numbered = functions.enumerate();
    numbered.map(|(at, name)| (name, short(at))).collect()
}

/// Appends code without texts, with the short names of functions. A name after a dot is a property.
fn push_renamed(packed: &mut String, code: &str, names: &[(&str, String)]) {
    let mut rest = code;
    while let Some(at) = rest.find(is_of_name) {
        packed.push_str(&rest[..at]);
        let tail = &rest[at..];
        let end = tail.find(|c| !is_of_name(c)).unwrap_or(tail.len());
        let (word, after) = tail.split_at(end);
        let is_property = packed.ends_with('.') || after.starts_with(':');
        let known = names.iter().find(|(name, _)| *name == word && !is_property);
        packed.push_str(known.map_or(word, |(_, short)| short));
        rest = after;
    }
    packed.push_str(rest);
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// Returns the end of the text in single quotes with which `tail` begins.
fn end_of_text(tail: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in tail.char_indices().skip(1) {
        match c {
            '\\' if !is_escaped => is_escaped = true,
            '\'' if !is_escaped => return at + 1,
            _ => is_escaped = false,
        }
    }
    tail.len()
}

/// Removes indentation, empty lines, and comments on lines of their own.
fn lines(source: &str) -> String {
    let lines = source.lines().map(str::trim);
    let needed = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    needed.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCRIPT: &str = include_str!("../../../templates/waiting.js");
    const TURN_SCRIPT: &str = include_str!("../../../templates/turn.js");

    #[test]
    fn comments_and_blanks_are_removed_and_texts_stay() {
        let source =
            "a();\n  // why\n\n  b('// no  comment', \"\" );\nif (c) return d / 2; /* e */\n";
        let expected = "a();b('// no  comment',\"\");if(c)return d/2;";
        assert_eq!(script(source), expected);
        assert_eq!(script(r"x = 'it\'s  ' + y;"), r"x='it\'s  '+y;");
        assert_eq!(script("var a = typeof b in c;"), "var a=typeof b in c;");
        let source = "function first() { return a.first; }\nfirst();\nb = { first: 'first' };";
        let expected = "function A(){return a.first;}A();b={first:'first'};";
        assert_eq!(script(source), expected);
        assert_eq!(script("function a() {\n}\nb();"), "function A(){}b();");
        assert_eq!(html("<p>a\n  <p>b <i>c</i>\n"), "<p>a<p>b <i>c</i>");
        assert_eq!(html("<p a=\"b\"\n  c=\"d\">e"), "<p a=\"b\" c=\"d\">e");
        assert_eq!(style("  a {\n\n b:c }\nd{}\n"), "a {\nb:c }d{}");
        assert_eq!(style("a{b:c;\n  d:e}"), "a{b:c;d:e}");
    }

    #[test]
    fn the_scripts_have_no_syntax_that_packing_cannot_parse() {
        for script in [SCRIPT, TURN_SCRIPT] {
            assert!(!script.contains('`') && !script.contains('"'));
            let mut lines = script.lines().map(str::trim);
            let is_comment = |line: &str| line.starts_with("//");
            let odd = lines.find(|line| !is_comment(line) && line.contains("//"));
            assert_eq!(odd, None, "a comment after code");
            for sign in ["+ +", "- -", "(/", "= /", ", /"] {
                assert!(!script.replace("/*", "").contains(sign), "{sign}");
            }
        }
    }

    #[test]
    fn packing_saves_15_percent() {
        let (before, after) = (SCRIPT.len(), script(SCRIPT).len());
        assert!(after * 100 < before * 85, "{before} bytes became {after}");
    }
}
