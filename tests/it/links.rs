//! The pages of the repository: their links lead somewhere, and the README stays a door.

use crate::pages::{anchors, plain};
use regex::Regex;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tests::deploy::{read, root};

/// Most lines of the README.
const MOST_LINES: usize = 150;
/// Most bytes of the README.
const MOST_BYTES: usize = 8_000;
/// Directories with files of others or of a build.
const FOREIGN: [&str; 2] = ["target", "node_modules"];

/// Returns the paths of all pages in a directory and below, relative to the root of the repository.
fn pages(dir: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root().join(dir)).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let path = dir.join(&name);
        let is_hidden = name.starts_with('.') && name != ".github";
        if entry.file_type().unwrap().is_dir() {
            if !is_hidden && !FOREIGN.contains(&name.as_str()) {
                all.extend(pages(&path));
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            all.push(path);
        }
    }
    all
}

/// Returns the fault of a link on a page; `None` if it leads somewhere.
fn fault(page: &Path, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
    let target = if path.is_empty() { page.to_owned() } else { page.parent()?.join(path) };
    let file = root().join(&target);
    let Ok(file) = file.canonicalize() else { return Some(format!("{} does not exist", target.display())) };
    if !file.starts_with(root().canonicalize().unwrap()) {
        return Some(format!("{} is outside of the repository", target.display()));
    }
    let anchor = anchor?;
    if file.extension().is_none_or(|extension| extension != "md") {
        return Some(format!("{} has no headings", target.display()));
    }
    let known = anchors(&fs::read_to_string(file).unwrap());
    (!known.contains(anchor)).then(|| format!("{} has no heading for #{anchor}", target.display()))
}

#[test]
fn each_link_of_a_page_leads_to_a_file_and_a_heading_that_exist() {
    let inline = Regex::new(r"\]\(<?([^)\s>]+)").unwrap();
    let reference = Regex::new(r"(?m)^ {0,3}\[[^\]]+\]: +(\S+)").unwrap();
    let outside = Regex::new("^[a-z]+:").unwrap();
    let (mut checked, mut faults) = (0, Vec::new());
    for page in pages(Path::new("")) {
        let text = plain(&read(page.to_str().unwrap()));
        for link in inline.captures_iter(&text).chain(reference.captures_iter(&text)) {
            if outside.is_match(&link[1]) {
                continue;
            }
            checked += 1;
            faults.extend(fault(&page, &link[1]).map(|fault| format!("{}: {fault}", page.display())));
        }
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(checked > 150, "only {checked} links were found");
}

/// A long README is not read: details belong on pages of their own.
#[test]
fn the_readme_is_short() {
    let readme = read("README.md");
    let (lines, bytes) = (readme.lines().count(), readme.len());
    assert!(
        lines <= MOST_LINES,
        "README.md has {lines} lines, and may have {MOST_LINES}: move a part to docs"
    );
    assert!(
        bytes <= MOST_BYTES,
        "README.md has {bytes} bytes, and may have {MOST_BYTES}: move a part to docs"
    );
}

/// The tables of variables follow from the program; one that is written by hand would differ from them.
#[test]
fn variables_are_listed_on_one_page_only() {
    let mut listing = pages(Path::new(""));
    listing.retain(|page| read(page.to_str().unwrap()).lines().any(|line| line.starts_with("| Variable ")));
    assert_eq!(listing, [Path::new("docs/configuration.md")]);
}
