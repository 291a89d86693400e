//! Requests of the API to the workers, answered while the API's caller waits.
//!
//! The API makes no outgoing call and opens no secret. A request that needs either is a short workflow with
//! a random id. It ends by its time limit when no worker takes it up, so that nothing is done for a caller
//! who has already received an error.

#![expect(missing_docs, reason = "the macros make undocumented markers beside the documented functions")]

use crate::{
    activities::{
        AccountRef, Accounts, CallbackResult, ConfirmResult, Connecting, EditOutcome, EditRequest,
        HealthReport, LoginResult, LoginSelection, LookUpReport, LookUpRequest, Media, MediaRef, Metrics,
        MetricsRequest, OAuthCallback, OpenId, OpenIdCallback, OpenIdLogin, OpenIdResult, OpenIdStart,
        OptionsRequest, PasswordLogin, RevealSecretInput, SelectionResult, TestEventInput, TestEventResult,
        UnpublishRequest, UnpublishResult, Webhooks,
    },
    attributes, options, queue,
};
use domain::{Failure, LimitUsage, Owner, PostId, SelectOption, retry};
use serde::{Deserialize, Serialize};
use std::{fmt::Display, time::Duration};
use temporalio_common::search_attributes::SearchAttributes;
use temporalio_workflow::{
    ActivityCloseTimeouts, ActivityOptions, RetryPolicy, WorkflowContext, WorkflowContextView,
    WorkflowResult, join_all, workflow, workflow_methods,
};

/// Time limit of one call to a platform on behalf of a request, a token refresh included.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(22);
/// Time limit of the calls of a look-up for one account, a token refresh included.
pub const LOOK_UP_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of a login, which is several calls.
pub const LOGIN_TIMEOUT: Duration = Duration::from_secs(45);
/// Time that a request may spend beside its activities: waiting for a worker, and on the way.
const OVERHEAD: Duration = Duration::from_secs(8);
/// Time that a workflow has after its activities, to return what they found.
const MARGIN: Duration = Duration::from_secs(1);
/// Time that a login's activity has after its calls, to store the outcome.
const STORE_TIMEOUT: Duration = Duration::from_secs(4);

/// A request with a typed response.
pub trait Request: Into<Input> {
    /// The response.
    type Response;
    /// Time limit of the request's activities.
    const TIMEOUT: Duration = CALL_TIMEOUT;
    /// Time limit of the whole request: waiting for a worker, its activities, and on the way.
    const LIMIT: Duration = Self::TIMEOUT.saturating_add(OVERHEAD);

    /// The owner of the rows that the request is about.
    fn owner(&self) -> Owner;

    /// The platform that is called, if one is.
    fn platform(&self) -> Option<&str> {
        None
    }

    /// The task queue, named after that of posts, `base`. It is the queue of the request's activity, so that a
    /// worker may start the activity eagerly.
    fn queue(&self, base: &str) -> String {
        match self.platform() {
            Some(platform) => queue::platform(base, platform, self.owner().mode),
            None => base.to_owned(),
        }
    }

    /// The search attributes.
    fn search_attributes(&self) -> SearchAttributes {
        let platform = self.platform().map(|platform| attributes::PLATFORM.value_set(platform.to_owned()));
        let org = attributes::ORG.value_set(self.owner().org.to_string());
        SearchAttributes::new([org].into_iter().chain(platform))
    }

    /// One line for operators.
    fn summary(&self) -> String;

    /// Runs the request's activities.
    fn answer(
        self,
        ctx: &WorkflowContext<WorkerRequest>,
    ) -> impl Future<Output = WorkflowResult<Self::Response>>;

    /// The response in a workflow's output; `None` when it is the response to another request.
    fn response(output: Output) -> Option<Self::Response>;
}

/// Fetches the metrics of a post's published targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FetchMetrics {
    /// The post.
    pub post: PostId,
    /// The post's owner.
    pub owner: Owner,
    /// One request per published target.
    pub targets: Vec<MetricsRequest>,
}

/// Checks whether the platform accepts an account's token.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CheckHealth(pub AccountRef);

/// Asks platforms for what only they know about a post, for all accounts side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LookUp {
    /// Owner of the accounts.
    pub owner: Owner,
    /// The different texts and settings that accounts get: each a [`domain::Subject`], sealed to the workers, in base64.
    pub subjects: Vec<String>,
    /// The accounts, each with the index of its subject.
    pub accounts: Vec<(AccountRef, usize)>,
}

/// Reads how much of the platform's limits an account has used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReadUsage(pub AccountRef);

