//! JSON pointers of keys of the configuration file.

/// Returns the JSON pointer of a key, such as `/additional_routes/0/host`.
pub(crate) fn pointer(key: &str) -> String {
    let mut pointer = String::new();
    for step in key.split('.') {
        let (name, indices) = step.split_once('[').unwrap_or((step, ""));
        // A body may be a list itself.
        if !name.is_empty() {
            pointer.push('/');
            pointer.push_str(name);
        }
        // The file counts from 1, JSON from 0.
        for index in indices
            .split(['[', ']'])
            .filter_map(|text| text.parse::<usize>().ok())
        {
            pointer.push_str(&format!("/{}", index.saturating_sub(1)));
        }
    }
    pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_file_become_json_pointers() {
        let check = |key: &str, expected: &str| assert_eq!(pointer(key), expected);
        check("host", "/host");
        check("additional_routes[2].host", "/additional_routes/1/host");
        check("cookie_attributes.secure", "/cookie_attributes/secure");
        check("[2].expression", "/1/expression");
    }
}
