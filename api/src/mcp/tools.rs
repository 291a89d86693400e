//! The tools: operations of the API for language models.
//!
//! A tool's schemas and description come from its operation in the OpenAPI document, and it calls the
//! operation's function, so the two can't differ. This module adds name, scope and annotations.

use super::schema;
use crate::{
    accounts::{self, OptionFilter},
    events,
    http::{
        body,
        caller::{Call, Identity},
        headers::Header,
        problem::{Issue, Problem},
    },
    media, networks,
    openapi::validate::Rules,
    operations,
    posts::{self, analytics, create, edit},
    requests, slots, usage, webhooks,
};
use domain::{json::type_name, scope::Scope};
use futures::future::BoxFuture;
use poem::http::Method;
use poem_openapi::types::{ParseFromJSON, ToJSON};
use rmcp::model::{self, ToolAnnotations};
use serde_json::{Map, Value};
use std::sync::{Arc, LazyLock};
use store::posts::Created;

/// The function that runs a tool.
type Run = for<'a> fn(&'a Call<'a>, Arguments) -> BoxFuture<'a, Result<Value, Problem>>;

/// Side effects of a tool, for hosts that ask their user first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Reads stored data.
    Reads,
    /// Reads from platforms.
    Asks,
    /// Creates stored data.
    Adds,
    /// Creates data and publishes it.
    Publishes,
    /// Updates or deletes data; idempotent.
    Replaces,
    /// Changes or deletes data at a platform; idempotent.
    Alters,
}

/// Definition of a tool.
struct ToolEntry {
    name: &'static str,
    title: &'static str,
    operation: &'static str,
    scope: Scope,
    effect: Effect,
    run: Run,
}

