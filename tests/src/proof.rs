//! The report of the proof suite.
//!
//! Each part of `tests/proof` writes sections of `docs/PROOF.md`; `just proof` puts them together. The short form, which CI
//! runs, covers a part of the cases; the full form covers all of them. Also compiled into the behavior suite of the
//! platforms.

use std::{fmt::Display, fs, path::Path, time::Instant};

/// Returns whether the full form was requested, with `FANFARE_PROOF=full`.
pub fn is_full() -> bool {
    std::env::var("FANFARE_PROOF").is_ok_and(|form| form == "full")
}

/// Keeps a file of the report in the directory that `just proof` names in `FANFARE_PROOF_INTO`. A test that somebody runs
/// by hand keeps none: nobody knows which sources it was built from.
pub fn keep(name: &str, content: &str) {
    if let Some(dir) = std::env::var_os("FANFARE_PROOF_INTO") {
        fs::write(Path::new(&dir).join(name), content).expect("a file of the report");
    }
}

/// Returns a duration as the report shows it.
pub fn in_minutes(seconds: u64) -> String {
    format!("{} min {:02} s", seconds / 60, seconds % 60)
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
    /// Begins a section. Sections are in the order of their files' names, which `tests::parts` lists.
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

    /// Adds the time since the section was begun as the last figure, prints the section, and keeps it.
    pub fn write(mut self) {
        self.figure("Duration", in_minutes(self.begun.elapsed().as_secs()));
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
        keep(&format!("{}.md", self.file), &section);
        println!("{section}");
    }
}
