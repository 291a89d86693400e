//! What a platform is to the sandbox.
//!
//! One implementation per platform, written from its documentation: which hosts it has, what it
//! answers, and what a look at one of its accounts shows. All else (reading bodies, the journal, holds
//! and faults) is the same for all and stands in [`super::front`].

use super::{
    Transaction,
    account::Account,
    exchange::{BodyMode, Request, Response},
    fault::{self, Fault, Kind},
};
use crate::{App, Grant, Identity};
use chrono::{DateTime, Utc};

/// One platform, seen from the other end of the line.
pub(crate) trait Simulator: Send + Sync {
    /// The identifier of the contract.
    fn id(&self) -> &'static str;

    /// Whether a request to this host and path is the platform's; the host is empty where a client
    /// took the sandbox itself for the platform.
    fn claims(&self, host: &str, path: &str) -> bool;

    /// The platform that a request is for, where several share a host.
    fn resolve_platform(&self, _tx: &Transaction, _request: &Request) -> Option<&'static dyn Simulator> {
        None
    }

    /// How the body of a request is taken in.
    fn body_mode(&self, request: &Request) -> BodyMode;

    /// The addresses in a request from which the platform fetches media.
    fn media_urls(&self, _request: &Request) -> Vec<String> {
        Vec::new()
    }

    /// Whose request it is, whether it will be refused or not.
    fn account(&self, tx: &Transaction, request: &Request) -> Option<String>;

    /// Answers it.
    fn respond(&self, tx: &mut Transaction, request: &Request) -> Response;

    /// What the platform answers with a status that it was asked for by a fault.
    fn refuse(&self, tx: &mut Transaction, request: &Request, status: u16) -> Response;

    /// The account's name as the platform writes it, or why it can't be one.
    fn validate_username(&self, username: &str) -> Result<String, String>;

    /// The platform's own id of a new account.
    fn account_id(&self, username: &str) -> String;

    /// Who the account is to a client.
    fn identity(&self, account: &Account) -> Identity;

    /// How its accounts' grants come and go.
    fn grants(&self) -> &dyn Grants;

    /// What the account published, newest first.
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

    /// Does as a fault says instead of publishing.
    fn fail(&self, tx: &mut Transaction, request: &Request, fault: Fault) -> Response {
        match fault.kind {
            Kind::Refuse(status) => self.refuse(tx, request, status).with_fault(fault),
            _ => Response::silence(fault),
        }
    }
}

/// The grants of one platform's accounts.
pub(crate) trait Grants {
    /// The sandbox's own app on this platform, if it has apps.
    fn app(&self) -> Option<App>;

    /// A fresh grant, as if the owner had consented.
    fn grant(&self, tx: &mut Transaction, account: &mut Account) -> Grant;

    /// Lets the account's access tokens run out.
    fn expire(&self, tx: &mut Transaction, account: &mut Account);

    /// Takes back what the account granted.
    fn revoke(&self, tx: &mut Transaction, account: &mut Account);
}

/// A post as a page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PostView {
    /// The last part of its address.
    pub(crate) id: String,
    /// Its address on the platform, without `https://`.
    pub(crate) address: String,
    /// Its text.
    pub(crate) text: String,
    /// When it was published.
    pub(crate) at: DateTime<Utc>,
    /// Its media.
    pub(crate) media: Vec<MediaView>,
    /// What else stands below it, such as a poll or a link.
    pub(crate) notes: Vec<String>,
    /// The id of the post that it answers.
    pub(crate) reply_to: Option<String>,
}

/// A medium as a page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MediaView {
    /// The ids of the files it is made of.
    pub(crate) files: Vec<String>,
    /// Its content type.
    pub(crate) mime: String,
    /// What it shows.
    pub(crate) alt: String,
}
