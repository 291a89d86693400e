//! The first steps of an organization: a checklist on the start page, until all is done or it is dismissed.

use crate::{
    PATH,
    context::{PageContext, see},
    layout::put,
};
use api::http::{browser, problem::Problem};
use domain::Mode;
use poem::{Response, http::header};
use store::dashboard::overview::{self, Steps};

/// Cookie with the organization whose checklist was dismissed in this browser.
const DISMISSED: &str = "fanfare-checklist";
/// Lifetime of the cookie: as long as browsers keep one.
const DISMISSED_SECONDS: u32 = 400 * 86_400;

/// The checklist.
pub(crate) struct Checklist {
    pub(crate) steps: Vec<Step>,
    pub(crate) done: usize,
    /// A command that creates a post.
    pub(crate) command: String,
}

impl Checklist {
    /// The step to show instead of all, once most are done.
    pub(crate) fn last_step(&self) -> Option<&Step> {
        let is_short = self.done * 2 > self.steps.len();
        self.steps.iter().find(|step| !step.is_done).filter(|_| is_short)
    }
}

/// A step of the checklist.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) is_done: bool,
    /// Page where it is done, and the scope that one needs there.
    pub(crate) link: &'static str,
    pub(crate) action: &'static str,
    pub(crate) scope: &'static str,
    /// True if the command does it.
    pub(crate) has_command: bool,
}

/// Returns the checklist; `None` when nothing is left to do, or it was dismissed.
pub(crate) async fn checklist(context: &PageContext<'_>) -> Result<Option<Checklist>, Problem> {
    let owner = context.call().owner;
    if browser::cookie(context.request, DISMISSED).is_some_and(|org| org == owner.org.to_string()) {
        return Ok(None);
    }
    let found = overview::steps(context.db(), context.whole()?).await?;
    if found.are_done() {
        return Ok(None);
    }
    let account = match found.account {
        true => {
            overview::first_account(context.db(), context.whole()?).await?.map(|account| account.to_string())
        }
        false => None,
    };
    let steps = steps(found);
    Ok(Some(Checklist {
        done: steps.iter().filter(|step| step.is_done).count(),
        steps,
        command: command(
            &context.app.config.base_url,
            owner.mode,
            account.as_deref().unwrap_or("ID_OF_AN_ACCOUNT"),
        ),
    }))
}

fn steps(found: Steps) -> Vec<Step> {
    let step = |name, text, is_done, link, action, scope| Step {
        name,
        text,
        is_done,
        link,
        action,
        scope,
        has_command: false,
    };
    vec![
        step(
            "Connect an account",
            "The profile, page or channel that you publish to. In test mode it is a simulated one.",
            found.account,
            "/accounts",
            "Connect",
            "accounts:write",
        ),
        step(
            "Create an API key",
            "Your program signs in with it. It is shown once.",
            found.key,
            "/keys",
            "Create a key",
            "keys:write",
        ),
        Step {
            has_command: true,
            ..step(
                "Send your first post",
                "Write one here, or send it with your key:",
                found.post,
                "/compose",
                "New post",
                "posts:write",
            )
        },
        step(
            "Register a webhook",
            "Fanfare tells your program how each post ended, with a signed request.",
            found.webhook,
            "/webhooks",
            "Register",
            "webhooks:write",
        ),
        step(
            "See it published",
            "The page of a post shows each attempt, and the link once it is live.",
            found.published,
            "/posts",
            "Posts",
            "posts:read",
        ),
    ]
}

/// A command for a shell that publishes a post.
fn command(base: &str, mode: Mode, account: &str) -> String {
    format!(
        "curl {}/posts \\\n  -H 'Authorization: Bearer sk_{mode}_…' \\\n  -H 'Content-Type: application/json' \\\n  \
         -d '{{\"content\": \"Hello from Fanfare\", \"accounts\": [\"{account}\"]}}'",
        base.trim_end_matches('/')
    )
}

/// Hides the checklist in this browser.
pub(crate) fn dismiss(context: &PageContext<'_>) -> Response {
    let org = context.call().owner.org;
    let secure = if browser::is_plain(context.app, context.request) { "" } else { "; Secure" };
    let cookie = format!(
        "{DISMISSED}={org}; Path={PATH}; Max-Age={DISMISSED_SECONDS}; HttpOnly; SameSite=Lax{secure}"
    );
    let mut response = see("");
    put(&mut response, header::SET_COOKIE, &cookie);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_for_this_service() {
        let command = command("https://fanfare.example/api/v1/", Mode::Test, "ada");
        assert!(command.starts_with("curl https://fanfare.example/api/v1/posts \\\n"), "{command}");
        assert!(
            command.contains("Bearer sk_test_") && command.contains(r#""accounts": ["ada"]"#),
            "{command}"
        );
    }
}
