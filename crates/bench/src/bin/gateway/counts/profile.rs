//! Profile of one request: the functions with the most instructions of their own.

use std::collections::HashMap;

/// Instructions of functions themselves, without what they call, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile(HashMap<String, f64>);

impl Profile {
    /// Parses the output of callgrind. A line of costs belongs to the function above it, unless it
    /// follows a line of calls: then it is the cost of the callee.
    pub(super) fn parse(text: &str) -> Self {
        let mut names: HashMap<&str, &str> = HashMap::new();
        let mut costs: HashMap<String, f64> = HashMap::new();
        let mut function = "";
        let mut is_callee = false;
        for line in text.lines() {
            let named = line.strip_prefix("fn=");
            if let Some(reference) = named.or_else(|| line.strip_prefix("cfn=")) {
                let (number, name) = reference.split_once(' ').unwrap_or((reference, ""));
                if !name.is_empty() {
                    names.insert(number, name);
                }
                if named.is_some() {
                    function = names.get(number).copied().unwrap_or(number);
                }
            } else if line.starts_with("calls=") {
                is_callee = true;
            } else if line
                .starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first))
            {
                let cost = line
                    .split(' ')
                    .nth(1)
                    .and_then(|cost| cost.parse::<f64>().ok());
                if !is_callee {
                    *costs.entry(function.to_owned()).or_default() += cost.unwrap_or(0.0);
                }
                is_callee = false;
            }
        }
        Self(costs)
    }

    /// Returns what `many` has more, for each of so many requests.
    pub(super) fn until(&self, many: &Self, requests: f64) -> Self {
        let more = many.0.iter().map(|(name, cost)| {
            let before = self.0.get(name).copied().unwrap_or(0.0);
            (name.clone(), (cost - before) / requests)
        });
        Self(more.collect())
    }

    /// Returns the functions with most instructions, as lines of text.
    pub(super) fn table(&self, count: usize) -> String {
        let mut costs: Vec<(&String, &f64)> = self.0.iter().collect();
        costs.sort_by(|a, b| b.1.total_cmp(a.1).then_with(|| a.0.cmp(b.0)));
        let lines = costs.iter().take(count);
        lines
            .map(|(name, cost)| format!("{cost:>9.0}  {name}\n"))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_costs_its_own_instructions() {
        let text = |own| {
            format!(
                "events: Ir\n\nfn=(1) main\n0 {own}\n+3 1\n\
                 cfn=(2) malloc\ncalls=3 0 \n0 30\n* 2\n\nfn=(2)\n0 30\n"
            )
        };
        let few = Profile::parse(&text(5));
        let more = few.until(&Profile::parse(&text(25)), 10.0);
        assert_eq!(more.table(1), "        2  main\n");
        assert_eq!(few.table(2), "       30  malloc\n        8  main\n");
    }
}
