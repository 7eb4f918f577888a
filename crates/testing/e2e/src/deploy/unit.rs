//! Systemd unit: sections, and keys that may be repeated.

/// Unit, or a drop-in for one.
#[derive(Debug)]
pub struct Unit {
    lines: Vec<(String, String, String)>,
}

impl Unit {
    /// Reads a unit without continued lines.
    ///
    /// # Errors
    ///
    /// Names the first line that is not a line of a unit.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut section = String::new();
        let mut lines = Vec::new();
        for line in text.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let name = line.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
            if let Some(name) = name {
                name.clone_into(&mut section);
                continue;
            }
            match line.split_once('=') {
                Some((key, value)) if !section.is_empty() && !line.ends_with('\\') => {
                    let line = (section.clone(), key.to_owned(), value.to_owned());
                    lines.push(line);
                }
                _ => return Err(format!("not a line of a unit: {line}")),
            }
        }
        Ok(Self { lines })
    }

    /// Returns all values of a key, in their order.
    #[must_use]
    pub fn all(&self, section: &str, key: &str) -> Vec<&str> {
        let lines = self.lines.iter();
        let found = lines.filter(|line| line.0 == section && line.1 == key);
        found.map(|line| line.2.as_str()).collect()
    }

    /// Returns the value of a key that occurs once.
    ///
    /// # Panics
    ///
    /// If it does not.
    #[must_use]
    pub fn one(&self, section: &str, key: &str) -> &str {
        let found = self.all(section, key);
        let [value] = found[..] else {
            panic!("[{section}] {key}= must occur once; found {found:?}");
        };
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_stand_several_times_and_belongs_to_its_section() {
        let unit = Unit::parse("# A\n[Unit]\nA=1\n\n[Service]\nA=2\nA=\nB=x=y\n").unwrap();
        assert_eq!(unit.one("Unit", "A"), "1");
        assert_eq!(unit.all("Service", "A"), ["2", ""]);
        assert_eq!(unit.one("Service", "B"), "x=y");
        assert!(unit.all("Unit", "B").is_empty());
    }

    #[test]
    fn a_text_that_is_not_a_unit_is_an_error() {
        for text in ["A=1", "[Unit]\nA", "[Unit]\nA=1 \\\n"] {
            assert!(Unit::parse(text).is_err(), "{text}");
        }
    }
}
