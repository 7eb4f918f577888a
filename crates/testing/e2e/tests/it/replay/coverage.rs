//! Coverage of recordings. A replay without events compares nothing.

use anteroom_room::sync::{LeaseReply, Reply, SyncRequest};
use anteroom_sim::recording::{Found, LedgerOperation, LedgerRole, RecordedOperation, Recording};
use anteroom_sim::scenario::model::StoreRef;

/// Number of each event.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    operations: usize,
    /// Ledgers in the journal of one node.
    alone: usize,
    /// Ledgers of data centers.
    below: usize,
    global_stores_wiped: usize,
    locals_wiped: usize,
    global_stores_that_lost_writes: usize,
    locals_that_lost_writes: usize,
    clocks_stepped_back: usize,
    /// Requests with ended sessions.
    revocations_reported: usize,
    /// Replies with such sessions.
    revocations_passed_on: usize,
    queues: usize,
    phantoms: usize,
    leases_given_up: usize,
    old_requests: usize,
    goodbyes: usize,
    requests_to_the_root: usize,
    replies_of_the_root: usize,
    /// Replies of the root that came after their upstream sync was given up.
    deliveries: usize,
}

impl Coverage {
    pub(crate) fn count_all(&mut self, recordings: &[Recording]) {
        for recording in recordings {
            self.alone += usize::from(recording.role == LedgerRole::Alone);
            self.below += usize::from(matches!(recording.place, StoreRef::Local(_)));
            let pairs = recording.operations.windows(2);
            self.clocks_stepped_back += pairs.filter(|pair| pair[1].at < pair[0].at).count();
            for operation in &recording.operations {
                self.count_operation(recording.place, operation);
            }
        }
    }

    fn count_operation(&mut self, place: StoreRef, operation: &RecordedOperation) {
        self.operations += 1;
        match (&operation.found, place) {
            (Found::Unchanged, _) => {}
            (Found::Empty { .. }, StoreRef::Global) => self.global_stores_wiped += 1,
            (Found::Empty { .. }, StoreRef::Local(_)) => self.locals_wiped += 1,
            (Found::Older { .. }, StoreRef::Global) => self.global_stores_that_lost_writes += 1,
            (Found::Older { .. }, StoreRef::Local(_)) => self.locals_that_lost_writes += 1,
        }
        match &operation.operation {
            LedgerOperation::Sync {
                request,
                root_reply,
                ..
            } => {
                self.replies_of_the_root += usize::from(root_reply.is_some());
                if let Some(exchange) = &operation.exchange {
                    self.requests_to_the_root += usize::from(exchange.upstream_sync.is_some());
                    self.count_sync(request, &exchange.reply);
                }
            }
            LedgerOperation::Deliver(_) => self.deliveries += 1,
            LedgerOperation::AssumeEmpty => {}
        }
    }

    fn count_sync(&mut self, request: &SyncRequest, reply: &Reply) {
        self.revocations_reported += usize::from(!request.revocations.is_empty());
        self.goodbyes += usize::from(request.is_leaving);
        match reply {
            Reply::Granted(response) => self.count_reply(response),
            Reply::Void { .. } => self.leases_given_up += 1,
            Reply::Stale => self.old_requests += 1,
        }
    }

    fn count_reply(&mut self, response: &LeaseReply) {
        let revoked = response.revoked.as_ref();
        self.revocations_passed_on +=
            usize::from(revoked.is_some_and(|(_, news)| !news.is_empty()));
        self.queues += usize::from(response.snapshot.waiting > 0);
        self.phantoms += usize::from(response.snapshot.phantoms > 0);
    }

    /// Checks that nothing is missing.
    pub(crate) fn check(&self) {
        let counts = [
            self.alone,
            self.below,
            self.global_stores_wiped,
            self.locals_wiped,
            self.global_stores_that_lost_writes,
            self.locals_that_lost_writes,
            self.clocks_stepped_back,
            self.revocations_reported,
            self.revocations_passed_on,
            self.queues,
            self.phantoms,
            self.leases_given_up,
            self.old_requests,
            self.goodbyes,
            self.requests_to_the_root,
            self.replies_of_the_root,
            self.deliveries,
        ];
        assert!(counts.iter().all(|&count| count > 0), "{self:#?}");
    }
}
