//! The report of the proof suite.
//!
//! Each part of `tests/proof` writes one section of `docs/PROOF.md`; `just proof` puts them together. The
//! short form, which CI runs, covers a part of the cases; the full form covers all of them.

use std::{fmt::Display, fs, path::Path, process::Command, time::Instant};

/// Returns whether the full form was requested, with `FANFARE_PROOF=full`.
pub fn is_full() -> bool {
    std::env::var("FANFARE_PROOF").is_ok_and(|form| form == "full")
}

/// Returns the commit that is checked out, marked if files differ from it.
fn commit() -> String {
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = git.output().ok().filter(|output| output.status.success());
    output.map_or("unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A section of the report.
pub struct Section {
    file: &'static str,
    title: &'static str,
    paragraphs: Vec<String>,
    rows: Vec<(String, String)>,
    begun: Instant,
}

impl Section {
    /// Begins a section. Sections are in the order of their files' names.
    pub fn new(file: &'static str, title: &'static str) -> Self {
        Self { file, title, paragraphs: Vec::new(), rows: Vec::new(), begun: Instant::now() }
    }

    /// Adds a paragraph in Markdown, above the figures.
    pub fn text(&mut self, paragraph: impl Into<String>) {
        self.paragraphs.push(paragraph.into());
    }

    /// Adds a figure.
    pub fn figure(&mut self, name: impl Into<String>, value: impl Display) {
        self.rows.push((name.into(), value.to_string()));
    }

    /// Adds the commit, and the time since the section was begun, as the last figures, and writes the section.
    pub fn write(mut self) {
        let seconds = self.begun.elapsed().as_secs();
        self.figure("Commit", commit());
        self.figure("Duration", format!("{} min {:02} s", seconds / 60, seconds % 60));
        let mut section = format!("## {}\n", self.title);
        if !is_full() {
            section.push_str("\nThe short form.\n");
        }
        for paragraph in self.paragraphs {
            section.push_str(&format!("\n{paragraph}\n"));
        }
        section.push_str("\n| Figure | Value |\n|---|---|\n");
        for (name, value) in self.rows {
            section.push_str(&format!("| {name} | {value} |\n"));
        }
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/proof");
        fs::create_dir_all(&dir).expect("a directory for the report");
        fs::write(dir.join(format!("{}.md", self.file)), &section).expect("a section of the report");
        println!("{section}");
    }
}
