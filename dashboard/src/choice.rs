//! Options of form fields.

use crate::fields::Fields;
use api::{
    accounts::{self, Account, Filter},
    http::{caller::Call, problem::Problem},
};

/// Maximum number of accounts that a form offers.
const MAX_ACCOUNTS: usize = 1000;

/// An option of a form field.
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) name: String,
    pub(crate) is_chosen: bool,
}

impl Choice {
    /// An option with the name that people read.
    pub(crate) fn new(value: impl Into<String>, name: impl Into<String>, is_chosen: bool) -> Self {
        Self { value: value.into(), name: name.into(), is_chosen }
    }

    /// An option whose value is its name.
    pub(crate) fn word(value: &str, chosen: &str) -> Self {
        Self::new(value, value, value == chosen)
    }

    /// All platforms, of which a query chooses one by `platform`.
    pub(crate) fn platforms(query: &Fields) -> Vec<Self> {
        let chosen = query.get("platform");
        platforms::IDS.iter().map(|id| Self::new(*id, platforms::display_name(id), *id == chosen)).collect()
    }

    /// An account.
    pub(crate) fn account(account: &Account, is_chosen: bool) -> Self {
        let platform = platforms::display_name(account.platform.as_str());
        Self::new(account.id.to_string(), format!("{} on {platform}", account.username), is_chosen)
    }

    /// Accounts, of which the one with an id is chosen.
    pub(crate) fn accounts(accounts: &[Account], chosen: &str) -> Vec<Self> {
        accounts.iter().map(|account| Self::account(account, account.id.to_string() == chosen)).collect()
    }
}

/// Returns the connected accounts that a caller may see, up to [`MAX_ACCOUNTS`].
pub(crate) async fn accounts(call: &Call<'_>) -> Result<Vec<Account>, Problem> {
    let mut all = Vec::new();
    let mut cursor = None;
    loop {
        let page = accounts::list(call, Filter { limit: Some(100), cursor, ..Filter::default() }).await?;
        all.extend(page.data);
        cursor = page.next_cursor;
        if cursor.is_none() || all.len() >= MAX_ACCOUNTS {
            return Ok(all);
        }
    }
}