const TABLE: &[ToolEntry] = &[
    ToolEntry {
        name: "list_accounts",
        title: "List connected accounts",
        operation: "listSocialAccounts",
        scope: Scope::AccountsRead,
        effect: Effect::Reads,
        run: |call, arguments| {
            Box::pin(async move { Ok(json(&accounts::list(call, arguments.read()?).await?)) })
        },
    },
    ToolEntry {
        name: "get_account_capabilities",
        title: "Get what an account accepts",
        operation: "getSocialAccountCapabilities",
        scope: Scope::AccountsRead,
        effect: Effect::Reads,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, Nothing {}) = arguments.about("id")?;
                Ok(json(&accounts::capabilities(call, &id).await?))
            })
        },
    },
    ToolEntry {
        name: "list_account_options",
        title: "List the boards, subreddits, flairs or other options of an account",
        operation: "listSocialAccountOptions",
        scope: Scope::AccountsRead,
        effect: Effect::Asks,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, kind, filter) = arguments.about_two("id", "kind")?;
                let OptionFilter { parent } = filter;
                Ok(json(&accounts::options(call, &id, &kind, parent).await?))
            })
        },
    },
    ToolEntry {
        name: "get_account_limits",
        title: "Get how many posts an account can still take",
        operation: "getSocialAccountLimits",
        scope: Scope::AccountsRead,
        effect: Effect::Asks,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, Nothing {}) = arguments.about("id")?;
                Ok(json(&accounts::limits::read(call, &id).await?))
            })
        },
    },
    ToolEntry {
        name: "create_post",
        title: "Publish or schedule a post",
        operation: "createPost",
        scope: Scope::PostsWrite,
        effect: Effect::Publishes,
        run: |call, arguments| {
            Box::pin(async move {
                let post = create::create(call, arguments.read()?, &Header::default()).await?;
                let (Created::New(post) | Created::Replay(post)) = post;
                Ok(json(&posts::Post::from(post)))
            })
        },
    },
    ToolEntry {
        name: "validate_post",
        title: "Check a post without publishing it",
        operation: "validatePost",
        scope: Scope::PostsWrite,
        effect: Effect::Asks,
        run: |call, arguments| {
            Box::pin(async move { Ok(json(&posts::validate::validate(call, arguments.read()?).await?)) })
        },
    },
    ToolEntry {
        name: "get_post",
        title: "Get a post",
        operation: "getPost",
        scope: Scope::PostsRead,
        effect: Effect::Reads,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, Nothing {}) = arguments.about("id")?;
                Ok(json(&posts::Post::from(posts::find(call, &id).await?)))
            })
        },
    },
    ToolEntry {
        name: "get_post_timeline",
        title: "Get what happened to a post, and what comes next",
        operation: "getPostTimeline",
        scope: Scope::PostsRead,
        effect: Effect::Reads,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, paging) = arguments.about("id")?;
                let post = posts::find(call, &id).await?;
                Ok(json(&posts::timeline::of(call, &post, &paging).await?))
            })
        },
    },
    ToolEntry {
        name: "list_posts",
        title: "List posts",
        operation: "listPosts",
        scope: Scope::PostsRead,
        effect: Effect::Reads,
        run: |call, arguments| {
            Box::pin(async move { Ok(json(&posts::list(call, arguments.read()?).await?)) })
        },
    },
    ToolEntry {
        name: "update_post",
        title: "Change a post",
        operation: "updatePost",
        scope: Scope::PostsWrite,
        effect: Effect::Replaces,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, body) = arguments.about("id")?;
                Ok(json(&posts::Post::from(edit::edit(call, &id, body).await?)))
            })
        },
    },
    ToolEntry {
        name: "delete_post",
        title: "Delete a post",
        operation: "deletePost",
        scope: Scope::PostsWrite,
        effect: Effect::Replaces,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, Nothing {}) = arguments.about("id")?;
                Ok(json(&posts::delete(call, &id).await?))
            })
        },
    },
    ToolEntry {
        name: "retry_post",
        title: "Publish again where a post failed for good, or parts of it",
        operation: "retryPost",
        scope: Scope::PostsWrite,
        effect: Effect::Publishes,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, body) = arguments.about("id")?;
                Ok(json(&posts::Post::from(posts::retry::retry(call, &id, body).await?)))
            })
        },
    },
    ToolEntry {
        name: "edit_published_post",
        title: "Change a published post on its platform",
        operation: "editTarget",
        scope: Scope::PostsWrite,
        effect: Effect::Alters,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, target_id, body) = arguments.about_two("id", "target_id")?;
                Ok(json(&posts::edit_target::edit(call, &id, &target_id, body).await?))
            })
        },
    },
    ToolEntry {
        name: "unpublish_post",
        title: "Delete a published post from its platform",
        operation: "unpublishTarget",
        scope: Scope::PostsWrite,
        effect: Effect::Alters,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, Of { target_id }) = arguments.about("id")?;
                Ok(json(&posts::unpublish::unpublish(call, &id, &target_id).await?))
            })
        },
    },
    ToolEntry {
        name: "get_post_analytics",
        title: "Get a post's analytics",
        operation: "getPostAnalytics",
        scope: Scope::AnalyticsRead,
        effect: Effect::Asks,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, detail) = arguments.about("id")?;
                Ok(json(&analytics::of(call, &id, detail).await?))
            })
        },
    },
    ToolEntry {
        name: "find_slot",
        title: "Find an account's next open posting slots",
        operation: "findSlot",
        scope: Scope::SchedulingRead,
        effect: Effect::Reads,
        run: |call, arguments| {
            Box::pin(async move { Ok(json(&slots::find(call, arguments.read()?).await?)) })
        },
    },
    ToolEntry {
        name: "import_media",
        title: "Import an image or a video",
        operation: "importMedia",
        scope: Scope::MediaWrite,
        effect: Effect::Publishes,
        run: |call, arguments| {
            Box::pin(async move { Ok(json(&media::import(call, arguments.read()?).await?)) })
        },
    },
    ToolEntry {
        name: "get_media",
        title: "Get a media asset and its status",
        operation: "getMedia",
        scope: Scope::MediaRead,
        effect: Effect::Reads,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, wait) = arguments.about("id")?;
                Ok(json(&media::get(call, &id, wait).await?))
            })
        },
    },
    ToolEntry {
        name: "update_media",
        title: "Change the alt text of a media asset",
        operation: "updateMedia",
        scope: Scope::MediaWrite,
        effect: Effect::Replaces,
        run: |call, arguments| {
            Box::pin(async move {
                let (id, body) = arguments.about("id")?;
                Ok(json(&media::update(call, &id, body).await?))
            })
        },
    },
    ToolEntry {
        name: "create_auth_url",
        title: "Create an authorization URL",
        operation: "createAuthUrl",
        scope: Scope::AccountsWrite,
        effect: Effect::Adds,
        run: |call, arguments| {
            Box::pin(async move {
                let (platform, body) = arguments.about("platform")?;
                Ok(json(&networks::authorize(call, &platform, body).await?))
            })
        },
    },
    ToolEntry {
        name: "list_webhooks",
        title: "List webhook endpoints",
        operation: "listWebhooks",
        scope: Scope::WebhooksRead,
        effect: Effect::Reads,
        run: |call, arguments| {
            Box::pin(async move { Ok(json(&webhooks::list(call, &arguments.read()?).await?)) })
        },
    },
    ToolEntry {
        name: "create_webhook",
        title: "Register a webhook endpoint",
        operation: "createWebhook",
        scope: Scope::WebhooksWrite,
        effect: Effect::Adds,
        run: |call, arguments| {
            Box::pin(async move { Ok(json(&webhooks::create(call, arguments.read()?).await?)) })
        },
    },
    ToolEntry {
        name: "list_events",
        title: "List what happened to posts, accounts, media and imports",
        operation: "listEvents",
        scope: Scope::WebhooksRead,
        effect: Effect::Reads,
        run: |call, arguments| {
            Box::pin(async move { Ok(json(&events::list(call, arguments.read()?).await?)) })
        },
    },
    ToolEntry {
        name: "list_requests",
        title: "List the latest API requests",
        operation: "listRequests",
        scope: Scope::UsageRead,
        effect: Effect::Reads,
        run: |call, arguments| {
            Box::pin(async move { Ok(json(&requests::list(call, arguments.read()?).await?)) })
        },
    },
    ToolEntry {
        name: "get_usage",
        title: "Get usage of the plan",
        operation: "getUsage",
        scope: Scope::UsageRead,
        effect: Effect::Reads,
        run: |call, _| Box::pin(async move { Ok(json(&usage::read(call).await?)) }),
    },
];

