//! Prompts: instructions for tasks that take several tools, which a host offers to its user.

use rmcp::{
    ErrorData,
    model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role},
};
use serde_json::{Map, Value};

/// A prompt; `{name}` in its text is replaced by the argument.
struct Entry {
    name: &'static str,
    title: &'static str,
    description: &'static str,
    /// Names and descriptions of the arguments, all required.
    arguments: &'static [(&'static str, &'static str)],
    text: &'static str,
}

const TABLE: [Entry; 2] = [
    Entry {
        name: "publish_picture",
        title: "Publish a picture from a URL",
        description: "Imports a picture and publishes it with a text on the given accounts.",
        arguments: &[
            ("url", "https URL of the picture"),
            ("text", "Text of the post"),
            ("accounts", "Ids or handles of the accounts, separated by commas"),
        ],
        text: "Publish the picture at {url} on these accounts: {accounts}. The text of the post is:\n\n{text}\n\n\
            1. Call import_media with the URL and an alt_text that describes the picture, if you know what it \
            shows. 2. Call get_media with its id and wait: 60 until its status is ready; if it is failed, tell me \
            its error and stop. 3. Find the accounts with list_accounts, and what each needs with \
            get_account_capabilities; a required setting such as a board is listed by list_account_options: ask me \
            which one to use. 4. Call validate_post with the text, the picture and the settings. Tell me its errors \
            and warnings, and ask me before you go on if there are any. 5. Call create_post with the same body and \
            an external_ref, so that a repeated call publishes nothing twice. 6. Call get_post until its status is \
            published, partial or failed, and tell me the URL or the error of each account.",
    },
    Entry {
        name: "explain_stuck_post",
        title: "Find out why a post is not published",
        description: "Finds the reason why a post is stuck or failed, and what can be done.",
        arguments: &[("id", "Id of the post")],
        text: "Find out why the post {id} is not published everywhere, and what can be done. 1. Call get_post: its \
            status, and for each target status, error_code, error_message, error_source and next_attempt_at. \
            2. Call get_post_timeline: what happened, and under next what comes next and when. 3. For each account \
            with a target that is not published, call list_accounts and look at its status, and call \
            get_account_limits: rests_until and next_possible_at tell whether the platform throttles it. 4. Tell \
            me for each account the reason in one sentence, whether and when it is tried again by itself, and what \
            I can do: connect the account again, change the content, or wait. A target \
            that is published may have parts under missing. Call retry_post only if the post has dead targets or \
            missing parts, their cause is removed and I agree.",
    },
];

/// The prompts as listed to clients.
pub(super) fn list() -> Vec<Prompt> {
    let argument = |(name, description): &(&'static str, &'static str)| {
        PromptArgument::new(*name).with_description(*description).with_required(true)
    };
    let describe = |entry: &Entry| {
        let arguments = entry.arguments.iter().map(argument).collect();
        Prompt::new(entry.name, Some(entry.description), Some(arguments)).with_title(entry.title)
    };
    TABLE.iter().map(describe).collect()
}

/// Returns a prompt with its arguments filled in.
pub(super) fn get(name: &str, arguments: &Map<String, Value>) -> Result<GetPromptResult, ErrorData> {
    let entry = TABLE.iter().find(|entry| entry.name == name);
    let entry =
        entry.ok_or_else(|| ErrorData::invalid_params(format!("there is no prompt {}", clip(name)), None))?;
    let mut text = entry.text.to_owned();
    for (name, _) in entry.arguments {
        let Some(value) = arguments.get(*name).and_then(Value::as_str) else {
            return Err(ErrorData::invalid_params(format!("the argument {name} must be a string"), None));
        };
        text = text.replacen(&format!("{{{name}}}"), value, 1);
    }
    let message = PromptMessage::new_text(Role::User, text);
    Ok(GetPromptResult::new(vec![message]).with_description(entry.description))
}

/// Returns the beginning of a name for a message.
fn clip(name: &str) -> String {
    name.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::tools;

    #[test]
    fn a_prompt_uses_its_arguments_and_tools_that_exist() {
        for entry in &TABLE {
            for (name, _) in entry.arguments {
                assert_eq!(entry.text.matches(&format!("{{{name}}}")).count(), 1, "{}: {name}", entry.name);
            }
            let words = entry.text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
            let verbs = ["get_", "list_", "create_", "import_", "validate_", "retry_"];
            let named: Vec<_> =
                words.filter(|word| verbs.iter().any(|verb| word.starts_with(verb))).collect();
            assert!(!named.is_empty(), "{}", entry.name);
            for tool in named {
                assert!(tools::find(tool).is_some(), "{}: {tool}", entry.name);
            }
        }
    }
}
