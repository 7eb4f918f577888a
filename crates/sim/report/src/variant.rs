//! Variants: the outcomes of one room under the same settings, which differ by their allocation
//! only.

use anteroom_sim::outcome::Outcome;

/// Room with settings, under each of the allocations.
#[derive(Clone, Debug)]
pub(crate) struct Variant<'a> {
    /// Outcomes; at least one.
    pub(crate) outcomes: Vec<&'a Outcome>,
}

impl<'a> Variant<'a> {
    /// Groups outcomes; variants and their outcomes stay in the order of the list.
    pub(crate) fn all(outcomes: &'a [Outcome]) -> Vec<Self> {
        let mut variants: Vec<Self> = Vec::new();
        for outcome in outcomes {
            let known = variants.iter_mut().find(|variant| {
                let first = variant.first();
                first.room == outcome.room && first.settings == outcome.settings
            });
            match known {
                Some(variant) => variant.outcomes.push(outcome),
                None => variants.push(Self {
                    outcomes: vec![outcome],
                }),
            }
        }
        variants
    }

    /// Returns the first outcome, which has what all of them share.
    pub(super) fn first(&self) -> &'a Outcome {
        self.outcomes
            .first()
            .expect("a variant is made from an outcome")
    }

    /// Returns a title: `Room shop`, `Room shop with room.shop.new_users_per_minute = 900`.
    pub(super) fn title(&self) -> String {
        let first = self.first();
        let settings: Vec<String> = first
            .settings
            .iter()
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        if settings.is_empty() {
            format!("Room {}", first.room)
        } else {
            format!("Room {} with {}", first.room, settings.join(", "))
        }
    }
}

/// Splits columns into tables: whole variants where they fit, four columns at most.
pub(super) fn blocks(outcomes: &[Outcome]) -> Vec<Vec<&Outcome>> {
    const COLUMNS_MAX: usize = 4;
    let mut blocks: Vec<Vec<&Outcome>> = Vec::new();
    for variant in Variant::all(outcomes) {
        for columns in variant.outcomes.chunks(COLUMNS_MAX) {
            let fits = blocks.last_mut().filter(|block| {
                let is_same_room = block
                    .first()
                    .is_some_and(|first| first.room == columns[0].room);
                is_same_room && block.len() + columns.len() <= COLUMNS_MAX
            });
            match fits {
                Some(block) => block.extend(columns),
                None => blocks.push(columns.to_vec()),
            }
        }
    }
    blocks
}
