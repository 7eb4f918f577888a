//! Sequences of joins, refreshes, leaves and pauses, against a model with a cell for each half
//! second.

use alloc::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const VISITORS: u8 = 4;
const NODES: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// A visitor brings its newest ticket to a node, or its first one.
    Refresh {
        visitor: u8,
        node: usize,
        interval: u64,
    },
    /// A visitor leaves at a node, with its newest ticket or an old one.
    Leave {
        visitor: u8,
        node: usize,
        is_old: bool,
    },
    Wait {
        ms: u64,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let visitor = || 0..VISITORS;
    let interval = prop_oneof![1_000..3_000u64, 1_000..61_000u64];
    let step = prop_oneof![
        (visitor(), 0..NODES, interval).prop_map(|(visitor, node, interval)| Step::Refresh {
            visitor,
            node,
            interval,
        }),
        (visitor(), 0..NODES, any::<bool>()).prop_map(|(visitor, node, is_old)| Step::Leave {
            visitor,
            node,
            is_old,
        }),
        (0..3_000u64).prop_map(|ms| Step::Wait { ms }),
        (0..90_000u64).prop_map(|ms| Step::Wait { ms }),
    ];
    proptest::collection::vec(step, 1..60)
}

/// Visitor with its first ticket and its newest one. After it left, it is another visitor.
struct Holder {
    first: Ticket,
    newest: Ticket,
}

struct Run {
    books: Vec<WaitingBook>,
    holders: Vec<Holder>,
    ids: u8,
    now: u64,
    /// Half seconds in which a node counts a visitor.
    cells: BTreeSet<(usize, VisitorId, u64)>,
    /// Begin of the newest run of cells of a node and visitor.
    newest: BTreeMap<(usize, VisitorId), u64>,
    left: BTreeSet<VisitorId>,
}

impl Run {
    fn new(nodes: usize) -> Self {
        let mut run = Self {
            books: (0..nodes).map(|_| WaitingBook::new(100)).collect(),
            holders: Vec::new(),
            ids: 0,
            now: 10_000,
            cells: BTreeSet::new(),
            newest: BTreeMap::new(),
            left: BTreeSet::new(),
        };
        for _ in 0..VISITORS {
            let holder = run.newcomer();
            run.holders.push(holder);
        }
        run
    }

    fn newcomer(&mut self) -> Holder {
        self.ids += 1;
        let first = ticket(self.ids);
        Holder {
            first,
            newest: first,
        }
    }

    fn refresh(&mut self, at: usize, node: usize, interval: u64) {
        let old = self.holders[at].newest;
        let id = old.visitor;
        let ticket = refresh_after(&mut self.books[node], old, interval, self.now);
        // The model: behind all that some node counts, until the next refresh is overdue.
        let now = self.now / 500;
        let counted = self.cells.iter().filter(|(_, visitor, _)| *visitor == id);
        let end = counted.map(|(_, _, cell)| cell + 1).max().unwrap_or(0);
        let until = ticket.counted_until.unwrap().0 / 500;
        let begin = end.max(now);
        let is_same_run = end > now && self.cells.contains(&(node, id, end - 1));
        if !is_same_run {
            self.newest.insert((node, id), begin);
        }
        self.cells
            .extend((begin..until).map(|cell| (node, id, cell)));
        self.holders[at].newest = ticket;
    }

    fn leave(&mut self, at: usize, node: usize, is_old: bool) {
        let Holder { first, newest } = self.holders[at];
        let shown = if is_old { first } else { newest };
        let (id, now) = (shown.visitor, self.now / 500);
        let before = self.totals();
        let was_counted = self.cells.contains(&(node, id, now));
        let is_freed = self.books[node].handle_leave(&shown, RANK, Timestamp(self.now));
        let from = self.newest.get(&(node, id)).copied().unwrap_or(0).max(now);
        self.cells
            .retain(|&(of, visitor, cell)| (of, visitor) != (node, id) || cell < from);
        self.left.insert(id);
        let is_out = was_counted && !self.cells.contains(&(node, id, now));
        assert_eq!(is_freed, is_out);
        assert_eq!(self.totals(), before - i64::from(is_freed));
    }

    fn totals(&mut self) -> i64 {
        let now = self.now;
        self.books.iter_mut().map(|book| total(book, now)).sum()
    }

    fn check(&mut self) {
        let now = self.now / 500;
        for node in 0..self.books.len() {
            let cells = self.cells.iter();
            let expected = cells
                .filter(|(of, _, cell)| (*of, *cell) == (node, now))
                .count();
            let found = total(&mut self.books[node], self.now);
            assert_eq!(found, i64::try_from(expected).unwrap(), "node {node}");
        }
    }
}

fn run(nodes: usize, steps: &[Step]) {
    let mut run = Run::new(nodes);
    for step in steps {
        match *step {
            Step::Refresh {
                visitor,
                node,
                interval,
            } => {
                let at = usize::from(visitor);
                // A visitor who left and comes back is another one.
                if run.left.contains(&run.holders[at].first.visitor) {
                    run.holders[at] = run.newcomer();
                }
                run.refresh(at, node % nodes, interval);
            }
            Step::Leave {
                visitor,
                node,
                is_old,
            } => {
                run.leave(visitor.into(), node % nodes, is_old);
            }
            Step::Wait { ms } => run.now += ms,
        }
        run.check();
    }
    run.now += 90_000;
    assert_eq!(run.totals(), 0);
    assert!(run.books.iter().all(WaitingBook::is_empty));
}

proptest! {
    #[test]
    fn one_node_counts_as_its_model(steps in steps()) {
        run(1, &steps);
    }

    #[test]
    fn several_nodes_count_as_their_model_and_never_below_zero(steps in steps()) {
        run(NODES, &steps);
    }
}
