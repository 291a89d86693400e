//! The common part of the routes of people's and of operators' pages: paths, in which a segment in braces stands for
//! any, and answers.

use api::http::problem::Problem;
use futures::future::BoxFuture;
use poem::Response;

/// Most names in a path.
const MOST_NAMES: usize = 3;

/// The answer to a request.
pub(crate) type Answer<'a> = BoxFuture<'a, Result<Response, Problem>>;
/// Segments of an address that stand for the names in a path, in order; the rest is empty.
pub(crate) type Names<'a> = [&'a str; MOST_NAMES];

/// Returns the number of names in a path.
pub(crate) const fn count(path: &str) -> usize {
    let (bytes, mut at, mut count) = (path.as_bytes(), 0, 0);
    while at < bytes.len() {
        if bytes[at] == b'{' {
            count += 1;
        }
        at += 1;
    }
    count
}

/// Returns the segments of an address that stand for the names in a path; `None` if the path is another one.
pub(crate) fn names<'a>(path: &str, segments: &[&'a str]) -> Option<Names<'a>> {
    let (mut names, mut count) = (Names::default(), 0);
    let mut known = path.split('/').skip(1);
    for segment in segments {
        let expected = known.next()?;
        if expected.starts_with('{') {
            names[count] = *segment;
            count += 1;
        } else if expected != *segment {
            return None;
        }
    }
    known.next().is_none().then_some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_segments_in_braces() {
        for (path, address, expected) in [
            ("", "", Some(["", "", ""])),
            ("/posts", "/posts", Some(["", "", ""])),
            ("/posts/{id}", "/posts/7", Some(["7", "", ""])),
            ("/a/{b}/c/{d}/e/{f}", "/a/1/c/2/e/3", Some(["1", "2", "3"])),
            ("/posts/{id}", "/posts", None),
            ("/posts/{id}", "/posts/7/8", None),
            ("/posts", "/postscript", None),
            ("/posts", "", None),
        ] {
            let segments: Vec<_> = address.split('/').skip(1).collect();
            assert_eq!(names(path, &segments), expected, "{path} {address}");
            assert_eq!(count(path), path.matches('{').count(), "{path}");
        }
    }
}
