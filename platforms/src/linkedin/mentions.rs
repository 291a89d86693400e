//! Look-up of the organizations and members that a text may mention.
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/organizations/organization-lookup-api>
//! <https://learn.microsoft.com/en-us/linkedin/marketing/community-management/shares/posts-atmention-search-api>
//!
//! LinkedIn finds an organization by its number, vanity name or e-mail domain, never by a part of its name, and
//! members by the beginning of their name among the followers of a page. A mention is a link only with the exact
//! name, so each option is the whole text of the mention.

use super::{
    Elements, REST, encode, finder, has,
    identities::{Batch, organizations},
    is_closed, is_page, own, rest,
    text::mention,
};
use crate::{Result, SelectOption, Session};
use domain::{ErrorCode, Failure};
use serde::Deserialize;
use url::{Url, form_urlencoded};

/// Scope that opens the look-up of organizations.
const ADMIN: &str = "rw_organization_admin";
/// Scope that opens the look-up of members, which LinkedIn grants to some apps only.
const FOLLOWERS: &str = "r_organization_followers";
/// Maximum number of pages whose followers are searched, one call each.
const MAX_PAGES: usize = 5;
/// Maximum length of an organization's number, in digits.
const MAX_DIGITS: usize = 20;

/// Returns the mentions that a text leads to: of organizations, then of members.
///
/// # Errors
///
/// `rejected_403` when the account's scopes open neither look-up.
pub(super) async fn find(cx: &Session<'_>, text: &str) -> Result<Vec<SelectOption>> {
    let (has_organizations, has_members) = (has(cx, &[ADMIN]), has(cx, &[FOLLOWERS]));
    if !has_organizations && !has_members {
        let message = format!(
            "the account was connected without {ADMIN}, needed to look up organizations, and {FOLLOWERS}, needed to \
             look up members: connect it again"
        );
        return Err(Failure::rejected(403, message));
    }
    let wanted = Wanted::parse(text)?;
    let mut found = Vec::new();
    if has_organizations {
        found.extend(mentioned_organizations(cx, &wanted).await?);
    }
    if has_members && let Wanted::Name(name) = &wanted {
        found.extend(mentioned_members(cx, name).await?);
    }
    Ok(found)
}

async fn mentioned_organizations(cx: &Session<'_>, wanted: &Wanted) -> Result<Vec<SelectOption>> {
    let by = async |name: &str, value: &str| {
        let address = format!("{REST}/organizations?q={name}&{name}={}", encode(value));
        let found: Elements<Organization> = finder(cx, cx.get(address)).send().await?;
        Ok(found.elements)
    };
    let found = match wanted {
        Wanted::Number(number) => organization(cx, number).await,
        Wanted::VanityName(name) => by("vanityName", name).await,
        Wanted::Domain(domain) => by("emailDomain", domain).await,
        // Most vanity names are the name in this form.
        Wanted::Name(name) => {
            let words: Vec<_> = name.split_whitespace().map(str::to_lowercase).collect();
            by("vanityName", &words.join("-")).await
        }
    };
    match found {
        Ok(found) => Ok(found.into_iter().filter_map(Organization::option).collect()),
        Err(failure) if failure.code == ErrorCode::Rejected(404) => Ok(Vec::new()),
        Err(failure) => Err(failure),
    }
}

/// Returns the organization with this number, which the member need not administer.
async fn organization(cx: &Session<'_>, number: &str) -> Result<Vec<Organization>> {
    let call = rest(cx, cx.get(format!("{REST}/organizationsLookup?ids=List({number})")));
    let found: Batch<Organization> = call.header("X-RestLi-Method", "BATCH_GET").send().await?;
    Ok(found.results.into_values().collect())
}

/// Returns the followers of the account's page, or of the member's pages, whose name begins with a text.
async fn mentioned_members(cx: &Session<'_>, name: &str) -> Result<Vec<SelectOption>> {
    let pages = match is_page(cx) {
        true => vec![own(cx)],
        false if has(cx, &[ADMIN]) => {
            let pages = organizations(cx).await?.into_iter().take(MAX_PAGES);
            pages.map(|page| format!("urn:li:organization:{}", page.profile.network_unique_id)).collect()
        }
        false => Vec::new(),
    };
    let mut all: Vec<SelectOption> = Vec::new();
    for page in pages {
        let (name, page) = (encode(name).replace('+', "%20"), encode(&page));
        let address =
            format!("{REST}/peopleTypeahead?q=organizationFollowers&keywords={name}&organization={page}");
        let followers: Result<Elements<Follower>> = finder(cx, cx.get(address)).send().await;
        let followers = match followers {
            Ok(followers) => followers.elements,
            // A text that can't be a member's name, or a page that the member's role does not open.
            Err(failure) if is_closed(&failure) => continue,
            Err(failure) => return Err(failure),
        };
        for option in followers.into_iter().filter_map(Follower::option) {
            if !all.iter().any(|other| other.id == option.id) {
                all.push(option);
            }
        }
    }
    Ok(all)
}