/// A tool and its operation.
pub(super) struct Tool {
    /// HTTP method of the operation.
    pub(super) method: Method,
    /// Path of the operation, relative to the API's prefix.
    pub(super) path: String,
    /// Name of the first parameter of the path, if it has one.
    subject: Option<String>,
    entry: &'static ToolEntry,
    description: String,
    input: Arc<Map<String, Value>>,
    output: Arc<Map<String, Value>>,
}

static TOOLS: LazyLock<Vec<Tool>> = LazyLock::new(|| {
    let document = serde_json::from_str(&operations::document()).expect("the document is JSON");
    TABLE.iter().map(|entry| Tool::of(entry, &document)).collect()
});

/// All tools.
pub(super) fn all() -> &'static [Tool] {
    &TOOLS
}

/// The tool with this name.
pub(super) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.entry.name == name)
}

impl Tool {
    fn of(entry: &'static ToolEntry, document: &Value) -> Self {
        let operation = schema::operation(document, entry.operation);
        let words = ["summary", "description"].map(|key| operation.says[key].as_str().unwrap_or_default());
        Self {
            method: operation.method.clone(),
            path: operation.path.to_owned(),
            subject: operation
                .path
                .split_once('{')
                .and_then(|(_, rest)| Some(rest.split_once('}')?.0.to_owned())),
            entry,
            description: words.join(". ").split_whitespace().collect::<Vec<_>>().join(" "),
            input: Arc::new(schema::input(document, operation.says)),
            output: Arc::new(schema::output(document, operation.says)),
        }
    }

    /// The tool as listed to clients.
    pub(super) fn describe(&self) -> model::Tool {
        let effect = self.entry.effect;
        let is_read_only = matches!(effect, Effect::Reads | Effect::Asks);
        let hints = ToolAnnotations::with_title(self.entry.title)
            .read_only(is_read_only)
            .destructive(matches!(effect, Effect::Replaces | Effect::Alters))
            .idempotent(is_read_only || matches!(effect, Effect::Replaces | Effect::Alters))
            .open_world(matches!(effect, Effect::Asks | Effect::Publishes | Effect::Alters));
        model::Tool::new(self.entry.name, self.description.clone(), self.input.clone())
            .with_title(self.entry.title)
            .with_raw_output_schema(self.output.clone())
            .with_annotations(hints)
    }

