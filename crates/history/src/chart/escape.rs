//! Escaping of typed text for HTML and SVG.

/// Returns `text` with the five characters escaped that have a meaning between tags or in
/// attributes.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_becomes_text() {
        assert_eq!(
            escape("<script>alert('\"&')</script>"),
            "&lt;script&gt;alert(&#39;&quot;&amp;&#39;)&lt;/script&gt;"
        );
    }
}
