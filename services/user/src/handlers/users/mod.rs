//! `/api/users/*`: accounts as their owners and others see them.

pub(crate) mod by_id;
mod caller;
pub(crate) mod me;

use caller::Caller;
use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::store::account::Account;

/// An account in an answer. Others do not see the address and what the account may do.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AccountView {
    id: Uuid,
    username: String,
    tenant: Option<String>,
    created_at: DateTime<Utc>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    private: Option<Private>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Private {
    email: Option<String>,
    scopes: Vec<String>,
}

impl AccountView {
    pub(super) fn of_oneself(account: Account) -> Self {
        Self {
            id: account.id,
            username: account.username,
            tenant: account.tenant,
            created_at: account.created_at,
            private: Some(Private {
                email: account.email,
                scopes: account.scopes,
            }),
        }
    }

    fn of_another(account: Account) -> Self {
        Self {
            private: None,
            ..Self::of_oneself(account)
        }
    }
}
