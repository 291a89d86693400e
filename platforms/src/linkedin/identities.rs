//! The member and their pages, which have one grant in common.
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/organizations/organization-access-control-by-role>

use super::{Elements, REST, V2, finder, has, has_openid, offset, rest};
use crate::{AccountProfile, Identity, Result, Session, pages, required};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// Maximum number of pages in one call.
const MAX_BATCH: usize = 50;

/// Returns the identity of the member.
pub(super) async fn member(cx: &Session<'_>) -> Result<Identity> {
    const PROJECTION: &str =
        "(id,localizedFirstName,localizedLastName,vanityName,profilePicture(displayImage~:playableStreams))";
    let identity = |id: String, name: Option<String>, vanity: Option<String>, picture: Option<String>| {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let vanity = given(vanity);
        Identity {
            profile: AccountProfile {
                profile_url: vanity.as_ref().map(|vanity| format!("https://www.linkedin.com/in/{vanity}")),
                username: vanity.unwrap_or_else(|| id.clone()),
                display_name: given(name).unwrap_or_else(|| id.clone()),
                account_type: "profile".to_owned(),
                profile_image_url: picture,
                network_unique_id: id,
            },
            grant: None,
        }
    };
    if !has_openid(cx) {
        let me: Profile = cx.get(format!("{V2}/me?projection={PROJECTION}")).send().await?;
        let (name, picture) = (me.name(), me.picture());
        return Ok(identity(me.id, Some(name), me.vanity_name, picture));
    }
    let me: Member = cx.get(format!("{V2}/userinfo")).send().await?;
    // Only some apps may read it, and nothing depends on it.
    let vanity = match has(cx, &["r_basicprofile"]) {
        true => cx.get(format!("{V2}/me")).send::<Vanity>().await.ok().and_then(|me| me.vanity_name),
        false => None,
    };
    Ok(identity(me.sub, me.name, vanity, me.picture))
}

/// Returns the pages that the member may post for.
pub(super) async fn organizations(cx: &Session<'_>) -> Result<Vec<Identity>> {
    const ROLES: [&str; 5] = [
        "ADMINISTRATOR",
        "CONTENT_ADMINISTRATOR",
        "CONTENT_ADMIN",
        "DIRECT_SPONSORED_CONTENT_POSTER",
        "RECRUITING_POSTER",
    ];
    let roles = pages(|cursor: Option<String>| async move {
        let start = offset(cursor.as_deref());
        let address =
            format!("{REST}/organizationAcls?q=roleAssignee&state=APPROVED&start={start}&count=100");
        let found: Elements<Role> = finder(cx, cx.get(address)).send().await?;
        Ok(found.page(start))
    });
    let mut ids: Vec<String> = Vec::new();
    for role in roles.await?.into_iter().filter(|role| ROLES.contains(&role.role.as_str())) {
        if let Some(id) = role.organization.rsplit(':').next().map(str::to_owned)
            && required::is_id(&id)
            && !ids.contains(&id)
        {
            ids.push(id);
        }
    }
    let mut all = Vec::new();
    for ids in ids.chunks(MAX_BATCH) {
        let address = format!("{REST}/organizations?ids=List({})", ids.join(","));
        let call = rest(cx, cx.get(address)).header("X-RestLi-Method", "BATCH_GET");
        let mut pages: Batch<Organization> = call.send().await?;
        // A page whose description this role can't read can still be posted for.
        all.extend(ids.iter().map(|id| pages.results.remove(id).unwrap_or_default().identity(id)));
    }
    Ok(all)
}

/// Returns the page with this id.
pub(super) async fn page(cx: &Session<'_>, id: &str) -> Result<Organization> {
    rest(cx, cx.get(format!("{REST}/organizations/{id}"))).send().await
}

#[derive(Deserialize)]
struct Member {
    #[serde(deserialize_with = "required::id")]
    sub: String,
    name: Option<String>,
    picture: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Vanity {
    vanity_name: Option<String>,
}

/// A member's profile, for apps without OpenID Connect.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    #[serde(deserialize_with = "required::id")]
    id: String,
    localized_first_name: Option<String>,
    localized_last_name: Option<String>,
    vanity_name: Option<String>,
    #[serde(default)]
    profile_picture: Value,
}

impl Profile {
    fn name(&self) -> String {
        let names = [&self.localized_first_name, &self.localized_last_name];
        let names: Vec<&str> = names.into_iter().flatten().map(String::as_str).collect();
        names.join(" ").trim().to_owned()
    }

    /// Returns the URL of the largest picture, which is the last.
    fn picture(&self) -> Option<String> {
        let sizes = self.profile_picture.pointer("/displayImage~/elements")?.as_array()?;
        Some(sizes.last()?.pointer("/identifiers/0/identifier")?.as_str()?.to_owned())
    }
}

#[derive(Deserialize)]
struct Role {
    organization: String,
    role: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Organization {
    localized_name: Option<String>,
    vanity_name: Option<String>,
}

impl Organization {
    /// Returns the identity with this id.
    fn identity(self, id: &str) -> Identity {
        let username = self.vanity_name.filter(|name| !name.is_empty()).unwrap_or_else(|| id.to_owned());
        Identity {
            profile: AccountProfile {
                network_unique_id: id.to_owned(),
                display_name: self.localized_name.unwrap_or_else(|| username.clone()),
                profile_url: Some(format!("https://www.linkedin.com/company/{username}")),
                username,
                account_type: "organization".to_owned(),
                profile_image_url: None,
            },
            grant: None,
        }
    }
}

/// The entities found, by id.
#[derive(Deserialize)]
pub(super) struct Batch<T> {
    pub(super) results: HashMap<String, T>,
}
