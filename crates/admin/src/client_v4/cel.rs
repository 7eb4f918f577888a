//! Expressions in Cloudflare's language as the CEL that they would be, for the message of a
//! refusal. Only what has a plain counterpart is translated.

/// Fields, and their counterparts.
const FIELDS: [(&str, &str); 6] = [
    ("http.host", "host"),
    ("http.request.method", "method"),
    ("http.request.uri.path", "path"),
    ("http.request.uri.query", "query"),
    ("http.user_agent", "headers[\"user-agent\"]"),
    ("ip.src", "address"),
];
/// Operators between two values.
const COMPARISONS: [(&str, &str); 4] = [("eq", "=="), ("==", "=="), ("ne", "!="), ("!=", "!=")];
/// Functions of two values, and the methods of the first that they are.
const FUNCTIONS: [(&str, &str); 2] = [("starts_with", "startsWith"), ("ends_with", "endsWith")];
/// Most brackets and negations around a comparison.
const DEPTH_MAX: usize = 32;
/// Longest expression that is translated, in bytes.
const BYTES_MAX: usize = 4_096;

/// Returns the CEL that an expression in Cloudflare's language would be; `None` if it is not in
/// that language, or has something without a plain counterpart.
pub(super) fn of(expression: &str) -> Option<String> {
    if expression.len() > BYTES_MAX {
        return None;
    }
    let tokens = tokens(expression)?;
    let is_theirs = |token: &&str| {
        FIELDS.iter().any(|(field, _)| field == token)
            || FUNCTIONS.iter().any(|(name, _)| name == token)
    };
    if !tokens.iter().any(is_theirs) {
        return None;
    }
    let mut reader = Reader {
        tokens: &tokens,
        depth: 0,
    };
    let cel = reader.any_of()?;
    reader.tokens.is_empty().then_some(cel)
}

/// Splits an expression into words, texts, brackets and operators.
fn tokens(mut rest: &str) -> Option<Vec<&str>> {
    let mut tokens = Vec::new();
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return Some(tokens);
        };
        let is_word =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '/' | ':' | '$');
        let end = match first {
            '"' => 1 + text_end(rest.get(1..)?)?,
            '(' | ')' | '{' | '}' | ',' => 1,
            '=' | '!' | '&' | '|' => rest
                .find(|c: char| !matches!(c, '=' | '!' | '&' | '|'))
                .unwrap_or(rest.len()),
            c if is_word(c) => rest.find(|c: char| !is_word(c)).unwrap_or(rest.len()),
            _ => return None,
        };
        let (token, after) = rest.split_at_checked(end)?;
        tokens.push(token);
        rest = after;
    }
}

/// Returns the length of a text with its closing quote.
fn text_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

struct Reader<'t> {
    tokens: &'t [&'t str],
    /// Brackets and negations around the present place.
    depth: usize,
}

impl<'t> Reader<'t> {
    fn take(&mut self) -> Option<&'t str> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }

    fn take_if(&mut self, wanted: &[&str]) -> bool {
        let is_there = self
            .tokens
            .first()
            .is_some_and(|token| wanted.contains(token));
        if is_there {
            self.take();
        }
        is_there
    }

    fn expect(&mut self, wanted: &str) -> Option<()> {
        self.take_if(&[wanted]).then_some(())
    }

    fn any_of(&mut self) -> Option<String> {
        let mut cel = self.all_of()?;
        while self.take_if(&["or", "||"]) {
            cel = format!("{cel} || {}", self.all_of()?);
        }
        Some(cel)
    }

    fn all_of(&mut self) -> Option<String> {
        let mut cel = self.one()?;
        while self.take_if(&["and", "&&"]) {
            cel = format!("{cel} && {}", self.one()?);
        }
        Some(cel)
    }

    fn one(&mut self) -> Option<String> {
        // Each level takes room on the stack.
        self.depth += 1;
        let one = (self.depth <= DEPTH_MAX).then(|| self.one_here()).flatten();
        self.depth -= 1;
        one
    }

    fn one_here(&mut self) -> Option<String> {
        if self.take_if(&["not", "!"]) {
            return Some(format!("!({})", self.one()?));
        }
        if self.take_if(&["("]) {
            let inner = self.any_of()?;
            self.expect(")")?;
            return Some(format!("({inner})"));
        }
        let first = self.take()?;
        if let Some((_, method)) = FUNCTIONS.iter().find(|(name, _)| *name == first) {
            self.expect("(")?;
            let field = field(self.take()?)?;
            self.expect(",")?;
            let text = text(self.take()?)?;
            self.expect(")")?;
            return Some(format!("{field}.{method}({text})"));
        }
        let field = field(first)?;
        let operator = self.take()?;
        match operator {
            "contains" => Some(format!("{field}.contains({})", text(self.take()?)?)),
            "in" => self.set(field),
            _ => {
                let known = COMPARISONS.iter().find(|(name, _)| *name == operator);
                let (_, operator) = known?;
                Some(format!(
                    "{field} {operator} {}",
                    value(field, self.take()?)?
                ))
            }
        }
    }

    /// Reads a set of addresses, networks or texts.
    fn set(&mut self, field: &str) -> Option<String> {
        self.expect("{")?;
        let mut cases = Vec::new();
        while !self.take_if(&["}"]) {
            let element = self.take()?;
            cases.push(if field == "address" && element.contains('/') {
                format!("in_network(address, \"{element}\")")
            } else {
                format!("{field} == {}", value(field, element)?)
            });
        }
        match cases.len() {
            0 => None,
            1 => cases.pop(),
            _ => Some(format!("({})", cases.join(" || "))),
        }
    }
}

fn field(token: &str) -> Option<&'static str> {
    let found = FIELDS.iter().find(|(field, _)| *field == token);
    found.map(|(_, ours)| *ours)
}

fn text(token: &str) -> Option<&str> {
    token.starts_with('"').then_some(token)
}

/// Returns a text, or an address as a text.
fn value(field: &str, token: &str) -> Option<String> {
    if field == "address" && !token.starts_with('"') && !token.starts_with('$') {
        return Some(format!("\"{token}\""));
    }
    text(token).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_plain_counterpart_is_translated() {
        let check = |expression: &str, expected: Option<&str>| {
            assert_eq!(of(expression).as_deref(), expected, "{expression}");
        };
        check(
            "ip.src in {10.20.30.40 192.0.2.0/24}",
            Some("(address == \"10.20.30.40\" || in_network(address, \"192.0.2.0/24\"))"),
        );
        check(
            "starts_with(http.request.uri.path, \"/bypassme\") or \
             ends_with(http.request.uri.path, \".js\")",
            Some("path.startsWith(\"/bypassme\") || path.endsWith(\".js\")"),
        );
        check(
            "not (http.host eq \"a.example\" and http.user_agent contains \"Bot\")",
            Some("!((host == \"a.example\" && headers[\"user-agent\"].contains(\"Bot\")))"),
        );
        check("ip.src in $list", None);
        check("ip.src.country eq \"DE\"", None);
        check("http.host eq \"a\\\"b\"", Some("host == \"a\\\"b\""));
        check("http.host eq \"open", None);
        check("http.host eq", None);
        check(&format!("{}http.host", "(".repeat(4_000)), None);
        // Already in CEL.
        check("path == \"/a\"", None);
    }
}
