//! Ids and addresses of posts, in every spelling.
//!
//! Reddit writes an id with and without the prefix of its kind (`t1_` a comment, `t3_` a post), and an author may name a
//! post by any of its addresses.

pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Returns the path of a post that leads to it without its subreddit and title.
pub(super) fn short_path(id: &str) -> String {
    format!("/comments/{}/", id.trim_start_matches("t3_"))
}

/// Returns an id with the prefix of its kind.
pub(super) fn fullname(kind: &str, id: &str) -> String {
    if id.starts_with("t1_") || id.starts_with("t3_") { id.to_owned() } else { format!("{kind}_{id}") }
}

/// Returns the id of the post in a URL of Reddit.
pub(super) fn linked(address: &str) -> Option<String> {
    let (_, rest) = address.split_once("/comments/")?;
    let id = rest.split(['/', '?', '#']).next().filter(|id| is_name(id))?;
    Some(fullname("t3", id))
}

/// Returns the id in a URL of Reddit, without its prefix. In test mode Reddit's host is a part of the path.
fn linked_host(address: &str) -> Option<&str> {
    let mut parts = address.split(['/', '?', '#']);
    let is_host = |part: &&str| *part == "redd.it" || *part == "reddit.com" || part.ends_with(".reddit.com");
    match parts.find(is_host)? {
        "redd.it" => parts.next(),
        _ => parts.find(|part| ["comments", "gallery"].contains(part)).and_then(|_| parts.next()),
    }
}

/// Returns the full name of a post, given by its id or URL.
pub(super) fn named_post(written: &str) -> Option<String> {
    let written = written.trim();
    let id = match written.contains('/') {
        false => written.strip_prefix("t3_").unwrap_or(written),
        true => linked_host(written)?,
    };
    let is_id = (1..=13).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_id.then(|| format!("t3_{}", id.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_named_by_its_id_or_url() {
        for (written, id) in [
            ("4bbe4b", Some("t3_4bbe4b")),
            (" t3_4BBE4B ", Some("t3_4bbe4b")),
            ("https://www.reddit.com/r/test/comments/4bbe4b/a_title/?utm_source=share", Some("t3_4bbe4b")),
            ("https://old.reddit.com/user/ada/comments/4bbe4b", Some("t3_4bbe4b")),
            ("reddit.com/comments/4bbe4b#a", Some("t3_4bbe4b")),
            ("https://www.reddit.com/gallery/4bbe4b", Some("t3_4bbe4b")),
            ("https://redd.it/4bbe4b", Some("t3_4bbe4b")),
            ("http://localhost:8080/www.reddit.com/r/test/comments/4bbe4b/a_title/", Some("t3_4bbe4b")),
            // Reddit alone knows where it leads.
            ("https://www.reddit.com/r/test/s/AbCdEf", None),
            ("https://www.reddit.com/r/test/", None),
            ("https://example.com/r/test/comments/4bbe4b/", None),
            ("https://evilreddit.com/comments/4bbe4b/", None),
            ("t1_4bbe4b", None),
            ("a title", None),
            ("", None),
        ] {
            assert_eq!(named_post(written).as_deref(), id, "{written}");
        }
    }
}
