//! Comparison of a walk on a platform with one on its simulator.

use crate::{
    Simulator,
    trial::{Attachment, Trial, medium},
    walk::{Call, LoginKind, Outcome, Step, StepName, Visit, Walk},
};
use chrono::{DateTime, NaiveDate, Utc};
use platforms::{Adapter, MediaKind};
use sandbox::AppStatus;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A difference between a platform and its simulator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The step.
    pub step: StepName,
    /// The call, such as `POST api.x.com/2/tweets`; `None` if the step's outcome differs.
    pub call: Option<String>,
    /// The difference in words, such as `data.id: string, the simulator number`.
    pub text: String,
}

/// A walk on a real platform, without values. A file in `doctor/recordings` is a test of the simulator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// Id of the platform.
    pub platform: String,
    /// Standing of the app.
    pub app: AppStatus,
    /// The day of the walk.
    pub date: NaiveDate,
    /// The kind of login.
    pub login: LoginKind,
    /// The settings that were given for the post; `None` if the walk ended before one.
    pub settings: Option<Value>,
    /// The steps.
    pub steps: Vec<Step>,
}

impl Recording {
    /// Walks the simulator in the same way, and returns its steps. `video` is published where the recorded walk
    /// published one.
    ///
    /// # Errors
    ///
    /// When the platform is unknown or the simulator can't be started.
    pub async fn simulate(
        &self,
        video: Option<&Attachment>,
        now: fn() -> DateTime<Utc>,
    ) -> anyhow::Result<Vec<Step>> {
        let platform = platforms::get(&self.platform);
        let platform = platform.ok_or_else(|| anyhow::anyhow!("there is no platform {}", self.platform))?;
        let simulator = Simulator::start(platform, self.app, now)?;
        let visit = Visit {
            platform,
            transport: simulator.transport()?,
            app: simulator.connected.app.clone(),
            login: simulator.login(self.login).await?,
            account: None,
            now,
            is_patient: false,
        };
        let walk = match Walk::connect(visit).await {
            Ok(walk) => walk,
            Err(steps) => return Ok(steps),
        };
        let Some(settings) = &self.settings else { return Ok(walk.into_steps()) };
        let account = walk.account();
        let trial = Trial::new(platform, &account.username, &account.account_type, settings);
        let file = match medium(platform) {
            None => None,
            Some(MediaKind::Video) => video.cloned(),
            Some(_) => Some(Attachment::picture(None)?),
        };
        let file = file
            .map(|file| {
                let address = simulator.address(file.bytes.clone())?;
                anyhow::Ok(Attachment { address: Some(address), ..file })
            })
            .transpose()?;
        Ok(walk.publish(&trial, file.as_ref()).await)
    }

    /// Returns the differences between the recorded walk and the simulator.
    ///
    /// # Errors
    ///
    /// As [`Recording::simulate`].
    pub async fn compare(
        &self,
        video: Option<&Attachment>,
        now: fn() -> DateTime<Utc>,
    ) -> anyhow::Result<Vec<Difference>> {
        Ok(compare(&self.steps, &self.simulate(video, now).await?))
    }
}

/// Returns the differences between the steps of a walk on a platform and those of one on its simulator.
pub fn compare(real: &[Step], simulated: &[Step]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for step in real {
        let Some(other) = simulated.iter().find(|other| other.name == step.name) else {
            differences.push(Difference {
                step: step.name,
                call: None,
                text: format!("{}, the simulator did not get there", outcome(&step.outcome)),
            });
            continue;
        };
        if step.outcome != other.outcome {
            let text = format!("{}, the simulator {}", outcome(&step.outcome), outcome(&other.outcome));
            differences.push(Difference { step: step.name, call: None, text });
        }
        let name = |call: &Call| format!("{} {}", call.method, call.address);
        let mut tell = |call: &Call, text: String| {
            differences.push(Difference { step: step.name, call: Some(name(call)), text });
        };
        for call in &step.calls {
            match other.calls.iter().find(|other| name(other) == name(call)) {
                None => tell(call, "not a call to the simulator".to_owned()),
                Some(other) => {
                    if call.statuses != other.statuses {
                        let (own, others) = (statuses(call), statuses(other));
                        tell(call, format!("status {own}, the simulator {others}"));
                    }
                    // The body of a refusal has nothing in common with that of a success.
                    if call.statuses.is_disjoint(&other.statuses) {
                        continue;
                    }
                    call.shape.differences(&other.shape).into_iter().for_each(|text| tell(call, text));
                }
            }
        }
        for call in &other.calls {
            if !step.calls.iter().any(|own| name(own) == name(call)) {
                tell(call, "a call to the simulator only".to_owned());
            }
        }
    }
    differences
}

fn statuses(call: &Call) -> String {
    call.statuses.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")
}

fn outcome(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done => "done".to_owned(),
        Outcome::Failed(code) => format!("failed with {code}"),
    }
}

/// Prints a walk with its differences from the simulator's.
pub fn print(platform: &Adapter, real: &[Step], differences: &[Difference]) -> String {
    let mut text = String::new();
    for step in real {
        text += &format!("{}: {}", step.name, outcome(&step.outcome));
        text += &if step.detail.is_empty() { "\n".to_owned() } else { format!(": {}\n", step.detail) };
        for call in &step.calls {
            text += &format!("  {} {} {}\n", call.method, call.address, statuses(call));
        }
        for difference in differences.iter().filter(|difference| difference.step == step.name) {
            text += &match &difference.call {
                Some(call) => format!("  differs: {call}: {}\n", difference.text),
                None => format!("  differs: {}\n", difference.text),
            };
        }
    }
    text += &match differences.len() {
        0 => format!("{} and its simulator answered alike.\n", platform.name),
        1 => "1 difference from the simulator.\n".to_owned(),
        count => format!("{count} differences from the simulator.\n"),
    };
    text
}
