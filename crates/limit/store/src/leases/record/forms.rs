//! Encoded structs, and their conversions. The order of fields and of variants is the format.

use anteroom_limit::leases::epoch::{Before, Epoch, EpochId, StoreIdentity};
use anteroom_limit::leases::members::{Member, Members};
use anteroom_limit::time::{DurationUs, TimestampUs};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize)]
pub(super) struct EpochForm {
    id: EpochIdForm,
    identity: u64,
    began_at: u64,
    before: BeforeForm,
    longest_loss: Option<u64>,
}

#[derive(Deserialize, Serialize)]
pub(super) struct MembersForm(Vec<MemberForm>);

#[derive(Deserialize, Serialize)]
struct MemberForm {
    node: u64,
    renewals: u32,
    reported_to: u64,
}

#[derive(Deserialize, Serialize)]
struct EpochIdForm {
    number: u64,
    random: u64,
}

#[derive(Deserialize, Serialize)]
enum BeforeForm {
    Unknown,
    Lost,
    Nothing,
}

impl From<EpochId> for EpochIdForm {
    fn from(id: EpochId) -> Self {
        let EpochId { number, random } = id;
        Self { number, random }
    }
}

impl EpochIdForm {
    fn read(self) -> EpochId {
        let Self { number, random } = self;
        EpochId { number, random }
    }
}

impl From<&Epoch> for EpochForm {
    fn from(epoch: &Epoch) -> Self {
        Self {
            id: epoch.id.into(),
            identity: epoch.identity.0,
            began_at: epoch.began_at.0,
            before: match epoch.before {
                Before::Unknown => BeforeForm::Unknown,
                Before::Lost => BeforeForm::Lost,
                Before::Nothing => BeforeForm::Nothing,
            },
            longest_loss: epoch.longest_loss.map(|longest_loss| longest_loss.0),
        }
    }
}

impl EpochForm {
    pub(super) fn read(self) -> Epoch {
        Epoch {
            id: self.id.read(),
            identity: StoreIdentity(self.identity),
            began_at: TimestampUs(self.began_at),
            before: match self.before {
                BeforeForm::Unknown => Before::Unknown,
                BeforeForm::Lost => Before::Lost,
                BeforeForm::Nothing => Before::Nothing,
            },
            longest_loss: self.longest_loss.map(DurationUs),
        }
    }
}

impl From<&Members> for MembersForm {
    fn from(members: &Members) -> Self {
        let each = members.0.iter().map(|member| MemberForm {
            node: member.node,
            renewals: member.renewals,
            reported_to: member.reported_to.0,
        });
        Self(each.collect())
    }
}

impl MembersForm {
    pub(super) fn read(self) -> Members {
        let each = self.0.into_iter().map(|member| Member {
            node: member.node,
            renewals: member.renewals,
            reported_to: StoreIdentity(member.reported_to),
        });
        Members(each.collect())
    }
}