/// Inspects the uploaded bytes of a media asset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConfirmMedia(pub MediaRef);

/// Declares the requests: for each its variant, type and response, and what [`Request`] asks for.
macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident($request:ty) -> $response:ty { $($declaration:tt)* })+) => {
        /// A request.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type", content = "payload", rename_all = "snake_case")]
        pub enum Input {
            $($(#[$doc])* $name($request),)+
        }

        /// A response.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "type", content = "payload", rename_all = "snake_case")]
        pub enum Output {
            $($(#[$doc])* $name($response),)+
        }

        impl Input {
            async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Output> {
                Ok(match self {
                    $(Self::$name(request) => Output::$name(request.answer(ctx).await?),)+
                })
            }
        }

        $(
            impl From<$request> for Input {
                fn from(request: $request) -> Self {
                    Self::$name(request)
                }
            }

            impl Request for $request {
                type Response = $response;

                $($declaration)*

                fn response(output: Output) -> Option<Self::Response> {
                    match output {
                        Output::$name(response) => Some(response),
                        _ => None,
                    }
                }
            }
        )+
    };
}

requests! {
    /// Fetches the metrics of a post's published targets. The response counts the targets that have metrics now.
    FetchMetrics(FetchMetrics) -> usize {
        fn owner(&self) -> Owner {
            self.owner
        }

        fn search_attributes(&self) -> SearchAttributes {
            attributes::of_post(self.owner, self.post)
        }

        fn summary(&self) -> String {
            format!("Fetch the metrics of {} targets", self.targets.len())
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            let fetched = join_all(self.targets.into_iter().map(|target| {
                let account = &target.account_ref;
                let queue = queue::platform(ctx.task_queue(), &account.platform, account.owner.mode);
                let mut options = repeatable(Self::TIMEOUT);
                options.task_queue = Some(queue);
                ctx.execute_activity(Metrics::fetch_metrics, target, options)
            }))
            .await;
            // One that fails does not keep the others from being shown.
            Ok(fetched.into_iter().filter(|fetched| matches!(fetched, Ok(Ok(())))).count())
        }
    }

    /// Checks whether the platform accepts an account's token.
    CheckHealth(CheckHealth) -> HealthReport {
        fn owner(&self) -> Owner {
            self.0.owner
        }

        fn platform(&self) -> Option<&str> {
            Some(&self.0.platform)
        }

        fn search_attributes(&self) -> SearchAttributes {
            attributes::of_account(self.0.owner, &self.0.platform, self.0.account)
        }

        fn summary(&self) -> String {
            format!("Check an account of {}", self.0.platform)
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            let options = repeatable(Self::TIMEOUT);
            Ok(ctx.execute_activity(Accounts::check_health, self.0, options).await?)
        }
    }

    /// Lists the values of a setting for an account.
    ListOptions(OptionsRequest) -> Result<Vec<SelectOption>, Failure> {
        fn owner(&self) -> Owner {
            self.account_ref.owner
        }

        fn platform(&self) -> Option<&str> {
            Some(&self.account_ref.platform)
        }

        fn search_attributes(&self) -> SearchAttributes {
            let AccountRef { owner, platform, account } = &self.account_ref;
            attributes::of_account(*owner, platform, *account)
        }

        fn summary(&self) -> String {
            format!("List {} of an account of {}", self.kind, self.account_ref.platform)
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            let options = repeatable(Self::TIMEOUT);
            Ok(ctx.execute_activity(Accounts::list_options, self, options).await?)
        }
    }

    /// Asks platforms for what only they know about a post. The response has one item per account, in order; `None`
    /// where no worker answered in time.
    LookUp(LookUp) -> Vec<Option<LookUpReport>> {
        const TIMEOUT: Duration = LOOK_UP_TIMEOUT;
        // Somebody waits who only wants to know whether the post is fine.
        const LIMIT: Duration = Duration::from_secs(8);

        fn owner(&self) -> Owner {
            self.owner
        }

        fn summary(&self) -> String {
            format!("Look a post up for {} accounts", self.accounts.len())
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            let Self { subjects, accounts, .. } = self;
            let looked_up = join_all(accounts.into_iter().map(|(account_ref, subject)| {
                let queue = queue::platform(ctx.task_queue(), &account_ref.platform, account_ref.owner.mode);
                let mut options = look_up_options(Self::TIMEOUT, Self::LIMIT - MARGIN);
                options.task_queue = Some(queue);
                let request = LookUpRequest { account_ref, subject: subjects[subject].clone() };
                ctx.execute_activity(Accounts::look_up, request, options)
            }))
            .await;
            // One that fails does not keep the others from being told.
            Ok(looked_up.into_iter().map(Result::ok).collect())
        }
    }

    /// Reads how much of the platform's limits an account has used.
    ReadUsage(ReadUsage) -> Result<Vec<LimitUsage>, Failure> {
        fn owner(&self) -> Owner {
            self.0.owner
        }

        fn platform(&self) -> Option<&str> {
            Some(&self.0.platform)
        }

        fn search_attributes(&self) -> SearchAttributes {
            attributes::of_account(self.0.owner, &self.0.platform, self.0.account)
        }

        fn summary(&self) -> String {
            format!("Read the limits of an account of {}", self.0.platform)
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            let options = repeatable(Self::TIMEOUT);
            Ok(ctx.execute_activity(Accounts::read_usage, self.0, options).await?)
        }
    }

    /// Changes a live target's posts on their platform.
    EditTarget(EditRequest) -> EditOutcome {
        fn owner(&self) -> Owner {
            self.account_ref.owner
        }

        fn platform(&self) -> Option<&str> {
            Some(&self.account_ref.platform)
        }

        fn search_attributes(&self) -> SearchAttributes {
            attributes::of_post(self.account_ref.owner, self.post)
        }

        fn summary(&self) -> String {
            format!("Change a post on {}", self.account_ref.platform)
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            // An edit sets values: the second one sets the same.
            let options = repeatable(Self::TIMEOUT);
            Ok(ctx.execute_activity(Accounts::edit_target, self, options).await?)
        }
    }

    /// Deletes a live target's posts from their platform.
    Unpublish(UnpublishRequest) -> UnpublishResult {
        fn owner(&self) -> Owner {
            self.account_ref.owner
        }

        fn platform(&self) -> Option<&str> {
            Some(&self.account_ref.platform)
        }

        fn search_attributes(&self) -> SearchAttributes {
            attributes::of_post(self.account_ref.owner, self.post)
        }

        fn summary(&self) -> String {
            format!("Delete a post from {}", self.account_ref.platform)
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            // Deleting what is gone succeeds.
            let options = repeatable(Self::TIMEOUT);
            Ok(ctx.execute_activity(Accounts::unpublish, self, options).await?)
        }
    }

    /// Sends a test event to a webhook endpoint. The response is `None` when the endpoint was deleted.
    SendTestEvent(TestEventInput) -> Option<TestEventResult> {
        const TIMEOUT: Duration = retry::DELIVERY_TIMEOUT.saturating_add(Duration::from_secs(2));

        fn owner(&self) -> Owner {
            self.owner
        }

        fn queue(&self, base: &str) -> String {
            queue::webhooks(base, self.owner.mode)
        }

        fn summary(&self) -> String {
            "Send a test event to an endpoint".to_owned()
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            // The caller asks for the outcome of this one request.
            let options = once(Self::TIMEOUT);
            Ok(ctx.execute_activity(Webhooks::send_test_event, self, options).await?)
        }
    }

    /// Exchanges an authorization code and connects the accounts that it covers.
    OAuthCallback(OAuthCallback) -> CallbackResult {
        const TIMEOUT: Duration = LOGIN_TIMEOUT;

        fn owner(&self) -> Owner {
            self.owner
        }

        fn platform(&self) -> Option<&str> {
            Some(&self.platform)
        }

        fn summary(&self) -> String {
            format!("Connect the accounts that an authorization at {} covers", self.platform)
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            // A code is valid once.
            let options = once(Self::TIMEOUT + STORE_TIMEOUT);
            Ok(ctx.execute_activity(Connecting::exchange_code, self, options).await?)
        }
    }

    /// Connects an account by its password.
    PasswordLogin(PasswordLogin) -> LoginResult {
        const TIMEOUT: Duration = LOGIN_TIMEOUT;

        fn owner(&self) -> Owner {
            self.owner
        }

        fn platform(&self) -> Option<&str> {
            Some(&self.platform)
        }

        fn summary(&self) -> String {
            format!("Connect an account of {} by its password", self.platform)
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            // Platforms count wrong passwords.
            let options = once(Self::TIMEOUT + STORE_TIMEOUT);
            Ok(ctx.execute_activity(Connecting::sign_in, self, options).await?)
        }
    }

    /// Connects the chosen accounts of a login.
    FinalizeLogin(LoginSelection) -> SelectionResult {
        fn owner(&self) -> Owner {
            self.owner
        }

        fn platform(&self) -> Option<&str> {
            Some(&self.platform)
        }

        fn summary(&self) -> String {
            format!("Connect {} accounts of {}", self.ids.len(), self.platform)
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            let options = repeatable(Self::TIMEOUT);
            Ok(ctx.execute_activity(Connecting::finalize_login, self, options).await?)
        }
    }

    /// Reveals the signing secret of a webhook endpoint, sealed to the key in the request. The response is
    /// `None` when the endpoint was deleted.
    RevealSecret(RevealSecretInput) -> Option<Vec<u8>> {
        fn owner(&self) -> Owner {
            self.owner
        }

        fn queue(&self, base: &str) -> String {
            queue::webhooks(base, self.owner.mode)
        }

        fn summary(&self) -> String {
            "Reveal an endpoint's signing secret to its owner".to_owned()
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            let options = repeatable(Self::TIMEOUT);
            Ok(ctx.execute_activity(Webhooks::reveal_secret, self, options).await?)
        }
    }

    /// Inspects the uploaded bytes of a media asset.
    ConfirmMedia(ConfirmMedia) -> ConfirmResult {
        fn owner(&self) -> Owner {
            self.0.owner
        }

        fn queue(&self, base: &str) -> String {
            queue::uploads(base, self.0.owner.mode)
        }

        fn summary(&self) -> String {
            format!("Inspect media asset {}", self.0.media)
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            let options = repeatable(Self::TIMEOUT);
            Ok(ctx.execute_activity(Media::confirm_media, self.0, options).await?)
        }
    }

    /// Finds out where a login at the OpenID provider begins.
    BeginOpenId(OpenIdLogin) -> OpenIdStart {
        fn owner(&self) -> Owner {
            Owner::NOBODY
        }

        fn summary(&self) -> String {
            "Begin a login at the OpenID provider".to_owned()
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            let options = repeatable(Self::TIMEOUT);
            Ok(ctx.execute_activity(OpenId::begin_open_id, self, options).await?)
        }
    }

    /// Exchanges the code of a login at the OpenID provider.
    FinishOpenId(OpenIdCallback) -> OpenIdResult {
        fn owner(&self) -> Owner {
            Owner::NOBODY
        }

        fn summary(&self) -> String {
            "Finish a login at the OpenID provider".to_owned()
        }

        async fn answer(self, ctx: &WorkflowContext<WorkerRequest>) -> WorkflowResult<Self::Response> {
            // A code is valid once.
            let options = once(Self::TIMEOUT);
            Ok(ctx.execute_activity(OpenId::finish_open_id, self, options).await?)
        }
    }
}

/// The workflow's id. `nonce` is random, since the same request may be made twice.
pub fn id(nonce: impl Display) -> String {
    format!("request-{nonce}")
}

/// Answers one request. See the [module](self).
#[workflow]
pub struct WorkerRequest {
    input: Input,
}

#[workflow_methods]
impl WorkerRequest {
    #[init]
    fn new(_ctx: &WorkflowContextView, input: Input) -> Self {
        Self { input }
    }

    /// Runs the request's activities.
    #[run(name = "WorkerRequest")]
    pub async fn run(ctx: &mut WorkflowContext<Self>) -> WorkflowResult<Output> {
        let request = ctx.state(|request| request.input.clone());
        request.answer(ctx).await
    }
}

/// Returns the options for an activity that must not run twice.
fn once(timeout: Duration) -> ActivityOptions {
    let once = RetryPolicy::builder().maximum_attempts(1).build();
    ActivityOptions::with_start_to_close_timeout(timeout).retry_policy(once).build()
}

/// Returns the options for an activity that may run twice: a failure of a worker is made up for if there is time.
fn repeatable(timeout: Duration) -> ActivityOptions {
    ActivityOptions::with_close_timeouts(ActivityCloseTimeouts::ScheduleAndStartToClose {
        schedule_to_close: timeout + Duration::from_secs(4),
        start_to_close: timeout + Duration::from_secs(2),
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

/// Returns the options for a look-up: tried as often as there is time, whether it waits for a worker or for its share
/// of one.
fn look_up_options(timeout: Duration, limit: Duration) -> ActivityOptions {
    ActivityOptions::with_close_timeouts(ActivityCloseTimeouts::ScheduleAndStartToClose {
        schedule_to_close: limit,
        start_to_close: timeout + Duration::from_secs(1),
    })
    .retry_policy(options::backoff(Duration::from_millis(500), Duration::from_secs(2), 0))
    .build()
}