/// A text to look for, as LinkedIn can look for it.
#[derive(Debug, PartialEq)]
enum Wanted {
    /// An organization's number.
    Number(String),
    /// The name in the address of an organization's page.
    VanityName(String),
    /// An organization's e-mail domain.
    Domain(String),
    /// A name of an organization or a member.
    Name(String),
}

impl Wanted {
    /// Reads a text: a name, a number, a domain, or the address of an organization's page.
    fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Failure::rejected(422, "the text to look for is empty"));
        }
        if is_number(text) {
            return Ok(Self::Number(text.to_owned()));
        }
        let address = Url::parse(text).ok().filter(Url::has_host);
        let address = address.or_else(|| Url::parse(&format!("https://{text}")).ok());
        let name = || Ok(Self::Name(text.to_owned()));
        let Some((address, domain)) = address.as_ref().and_then(|address| Some((address, address.domain()?)))
        else {
            return name();
        };
        if domain == "linkedin.com" || domain.ends_with(".linkedin.com") {
            let path: Vec<_> = address.path_segments().into_iter().flatten().collect();
            return match path[..] {
                ["company" | "school" | "showcase", page, ..] if !page.is_empty() => {
                    let page = decode(page);
                    Ok(if is_number(&page) { Self::Number(page) } else { Self::VanityName(page) })
                }
                [""] | [] => Ok(Self::Domain("linkedin.com".to_owned())),
                _ => {
                    let message = "of addresses at LinkedIn, only those of pages can be looked up, for example \
                                   https://www.linkedin.com/company/devtestco; members by their name";
                    Err(Failure::rejected(422, message))
                }
            };
        }
        match domain.strip_prefix("www.").unwrap_or(domain) {
            domain if domain.contains('.') => Ok(Self::Domain(domain.to_owned())),
            _ => name(),
        }
    }
}

fn is_number(text: &str) -> bool {
    (1..=MAX_DIGITS).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Decodes a part of a path.
fn decode(part: &str) -> String {
    form_urlencoded::parse(part.as_bytes()).next().map_or_else(String::new, |(name, _)| name.into_owned())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Organization {
    id: u64,
    localized_name: Option<String>,
}

impl Organization {
    fn option(self) -> Option<SelectOption> {
        let name = self.localized_name?;
        let id = mention(&name, &format!("urn:li:organization:{}", self.id))?;
        Some(SelectOption { id, name })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Follower {
    member: String,
    #[serde(default)]
    first_name: String,
    #[serde(default)]
    last_name: String,
    #[serde(default)]
    headline: String,
}

impl Follower {
    fn option(self) -> Option<SelectOption> {
        let name = format!("{} {}", self.first_name, self.last_name).trim().to_owned();
        let id = mention(&name, &self.member)?;
        let name = if self.headline.is_empty() { name } else { format!("{name}, {}", self.headline) };
        Some(SelectOption { id, name })
    }
}

#[cfg(test)]
mod tests {
    use super::Wanted;

    #[test]
    fn a_text_is_looked_up_by_its_form() {
        let (name, domain) =
            (|text: &str| Wanted::Name(text.into()), |text: &str| Wanted::Domain(text.into()));
        for (text, expected) in [
            ("  Devtestco Inc ", name("Devtestco Inc")),
            ("devtestco", name("devtestco")),
            ("J.P. Example", name("J.P. Example")),
            ("2414183", Wanted::Number("2414183".into())),
            ("devtestco.com", domain("devtestco.com")),
            ("https://www.devtestco.com/about", domain("devtestco.com")),
            ("someone@devtestco.com", domain("devtestco.com")),
            ("https://www.linkedin.com/company/devtestco", Wanted::VanityName("devtestco".into())),
            ("linkedin.com/company/devtestco/posts/?a=b", Wanted::VanityName("devtestco".into())),
            ("https://fr.linkedin.com/school/%C3%A9cole-a/", Wanted::VanityName("école-a".into())),
            ("https://www.linkedin.com/company/2414183/", Wanted::Number("2414183".into())),
            ("linkedin.com", domain("linkedin.com")),
        ] {
            assert_eq!(Wanted::parse(text).unwrap(), expected, "{text}");
        }
        for text in [" ", "https://www.linkedin.com/in/someone", "https://www.linkedin.com/company/"] {
            assert!(Wanted::parse(text).is_err(), "{text}");
        }
    }
}
