//! First and last sections of the two pages.

use super::{MARK, Page};

pub(super) fn push(page: &mut Page) {
    page.text.push_str(MARK);
    page.text.push_str(
        " Change crates/sim/report/src/lab/story and run it again. -->\n\
         \n\
         # How to count requests\n\
         \n\
         \"At most 100 requests a minute for each client\" is a short sentence. To keep it, every \
         node has to know at each request how many there were in the last minute. It has to know \
         that quickly, and above all under overload, because the limit is there for that.\n\
         \n\
         Criteo's engineers described their choice for an API in six data centers (Jean-Baptiste \
         Muscat, \"Distributed Rate-Limiting Algorithms\", 24 February 2022). This page calls it \
         *the article*. It follows the article twice: how to count in one place, then how many \
         nodes count together. It adds numbers that the article leaves out, points at what we \
         think is wrong in it, and shows what Anteroom does.\n\
         \n\
         **The program computes all numbers of runs each time it writes this page.** Measured \
         numbers are marked as such. The algorithms are those of the gateway. Stores and networks \
         around them are models in which nothing fails and all clocks agree. So a mistake on this \
         page happens even when all is well. A test fails when the page and the code disagree. \
         `anteroom simulate limits` does the same with your limit and your traffic.\n\
         \n\
         An exact log of allowed requests, separate from the algorithms, counts two mistakes:\n\
         \n\
         - **wrongly allowed:** a request that passed although the window before it was full\n\
         - **wrongly rejected:** a request that was rejected although the window before it was not \
         full\n\
         \n\
         The *highest* is the most allowed requests of one client in any window, wherever it \
         begins.\n\
         \n",
    );
}

/// Adds the link to the second page.
pub(super) fn push_link(page: &mut Page) {
    page.text.push_str(
        "The [second page](rate-limits-many-nodes.md) shows many nodes, and says which algorithm \
         and store to choose.\n",
    );
}

/// Adds the beginning of the second page.
pub(super) fn push_second(page: &mut Page) {
    page.text.push_str(MARK);
    page.text.push_str(
        " Change crates/sim/report/src/lab/story and run it again. -->\n\
         \n\
         # How to count requests on many nodes\n\
         \n\
         This page continues [How to count requests](rate-limits.md).\n\
         \n",
    );
}

/// Adds the last section.
pub(super) fn push_choice(page: &mut Page) {
    page.text.push_str(
        "## Which one to choose\n\
         \n\
         The article ends with: nothing is best. Accuracy costs speed, and fixed windows may be \
         enough for mere protection. How near a count comes to the truth depends on how many \
         counters are read. Whether the limit is exceeded does not depend on that. An algorithm \
         that never exceeds it reads no more counters than one that sometimes does. But it rejects \
         some requests that would have fitted.\n\
         \n\
         - Algorithm: `sub-windows-strict`, unless you have a reason. See [rate limit \
         algorithms](explanation/rate-limit-algorithms.md#which-algorithm).\n\
         - Store: `local` with one node, `valkey` where each request of a small limit counts. \
         `leases` where many nodes must not send the store each request. [Rate limits on many \
         nodes](how-to/rate-limit-many-nodes.md) says what each store costs when something fails, \
         which this page does not.\n\
         \n\
         This page shows chatty servers, the queue of events and Memcached as the article \
         describes them. It also shows models of `store = \"gossip\"`, `store = \"kafka\"` and \
         `store = \"memcached\"`. [The benchmarks](explanation/benchmarks-limits.md) have \
         measurements of the stores themselves. Tests of `kafka` use a mock of Kafka only.\n",
    );
}
