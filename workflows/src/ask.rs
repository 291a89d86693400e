//! What the API asks a worker while its caller waits.
//!
//! The API makes no outgoing call and opens no secret. What needs either it asks here and awaits: a
//! short workflow with a random id, which ends by its time limit when no worker takes it up, so that
//! nothing is done for a caller who has gone with an error already.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{
        Accounts, Arrival, Asset, Checkup, Confirmed, Connecting, Finalized, Media, Menu, Metrics, Reading,
        Return, Reveal, Sample, Sampled, Selection, SignIn, SignedIn, Voice, Webhooks,
    },
    attributes, queue,
};
use domain::{Choice, Failure, Owner, PostId, retry};
use serde::{Deserialize, Serialize};
use std::{fmt::Display, time::Duration};
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{
    ActivityCloseTimeouts, ActivityOptions, RetryPolicy, WorkflowContext, WorkflowContextView,
    WorkflowResult, join_all, workflow, workflow_methods,
};

/// How long a platform may take to answer what is asked of it, a refresh of the token included.
pub const READING: Duration = Duration::from_secs(22);
/// How long a login may take: several calls, the slowest of which the platform's user is waiting for too.
pub const LOGIN: Duration = Duration::from_secs(45);
/// How much longer than its work a question may wait for a worker and for what is between.
const MARGIN: Duration = Duration::from_secs(8);

/// How much longer than its calls a login may take: what came of it is written down.
const SETTLING: Duration = Duration::from_secs(4);

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "question", content = "about", rename_all = "snake_case")]
pub enum Question {
    /// How much engagement the published targets of a post have.
    Metrics {
        /// The post.
        post: PostId,
        /// Whose it is.
        owner: Owner,
        /// Its published targets.
        readings: Vec<Reading>,
    },
    /// Whether an account can be spoken for.
    Health(Voice),
    /// What a setting can be for an account.
    Options(Menu),
    /// What an endpoint says to a sample.
    Sample(Sample),
    /// What comes of an authorization that somebody came back from.
    Return(Return),
    /// What comes of a login with a password.
    SignIn(SignIn),
    /// What comes of a choice among what a login covers.
    Selection(Selection),
    /// What deliveries to an endpoint are signed with.
    Reveal(Reveal),
    /// Whether the bytes that arrived of an asset are taken.
    Media(Asset),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", content = "is", rename_all = "snake_case")]
pub enum Answer {
    /// Figures are kept for so many of the targets.
    Metrics(usize),
    /// How the account's platform answered for it.
    Health(Checkup),
    /// The list, or why there is none.
    Options(Result<Vec<Choice>, Failure>),
    /// What the endpoint said; `None` when it is gone.
    Sample(Option<Sampled>),
    /// An account, a choice, or a refusal.
    Return(Arrival),
    /// The account, or why there is none.
    SignIn(SignedIn),
    /// The accounts, or why there are none.
    Selection(Finalized),
    /// The secret, sealed to the key that the question named; `None` when the endpoint is gone.
    Reveal(Option<Vec<u8>>),
    /// What looking at the bytes came to.
    Media(Confirmed),
}

impl Question {
    /// The queue that it is asked on, beside the queue of posts `base`: that of the activity where there
    /// is but one, so that the worker may start it at once.
    pub fn queue(&self, base: &str) -> String {
        match self {
            Self::Metrics { .. } => base.to_owned(),
            Self::Health(voice) | Self::Options(Menu { voice, .. }) => {
                queue::platform(base, &voice.platform, voice.owner.mode)
            }
            Self::Sample(Sample { owner, .. }) | Self::Reveal(Reveal { owner, .. }) => {
                queue::webhooks(base, owner.mode)
            }
            Self::Return(Return { platform, owner, .. })
            | Self::SignIn(SignIn { platform, owner, .. })
            | Self::Selection(Selection { platform, owner, .. }) => {
                queue::platform(base, platform, owner.mode)
            }
            Self::Media(asset) => queue::uploads(base, asset.owner.mode),
        }
    }

    /// How long the answer is waited for.
    pub fn patience(&self) -> Duration {
        self.limit() + MARGIN
    }

    /// The owner on whose behalf it is asked.
    pub fn owner(&self) -> Owner {
        match self {
            Self::Metrics { owner, .. } => *owner,
            Self::Health(voice) | Self::Options(Menu { voice, .. }) => voice.owner,
            Self::Sample(sample) => sample.owner,
            Self::Return(back) => back.owner,
            Self::SignIn(sign_in) => sign_in.owner,
            Self::Selection(selection) => selection.owner,
            Self::Reveal(reveal) => reveal.owner,
            Self::Media(asset) => asset.owner,
        }
    }

    /// The search attributes it is asked with.
    pub fn search_attributes(&self) -> SearchAttributes {
        let of = |owner: &Owner| attributes::ORG.value_set(owner.org.to_string());
        SearchAttributes::new(match self {
            Self::Metrics { post, owner, .. } => {
                vec![of(owner), attributes::POST.value_set(post.to_string())]
            }
            Self::Health(voice) | Self::Options(Menu { voice, .. }) => vec![
                of(&voice.owner),
                attributes::PLATFORM.value_set(voice.platform.clone()),
                attributes::ACCOUNT.value_set(voice.account.to_string()),
            ],
            Self::Sample(sample) => vec![of(&sample.owner)],
            Self::Return(Return { owner, platform, .. })
            | Self::SignIn(SignIn { owner, platform, .. })
            | Self::Selection(Selection { owner, platform, .. }) => {
                vec![of(owner), attributes::PLATFORM.value_set(platform.clone())]
            }
            Self::Reveal(reveal) => vec![of(&reveal.owner)],
            Self::Media(asset) => vec![of(&asset.owner)],
        })
    }

