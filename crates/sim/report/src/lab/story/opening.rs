//! What the page is about, and what follows from it.

use super::{MARK, Page};

pub(super) fn push(page: &mut Page) {
    page.text.push_str(MARK);
    page.text.push_str(
        " Change crates/sim/report/src/lab/story and run it again. -->\n\
         \n\
         # How to count calls\n\
         \n\
         \"At most 100 calls a minute for each client\" is said in one line. To keep it means to \
         know, at every call, how many there were in the\n\
         minute before: at every node, quickly, and above all when there is too much to do, for \
         that is what the limit is there for.\n\
         \n\
         Criteo's engineers described what they weighed for an API that runs in six data centers \
         (Jean-Baptiste Muscat, \"Distributed Rate-Limiting\n\
         Algorithms\", 24 February 2022), called *the article* below. This page goes through it \
         twice: how to count in one place, then how many\n\
         nodes count together. It adds the figures that the article leaves out, what we think is \
         wrong in it, and what Anteroom does.\n\
         \n\
         **All figures of runs are computed each time this page is written**, but for what was \
         measured, and says so. The algorithms are those that run in\n\
         the gateway; stores and networks around them are models in which nothing fails and all \
         clocks agree, so what goes wrong here goes wrong also when all is\n\
         well. A test fails when the page and the code disagree. `anteroom simulate limits` does \
         the same with your limit and your traffic.\n\
         \n\
         Two mistakes are counted, both by an exact log of what was admitted, kept apart from the \
         algorithms:\n\
         \n\
         - **wrongly admitted:** a call that passed although as many as the limit says had been \
         admitted in the window before;\n\
         - **wrongly refused:** a call that was refused although fewer had.\n\
         \n\
         The *highest* is the most that was admitted of one client in any window, wherever it \
         begins.\n\
         \n",
    );
}

/// The last section.
pub(super) fn push_choice(page: &mut Page) {
    page.text.push_str(
        "## Which one to choose\n\
         \n\
         The article ends by saying that nothing is best: accuracy costs speed, and anyone who \
         only \
         wants to be protected may be content with fixed\n\
         windows. How near a count comes to the truth is a matter of how many counters are read. \
         Whether the limit is exceeded is not: one that never is\n\
         costs no more counters than one that sometimes is, but some calls are refused that would \
         have fitted.\n\
         \n\
         - Which algorithm: `sub-windows-strict`, unless there is a reason. [Rate limit \
         algorithms](explanation/rate-limit-algorithms.md#which-algorithm) has the list.\n\
         - Which store: `local` with one node, `valkey` where each call of a small limit counts, \
         `leases` where many nodes must not ask for\n  \
         each call. [Rate limits on many nodes](how-to/rate-limit-many-nodes.md) says what each of \
         them costs when something fails, which no figure on this page does.\n\
         \n\
         Chatty servers, the queue of events and Memcached are here as the article has them, and \
         as models of `store = \"gossip\"`, `store = \"kafka\"` and\n\
         `store = \"memcached\"`. What was measured of the stores themselves stands in \
         [the benchmarks](explanation/benchmarks-limits.md); `kafka` was tested over a mock of \
         Kafka\nalone.\n",
    );
}
