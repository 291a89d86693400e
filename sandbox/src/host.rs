//! What a platform is to the sandbox.
//!
//! One implementation per platform, written from its documentation: which hosts it has, what it
//! answers, and what a look at one of its accounts shows. All else (reading bodies, the journal, holds
//! and faults) is the same for all and stands in [`super::front`].

use super::{
    Turn,
    account::Account,
    call::{Answer, Call, Intake},
    fault::{Fault, Kind},
};
use crate::{App, Grant, Identity};
use chrono::{DateTime, Utc};

/// One platform, seen from the other end of the line.
pub(crate) trait Host: Send + Sync {
    /// The identifier of the contract.
    fn id(&self) -> &'static str;

    /// Whether a request to this host and path is the platform's; the host is empty where a client
    /// took the sandbox itself for the platform.
    fn claims(&self, host: &str, path: &str) -> bool;

    /// The platform that a request is for, where several share a host.
    fn meant(&self, _turn: &Turn<'_>, _call: &Call) -> Option<&'static dyn Host> {
        None
    }

    /// How the body of a request is taken in.
    fn intake(&self, call: &Call) -> Intake;

    /// The addresses in a request from which the platform fetches media.
    fn fetches(&self, _call: &Call) -> Vec<String> {
        Vec::new()
    }

    /// Whose request it is, whether it will be refused or not.
    fn account(&self, turn: &Turn<'_>, call: &Call) -> Option<String>;

    /// Answers it.
    fn answer(&self, turn: &mut Turn<'_>, call: &Call) -> Answer;

    /// What the platform answers with a status that it was asked for by a fault.
    fn refuse(&self, turn: &mut Turn<'_>, call: &Call, status: u16) -> Answer;

    /// The account's name as the platform writes it, or why it can't be one.
    fn name(&self, wish: &str) -> Result<String, String>;

    /// The platform's own id of a new account.
    fn number(&self, username: &str) -> String;

    /// Who the account is to a client.
    fn identity(&self, account: &Account) -> Identity;

    /// How its accounts' grants come and go.
    fn grants(&self) -> &dyn Grants;

    /// What the account published, newest first.
    fn posts(&self, turn: &Turn<'_>, account: &Account) -> Vec<Card>;

    /// Does as a fault says instead of publishing.
    fn fail(&self, turn: &mut Turn<'_>, call: &Call, fault: Fault) -> Answer {
        match fault.kind {
            Kind::Refuse(status) => self.refuse(turn, call, status).because(fault),
            _ => Answer::silence(fault),
        }
    }
}

/// The grants of one platform's accounts.
pub(crate) trait Grants {
    /// The sandbox's own app on this platform, if it has apps.
    fn app(&self) -> Option<App>;

    /// A fresh grant, as if the owner had consented.
    fn grant(&self, turn: &mut Turn<'_>, account: &mut Account) -> Grant;

    /// Lets the account's access tokens run out.
    fn expire(&self, turn: &mut Turn<'_>, account: &mut Account);

    /// Takes back what the account granted.
    fn revoke(&self, turn: &mut Turn<'_>, account: &mut Account);
}

/// A post as a page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Card {
    /// The last part of its address.
    pub(crate) id: String,
    /// Its address on the platform, without `https://`.
    pub(crate) address: String,
    /// Its text.
    pub(crate) text: String,
    /// When it was published.
    pub(crate) at: DateTime<Utc>,
    /// Its media.
    pub(crate) media: Vec<Picture>,
    /// What else stands below it, such as a poll or a link.
    pub(crate) notes: Vec<String>,
    /// The id of the post that it answers.
    pub(crate) reply_to: Option<String>,
}

/// A medium as a page shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Picture {
    /// The ids of the files it is made of.
    pub(crate) files: Vec<String>,
    /// Its content type.
    pub(crate) mime: String,
    /// What it shows.
    pub(crate) alt: String,
}
