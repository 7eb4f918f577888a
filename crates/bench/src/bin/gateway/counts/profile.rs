//! Profile of one request: the functions with the most instructions of their own.

use std::collections::HashMap;

/// Instructions of functions themselves, without what they call, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile(HashMap<String, f64>);

impl Profile {
    /// Adds instructions to a function.
    pub(super) fn add(&mut self, function: &str, instructions: f64) {
        match self.0.get_mut(function) {
            Some(sum) => *sum += instructions,
            None => {
                self.0.insert(function.to_owned(), instructions);
            }
        }
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
    fn a_request_costs_what_more_requests_add() {
        let profile = |own| {
            let mut profile = Profile::default();
            for (function, instructions) in [("main", own), ("malloc", 30.0), ("main", 1.0)] {
                profile.add(function, instructions);
            }
            profile
        };
        let (few, many) = (profile(5.0), profile(25.0));
        assert_eq!(few.table(2), "       30  malloc\n        6  main\n");
        assert_eq!(few.until(&many, 10.0).table(1), "        2  main\n");
    }
}
