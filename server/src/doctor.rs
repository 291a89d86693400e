//! `fanfare doctor`: a walk through a platform with real credentials, compared with the simulator.

use crate::{clock, config, secrets};
use ::doctor::{Attachment, Login, Outcome, Recording, Step, StepName, Trial, Visit, Walk};
use anyhow::{Context, bail, ensure};
use clap::Args;
use domain::{App, AppAccess, AppConfig, Grant, ip_ranges::AllowedRanges};
use platforms::{Adapter, AppPassword, Code, MediaKind, Transport, authorization};
use sandbox::AppStatus;
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fmt,
    io::{self, Write},
    path::PathBuf,
};
use url::Url;

/// Options of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Platform, for example `bluesky`
    #[arg(value_parser = config::platform)]
    platform: &'static str,
    /// Credentials as JSON, by the platform's kind of login: {"client_id", "client_secret", "callback"} to log in
    /// with a browser, where `callback` is a redirect URI of the app; the same without `callback` and with
    /// "refresh_token" or "access_token", which may have "scopes"; {"identifier", "app_password", "service"} for
    /// Bluesky
    #[arg(long, env = "FANFARE_DOCTOR", hide_env_values = true, value_parser = credentials)]
    credentials: Credentials,
    /// Id or handle of the account, if the login covers several
    #[arg(long)]
    account: Option<String>,
    /// Standing of the app, `new` or `approved`: the simulator plays the same
    #[arg(long, default_value = "new", value_parser = config::app_status)]
    app: AppStatus,
    /// Settings of the post as JSON, as in a post's `config`, in addition to the doctor's own
    #[arg(long, default_value = "{}", value_parser = settings)]
    settings: Value,
    /// MP4 file to publish, for platforms that take only videos
    #[arg(long)]
    video: Option<PathBuf>,
    /// Public URL of the picture or video, for platforms that fetch it themselves
    #[arg(long)]
    media_url: Option<Url>,
    /// Publish without asking
    #[arg(long)]
    yes: bool,
    /// File to write the walk to, without values: in doctor/recordings it is a test of the simulator
    #[arg(long)]
    record: Option<PathBuf>,
    /// Visit the sandbox at this URL in place of the platform
    #[arg(long)]
    sandbox: Option<Url>,
    /// Non-public IP ranges in which a Bluesky server may be, as CIDR separated by commas
    #[arg(long, env = "FANFARE_EGRESS_ALLOW", default_value = "", value_parser = AllowedRanges::parse)]
    egress_allow: AllowedRanges,
}

/// Credentials of an app and an account. Prints as `***`.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Credentials {
    client_id: Option<String>,
    client_secret: Option<String>,
    /// Exactly as it is registered.
    callback: Option<String>,
    access_token: Option<String>,
    refresh_token: Option<String>,
    #[serde(default)]
    scopes: Vec<String>,
    identifier: Option<String>,
    app_password: Option<String>,
    service: Option<String>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

fn credentials(text: &str) -> anyhow::Result<Credentials> {
    // The parser's message quotes the value.
    serde_json::from_str(text).map_err(|_| anyhow::anyhow!("it is no JSON object with these members"))
}

fn settings(text: &str) -> anyhow::Result<Value> {
    let settings: Value = serde_json::from_str(text)?;
    ensure!(settings.is_object(), "settings are a JSON object");
    Ok(settings)
}

/// Walks through the platform, and prints what it answered and where the simulator differs. An error if a step
/// of the walk failed.
pub(crate) async fn run(options: &Options) -> anyhow::Result<()> {
    let platform = platforms::get(options.platform).context("there is no such platform")?;
    let transport = match &options.sandbox {
        Some(sandbox) => Transport::sandbox(sandbox.clone())?,
        None => Transport::real_within(options.egress_allow.clone())?,
    };
    let file = file(platform, options)?;
    let app = app(platform, options)?;
    let login = login(platform, options, app.as_ref())?;
    let kind = login.kind();
    let visit = Visit {
        platform,
        transport,
        app,
        login,
        account: options.account.as_deref(),
        now: clock::now,
        is_patient: true,
    };
    let mut settings = None;
    let steps = match Walk::connect(visit).await {
        Err(steps) => steps,
        Ok(walk) => {
            let account = walk.account();
            let trial = Trial::new(platform, &account.username, &account.account_type, &options.settings);
            if is_wanted(platform, &walk, &trial, options)? {
                settings = Some(options.settings.clone());
                walk.publish(&trial, file.as_ref()).await
            } else {
                walk.into_steps()
            }
        }
    };
    let recording = Recording {
        platform: platform.id.to_owned(),
        app: options.app,
        date: clock::now().date_naive(),
        login: kind,
        settings,
        steps,
    };
    let differences = recording.compare(file.as_ref(), clock::now).await?;
    print!("{}", ::doctor::print(platform, &recording.steps, &differences));
    if let Some(path) = &options.record {
        let text = serde_json::to_string_pretty(&recording)? + "\n";
        std::fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
        println!("The walk is in {}.", path.display());
    }
    // A platform may have no figures of a post that nobody else can see.
    let is_optional = |step: &Step| matches!(step.name, StepName::Figures | StepName::History);
    let is_failed = |step: &&Step| step.outcome != Outcome::Done && !is_optional(step);
    match recording.steps.iter().find(is_failed) {
        Some(step) => bail!("the step {:?} failed", step.name.to_string()),
        None => Ok(()),
    }
}

