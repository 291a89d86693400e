//! How a platform shows a post, as previews of the dashboard and pages of the sandbox do. Their style sheets and icons
//! are in the folder `look` of the repository.
//!
//! Nothing depends on it but these pages, so that the sandbox judges no request by it.

/// Returns what viewers can do with a post, in the platform's order.
pub fn actions(platform: &str) -> &'static [&'static str] {
    match platform {
        "x" | "bluesky" | "threads" => &["Reply", "Repost", "Like", "Share"],
        "linkedin" => &["Like", "Comment", "Repost", "Send"],
        "facebook" => &["Like", "Comment", "Share"],
        "instagram" => &["Like", "Comment", "Share", "Save"],
        "tiktok" => &["Like", "Comment", "Save", "Share"],
        "youtube" => &["Like", "Dislike", "Share"],
        "pinterest" => &["Save"],
        "google_business" => &["Share"],
        "reddit" => &["Upvote", "Downvote", "Comment", "Share"],
        _ => &[],
    }
}

/// Returns a username as the platform writes it beside the name; empty where it writes none.
pub fn handle(platform: &str, username: &str) -> String {
    match platform {
        "reddit" => format!("u/{username}"),
        "linkedin" | "facebook" | "google_business" => String::new(),
        "instagram" | "threads" | "pinterest" => username.to_owned(),
        _ => format!("@{}", username.trim_start_matches('@')),
    }
}

/// Returns the first letter or digit of a name, in upper case, in place of a picture; empty without one.
pub fn initial(name: &str) -> String {
    name.chars().find(|letter| letter.is_alphanumeric()).into_iter().flat_map(char::to_uppercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_username_is_written_as_on_its_platform() {
        for (platform, username, expected) in [
            ("x", "ada", "@ada"),
            ("tiktok", "@ada", "@ada"),
            ("reddit", "ada", "u/ada"),
            ("threads", "ada", "ada"),
            ("linkedin", "ada", ""),
        ] {
            assert_eq!(handle(platform, username), expected, "{platform}");
        }
    }

    #[test]
    fn a_letter_or_digit_stands_for_a_name() {
        for (name, expected) in [("ada", "A"), ("@7up", "7"), ("ßen", "SS"), ("☃", ""), ("", "")] {
            assert_eq!(initial(name), expected, "{name}");
        }
    }
}