    /// What it is, for operators.
    pub fn summary(&self) -> String {
        match self {
            Self::Metrics { readings, .. } => format!("Read engagement of {} targets", readings.len()),
            Self::Health(voice) => format!("Check an account of {}", voice.platform),
            Self::Options(menu) => format!("List {} of an account of {}", menu.kind, menu.voice.platform),
            Self::Sample(_) => "Send a sample to an endpoint".to_owned(),
            Self::Return(back) => format!("Connect what an authorization at {} covers", back.platform),
            Self::SignIn(sign_in) => format!("Connect an account of {} by its password", sign_in.platform),
            Self::Selection(chosen) => {
                format!("Connect {} accounts of {}", chosen.ids.len(), chosen.platform)
            }
            Self::Reveal(_) => "Show an endpoint's signing secret to its owner".to_owned(),
            Self::Media(asset) => format!("Look at medium {}", asset.media),
        }
    }

    /// How long its activities may take.
    fn limit(&self) -> Duration {
        match self {
            Self::Sample(_) => retry::DELIVERY_TIMEOUT + Duration::from_secs(2),
            Self::Return(_) | Self::SignIn(_) => LOGIN,
            Self::Metrics { .. }
            | Self::Health(_)
            | Self::Options(_)
            | Self::Selection(_)
            | Self::Reveal(_)
            | Self::Media(_) => READING,
        }
    }
}

/// The workflow's id. `nonce` is random: the same may be asked twice.
pub fn id(nonce: impl Display) -> String {
    format!("ask-{nonce}")
}

/// Answers one question. See the [module](self).
#[workflow]
pub struct Ask {
    question: Question,
}

#[workflow_methods]
impl Ask {
    #[init]
    fn new(_ctx: &WorkflowContextView, question: Question) -> Self {
        Self { question }
    }

    /// Runs until there is an answer.
    #[run(name = "Ask")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Answer> {
        let ctx = &*ctx;
        let question = ctx.state(|ask| ask.question.clone());
        let limit = question.limit();
        Ok(match question {
            Question::Metrics { readings, .. } => {
                let read = join_all(readings.into_iter().map(|reading| {
                    let voice = &reading.voice;
                    let queue = queue::platform(ctx.task_queue(), &voice.platform, voice.owner.mode);
                    let mut options = reads(limit);
                    options.task_queue = Some(queue);
                    ctx.execute_activity(Metrics::read_metrics, reading, options)
                }))
                .await;
                // One that fails does not keep the others from being shown.
                Answer::Metrics(read.into_iter().filter(|read| matches!(read, Ok(Ok(())))).count())
            }
            Question::Health(voice) => {
                let options = reads(limit);
                Answer::Health(ctx.execute_activity(Accounts::check_health, voice, options).await?)
            }
            Question::Options(menu) => {
                let options = reads(limit);
                Answer::Options(ctx.execute_activity(Accounts::list_options, menu, options).await?)
            }
            Question::Sample(sample) => {
                // The caller wants to know what this very request came to.
                let options = once(limit);
                Answer::Sample(ctx.execute_activity(Webhooks::sample, sample, options).await?)
            }
            Question::Return(back) => {
                // A code is good once.
                let options = once(limit + SETTLING);
                Answer::Return(ctx.execute_activity(Connecting::authorize, back, options).await?)
            }
            Question::SignIn(sign_in) => {
                // Platforms count wrong passwords.
                let options = once(limit + SETTLING);
                Answer::SignIn(ctx.execute_activity(Connecting::sign_in, sign_in, options).await?)
            }
            Question::Selection(selection) => {
                let options = reads(limit);
                Answer::Selection(ctx.execute_activity(Connecting::finalize, selection, options).await?)
            }
            Question::Reveal(reveal) => {
                let options = reads(limit);
                Answer::Reveal(ctx.execute_activity(Webhooks::reveal, reveal, options).await?)
            }
            Question::Media(asset) => {
                let options = reads(limit);
                Answer::Media(ctx.execute_activity(Media::confirm_media, asset, options).await?)
            }
        })
    }
}

/// Whatever comes of it, it is not to be done again.
fn once(limit: Duration) -> ActivityOptions {
    let once = RetryPolicy::builder().maximum_attempts(1).build();
    ActivityOptions::with_start_to_close_timeout(limit).retry_policy(once).build()
}

/// Reading changes nothing, and a choice is made once however often it is tried, so that a worker's fault
/// may be made good by another try, if there is time.
fn reads(limit: Duration) -> ActivityOptions {
    ActivityOptions::with_close_timeouts(ActivityCloseTimeouts::ScheduleAndStartToClose {
        schedule_to_close: limit + Duration::from_secs(4),
        start_to_close: limit + Duration::from_secs(2),
    })
    .retry_policy(
        RetryPolicy::builder()
            .initial_interval(Duration::from_secs(1))
            .backoff_coefficient(2.0)
            .maximum_attempts(3)
            .build(),
    )
    .build()
}