fn app(platform: &Adapter, options: &Options) -> anyhow::Result<Option<App>> {
    if platform.auth.oauth().is_none() {
        return Ok(None);
    }
    let Credentials { client_id, client_secret, .. } = &options.credentials;
    let client_id = client_id.clone().context("FANFARE_DOCTOR has no client_id")?;
    let access = if options.app == AppStatus::New { AppAccess::Trial } else { AppAccess::Full };
    Ok(Some(App { client_id, client_secret: client_secret.clone(), access }))
}

/// Returns the login that the credentials allow; asks for one with a browser.
fn login(platform: &Adapter, options: &Options, app: Option<&App>) -> anyhow::Result<Login> {
    let given = &options.credentials;
    let Some(app) = app else {
        let (Some(identifier), Some(app_password)) = (given.identifier.clone(), given.app_password.clone())
        else {
            bail!("FANFARE_DOCTOR has no identifier and app_password");
        };
        return Ok(Login::Password(AppPassword { identifier, app_password, service: given.service.clone() }));
    };
    let grant = Grant {
        access_token: given.access_token.clone().unwrap_or_default(),
        refresh_token: given.refresh_token.clone(),
        scopes: given.scopes.clone(),
        ..Grant::default()
    };
    match (&given.refresh_token, &given.access_token, &given.callback) {
        (Some(_), ..) => Ok(Login::Refresh(grant)),
        (None, Some(_), _) => Ok(Login::Grant(grant)),
        (None, None, Some(callback)) => browse(platform, &given.scopes, app, callback),
        (None, None, None) => bail!("FANFARE_DOCTOR has no refresh_token, access_token or callback"),
    }
}

/// Asks a person to log in with a browser, and reads the address that the platform leads back to.
fn browse(platform: &Adapter, scopes: &[String], app: &App, callback: &str) -> anyhow::Result<Login> {
    let (state, verifier) = (secrets::fresh_secret(), secrets::fresh_secret());
    let parameters = BTreeMap::new();
    let scopes = authorization::scopes(&platform.auth, scopes, &AppConfig::default());
    let asked = authorization::Authorization {
        client_id: &app.client_id,
        redirect_uri: callback,
        scopes: &scopes,
        parameters: &parameters,
        state: &state,
        verifier: &verifier,
        is_forced: false,
    };
    let address = authorization::address(platform, &asked).context("the platform has no OAuth")?;
    println!("Log in with a browser:\n\n{address}\n");
    let back = ask("Then paste the address that the browser ends on (the page itself may be missing):")?;
    let back = Url::parse(&back).context("this is no address")?;
    let brought: BTreeMap<_, _> = back.query_pairs().into_owned().collect();
    if let Some(error) = brought.get("error") {
        bail!("{} refused the login: {error}", platform.name);
    }
    ensure!(brought.get("state") == Some(&state), "the address belongs to another login");
    let code = brought.get("code").context("the address has no code")?.clone();
    Ok(Login::Code(Code { code, redirect_uri: callback.to_owned(), verifier: Some(verifier) }))
}

fn ask(question: &str) -> anyhow::Result<String> {
    println!("{question}");
    io::stdout().flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}

/// Returns the file that the post needs.
fn file(platform: &Adapter, options: &Options) -> anyhow::Result<Option<Attachment>> {
    let address = options.media_url.clone();
    Ok(match ::doctor::medium(platform) {
        None => None,
        Some(MediaKind::Video) => {
            let path =
                options.video.as_ref().context("the platform takes only videos: name one with --video")?;
            let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
            Some(Attachment::video(bytes.into(), address))
        }
        Some(_) => Some(Attachment::picture(address)?),
    })
}

/// Says what would be published, and returns true if that is wanted.
fn is_wanted(platform: &Adapter, walk: &Walk, trial: &Trial, options: &Options) -> anyhow::Result<bool> {
    println!(
        "Publishing {:?} as {} on {}, with the settings {}; then looking it up and deleting it.",
        trial.text,
        walk.account().username,
        platform.name,
        trial.settings
    );
    if options.yes {
        return Ok(true);
    }
    Ok(ask("Publish it? Type yes:")? == "yes")
}