    /// Calls the tool, if the caller may.
    pub(super) async fn call(
        &self,
        caller: &Identity,
        arguments: Map<String, Value>,
    ) -> Result<Value, Problem> {
        // A tool about a resource takes its id as the argument that its operation's path names first.
        let id = self.subject.as_ref().and_then(|name| arguments.get(name)).and_then(Value::as_str);
        let call = caller.authorize(self.entry.scope, &self.method, &self.path, id).await?;
        (self.entry.run)(&call, Arguments(arguments)).await
    }
}

/// Arguments of a tool call.
struct Arguments(Map<String, Value>);

impl Arguments {
    /// Parses the arguments as the operation's input. What its schema lacks is refused, as the schema says.
    fn read<T: ParseFromJSON + Rules + 'static>(self) -> Result<T, Problem> {
        body::read_closed(Value::Object(self.0))
    }

    /// Splits off a path parameter.
    fn about<T: ParseFromJSON + Rules + 'static>(mut self, name: &str) -> Result<(String, T), Problem> {
        let [subject] = self.split::<T, 1>([name])?;
        Ok((subject, self.read()?))
    }

    /// Splits off two path parameters.
    fn about_two<T: ParseFromJSON + Rules + 'static>(
        mut self,
        one: &str,
        other: &str,
    ) -> Result<(String, String, T), Problem> {
        let [one, other] = self.split::<T, 2>([one, other])?;
        Ok((one, other, self.read()?))
    }

    /// Removes path parameters, which are required; reports all issues, also those of the other arguments.
    fn split<T: ParseFromJSON + Rules + 'static, const N: usize>(
        &mut self,
        names: [&str; N],
    ) -> Result<[String; N], Problem> {
        let mut issues = Vec::new();
        let subjects = names.map(|name| match self.0.remove(name) {
            Some(Value::String(subject)) => subject,
            other => {
                let received = other.as_ref().map_or("undefined", type_name);
                issues.push(Issue::wrong_type(&[name.into()], "string", received));
                String::new()
            }
        });
        if issues.is_empty() {
            return Ok(subjects);
        }
        issues.extend(body::check_closed::<T>(&Value::Object(self.0.clone())));
        Err(Problem::invalid_body(issues))
    }
}

/// Arguments of a tool that takes only an id.
#[derive(Debug, poem_openapi::Object)]
struct Nothing {}

impl Rules for Nothing {}

/// Arguments of a tool about a target, beside the id of its post.
#[derive(Debug, poem_openapi::Object)]
struct Of {
    target_id: String,
}

impl Rules for Of {}

fn json(answer: &impl ToJSON) -> Value {
    answer.to_json().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_needs_the_scope_that_its_operation_names() {
        for tool in all() {
            let scope = format!("Scope `{}`", tool.entry.scope);
            assert!(tool.description.contains(&scope), "{}: {}", tool.entry.name, tool.description);
        }
    }

    #[test]
    fn a_tool_says_what_it_takes_and_gives() {
        for tool in all() {
            let name = tool.entry.name;
            let described = serde_json::to_value(tool.describe()).unwrap();
            for schema in ["inputSchema", "outputSchema"] {
                let schema = &described[schema];
                assert_eq!(schema["type"], "object", "{name}");
                let text = schema.to_string();
                assert!(!text.contains("$ref") && !text.contains("nullable"), "{name}: {text}");
                let properties = schema["properties"].as_object().unwrap();
                let required = schema["required"].as_array().into_iter().flatten();
                for one in required {
                    assert!(properties.contains_key(one.as_str().unwrap()), "{name}: {one}");
                }
            }
        }
        let update = find("update_post").unwrap();
        assert_eq!(update.input["required"], serde_json::json!(["id"]));
        assert!(update.input["properties"]["content"].is_object());
    }
}
