//! The interface of a simulated platform.
//!
//! One implementation per platform, written from its documentation: its hosts, its responses, and the pages
//! of its accounts. Reading bodies, the journal, holds and faults are the same for all, see
//! [`super::pipeline`].

use super::{
    Transaction,
    account::{self, Account},
    exchange::{BodyMode, Request, Response},
    fault::{self, Fault, Kind},
};
use crate::{App, Grant, Identity};
use chrono::{DateTime, Utc};

/// One simulated platform.
pub(crate) trait Simulator: Send + Sync {
    /// Returns the platform's identifier.
    fn id(&self) -> &'static str;

    /// Returns whether a request to this host and path is the platform's; the host is empty when the client
    /// uses the sandbox as the platform.
    fn claims(&self, host: &str, path: &str) -> bool;

    /// Returns the platform that a request is for, when several share a host.
    fn resolve_platform(&self, _tx: &Transaction, _request: &Request) -> Option<&'static dyn Simulator> {
        None
    }

    /// Returns how the body of a request is read.
    fn body_mode(&self, request: &Request) -> BodyMode;

    /// Returns the addresses of media that the platform fetches for a request.
    fn media_urls(&self, _request: &Request) -> Vec<String> {
        Vec::new()
    }

    /// Returns the username behind a request, refused or not.
    fn account(&self, tx: &Transaction, request: &Request) -> Option<String>;

    /// Responds to a request.
    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response;

    /// Creates the refusal of a fault with this status.
    fn refuse(&self, tx: &mut Transaction, request: &Request, status: u16) -> Response;

    /// Returns a username as the platform writes it.
    fn validate_username(&self, username: &str) -> Result<String, String>;

    /// Returns the platform's id of a new account.
    fn account_id(&self, username: &str) -> String;

    /// Returns the account's identity.
    fn identity(&self, account: &Account) -> Identity;

    /// Returns the platform's grants.
    fn grants(&self) -> &dyn Grants;

    /// Returns the account's posts, newest first.
    fn posts(&self, tx: &Transaction, account: &Account) -> Vec<PostView>;

    /// Applies the faults that a text or the control panel asks for. A fault that strikes after the post is
    /// accepted is returned.
    ///
    /// # Errors
    ///
    /// The response of a fault that strikes before.
    fn trigger_fault(
        &self,
        tx: &mut Transaction,
        request: &Request,
        username: &str,
        text: &str,
    ) -> Result<Option<Fault>, Response> {
        fault::trigger(tx, self.id(), username, text).map_err(|fault| self.fail(tx, request, fault))
    }

    /// Responds as a fault demands, without publishing.
    fn fail(&self, tx: &mut Transaction, request: &Request, fault: Fault) -> Response {
        match fault.kind {
            Kind::Refuse(status) => self.refuse(tx, request, status).with_fault(fault),
            _ => Response::silence(fault),
        }
    }
}

/// Returns the platform's account of this name, creating it when there is none.
///
/// # Errors
///
/// The platform's rule that the name breaks.
pub(crate) fn get_or_create_account(
    tx: &mut Transaction,
    simulator: &dyn Simulator,
    username: &str,
) -> Result<Account, String> {
    let username = simulator.validate_username(username)?;
    if let Some(account) = account::by_username(tx.store, simulator.id(), &username) {
        return Ok(account);
    }
    Ok(account::create(tx, simulator.id(), simulator.account_id(&username), username))
}

/// The grants of one platform's accounts.
pub(crate) trait Grants {
    /// Returns the sandbox's app on this platform, if it has apps.
    fn app(&self) -> Option<App>;

    /// Creates a grant, as if the owner had consented.
    fn grant(&self, tx: &mut Transaction, account: &mut Account) -> Grant;

    /// Expires the account's access tokens.
    fn expire(&self, tx: &mut Transaction, account: &mut Account);

    /// Revokes the account's grants.
    fn revoke(&self, tx: &mut Transaction, account: &mut Account);
}

/// A post as the pages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PostView {
    /// Id, the last part of its address here.
    pub(crate) id: String,
    /// Its address on the platform, without `https://`.
    pub(crate) address: String,
    pub(crate) text: String,
    pub(crate) at: DateTime<Utc>,
    pub(crate) media: Vec<MediaView>,
    /// Further lines below it, such as a poll or a link.
    pub(crate) notes: Vec<String>,
    /// Id of the post that it replies to.
    pub(crate) reply_to: Option<String>,
}

/// A medium as the pages show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MediaView {
    /// Ids of its files.
    pub(crate) files: Vec<String>,
    pub(crate) mime: String,
    /// Alternative text.
    pub(crate) alt: String,
}
