//! Resources: what a host can attach to a conversation without calling a tool.
//!
//! A resource about stored data is another address of a tool's answer, so that it has the tool's scope and content.

use super::tools;
use crate::{
    accounts::capabilities,
    http::{
        caller::Identity,
        problem::{Code, Problem},
    },
};
use poem_openapi::types::ToJSON;
use rmcp::{
    ErrorData,
    model::{Resource, ResourceContents, ResourceTemplate},
};
use serde_json::{Map, Value, json};

/// Media type of all resources.
const MIME: &str = "application/json";
/// Address of a platform, before its id.
const PLATFORM: &str = "fanfare://platforms/";

/// A resource template: the answer of a tool that takes an id.
struct Template {
    uri: &'static str,
    name: &'static str,
    title: &'static str,
    tool: &'static str,
}

const TEMPLATES: [Template; 4] = [
    Template {
        uri: "fanfare://accounts/{id}/capabilities",
        name: "account_capabilities",
        title: "What an account accepts",
        tool: "get_account_capabilities",
    },
    Template {
        uri: "fanfare://accounts/{id}/limits",
        name: "account_limits",
        title: "How many posts an account can still take",
        tool: "get_account_limits",
    },
    Template { uri: "fanfare://posts/{id}", name: "post", title: "A post and its targets", tool: "get_post" },
    Template {
        uri: "fanfare://posts/{id}/timeline",
        name: "post_timeline",
        title: "What happened to a post, and what comes next",
        tool: "get_post_timeline",
    },
];

impl Template {
    /// Returns the id in an address of this template.
    fn id<'a>(&self, uri: &'a str) -> Option<&'a str> {
        let (before, after) = self.uri.split_once("{id}").expect("a template has an id");
        uri.strip_prefix(before)?.strip_suffix(after).filter(|id| !id.is_empty() && !id.contains('/'))
    }
}

/// The resources with fixed addresses: what each platform accepts.
pub(super) fn list() -> Vec<Resource> {
    let of = |platform: &&platforms::Adapter| {
        let description =
            format!("Limits of texts and media on {}, and the JSON Schema of its settings", platform.name);
        Resource::new(format!("{PLATFORM}{}", platform.id), platform.id)
            .with_title(format!("What {} accepts", platform.name))
            .with_description(description)
            .with_mime_type(MIME)
    };
    platforms::all().iter().map(of).collect()
}

/// The templates of further resources.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    let of = |template: &Template| {
        ResourceTemplate::new(template.uri, template.name)
            .with_title(template.title)
            .with_description(format!("The answer of the tool {}", template.tool))
            .with_mime_type(MIME)
    };
    TEMPLATES.iter().map(of).collect()
}

/// Reads a resource.
pub(super) async fn read(caller: &Identity, uri: &str) -> Result<ResourceContents, ErrorData> {
    let content = match uri.strip_prefix(PLATFORM).and_then(platforms::get) {
        Some(platform) => capabilities::of_platform(platform).to_json().unwrap_or_default(),
        None => answer(caller, uri).await.map_err(failed)?,
    };
    Ok(ResourceContents::text(content.to_string(), uri).with_mime_type(MIME))
}

async fn answer(caller: &Identity, uri: &str) -> Result<Value, Problem> {
    let found = TEMPLATES.iter().find_map(|template| Some((template, template.id(uri)?)));
    let (template, id) = found.ok_or_else(|| Problem::not_found("resource"))?;
    let tool = tools::find(template.tool).expect("a template names a tool");
    let arguments = Map::from_iter([("id".to_owned(), json!(id))]);
    tool.call(caller, arguments).await
}

/// Converts a problem to an error of the protocol, with the problem document as its data.
fn failed(problem: Problem) -> ErrorData {
    let (code, detail) = (problem.code, problem.detail.clone());
    let document = Some(problem.document());
    match code {
        Code::NotFound => ErrorData::resource_not_found(detail, document),
        Code::InternalError | Code::Unavailable => ErrorData::internal_error(detail, document),
        _ => ErrorData::invalid_request(detail, document),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_template_names_a_tool_that_takes_an_id() {
        for template in &TEMPLATES {
            let tool = tools::find(template.tool).expect(template.tool);
            let described = serde_json::to_value(tool.describe()).unwrap();
            assert_eq!(described["inputSchema"]["required"], json!(["id"]), "{}", template.tool);
        }
    }

    #[test]
    fn an_address_belongs_to_one_template() {
        for (uri, expected) in [
            ("fanfare://posts/7", Some(("post", "7"))),
            ("fanfare://posts/7/timeline", Some(("post_timeline", "7"))),
            ("fanfare://accounts/7/limits", Some(("account_limits", "7"))),
            ("fanfare://posts/", None),
            ("fanfare://posts/7/8/timeline", None),
            ("fanfare://media/7", None),
        ] {
            let found: Vec<_> = TEMPLATES.iter().filter_map(|one| Some((one.name, one.id(uri)?))).collect();
            assert_eq!(found, expected.into_iter().collect::<Vec<_>>(), "{uri}");
        }
    }
}
