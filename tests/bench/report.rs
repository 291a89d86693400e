//! The table of results.
//!
//! A line has the value that its goal is about, once for each repetition; the median decides. Nothing is left out: a
//! goal that is not met and a row that could not be measured are printed as such.

use std::{fmt::Write, fs, path::Path, process::Command};

/// Condition that a value must meet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    /// A ratio of at least this.
    AtLeast(f64),
    /// A value of at most this.
    AtMost(f64),
}

/// A line of the table.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Name of the row.
    pub(crate) row: &'static str,
    /// The work that was done.
    pub(crate) work: String,
    /// The measurement, with its unit.
    pub(crate) measured: String,
    /// The measurement that it is compared with, from the same run; empty for a limit.
    pub(crate) baseline: String,
    /// The value of each repetition.
    pub(crate) values: Vec<f64>,
    /// Unit of the values; empty for ratios.
    pub(crate) unit: &'static str,
    /// The goal.
    pub(crate) goal: Goal,
}

impl Line {
    /// Returns a line that compares `ours` with `theirs`, repetition by repetition.
    pub(crate) fn ratio(row: &'static str, work: impl Into<String>, goal: Goal, of: Compared<'_>) -> Self {
        Self {
            row,
            work: work.into(),
            measured: format!("{} {}", number(median(of.ours)), of.unit),
            baseline: format!("{} {}", number(median(of.theirs)), of.unit),
            values: each_of(of.ours, of.theirs),
            unit: "",
            goal,
        }
    }

    /// Returns a line with a limit.
    pub(crate) fn limit(
        row: &'static str,
        work: impl Into<String>,
        goal: Goal,
        values: Vec<f64>,
        unit: &'static str,
    ) -> Self {
        Self { row, work: work.into(), measured: String::new(), baseline: String::new(), values, unit, goal }
    }

    /// True if the median meets the goal.
    fn is_met(&self) -> bool {
        let median = median(&self.values);
        match self.goal {
            Goal::AtLeast(least) => median >= least,
            Goal::AtMost(most) => median <= most,
        }
    }

    /// Median and spread.
    fn value(&self) -> String {
        let (median, unit) = (number(median(&self.values)), self.unit);
        let spaced = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        match &sorted[..] {
            [] | [_] => format!("{median}{spaced}"),
            [least, .., most] => format!("{median}{spaced} ({} to {})", number(*least), number(*most)),
        }
    }

    fn goal(&self) -> String {
        let spaced = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        match self.goal {
            Goal::AtLeast(least) => format!("at least {least}{spaced}"),
            Goal::AtMost(most) => format!("at most {most}{spaced}"),
        }
    }
}

/// Values of two programs, in the order in which they were measured in turns.
pub(crate) struct Compared<'a> {
    /// Ours.
    pub(crate) ours: &'a [f64],
    /// Those of the baseline.
    pub(crate) theirs: &'a [f64],
    /// Unit.
    pub(crate) unit: &'static str,
}

/// All results of a run.
#[derive(Default)]
pub(crate) struct Report {
    lines: Vec<Line>,
    missing: Vec<(String, String)>,
    notes: Vec<String>,
}

impl Report {
    /// Adds a line, and prints it.
    pub(crate) fn add(&mut self, line: Line) {
        let verdict = if line.is_met() { "met" } else { "NOT MET" };
        eprintln!(
            "  {:>3}  {}: {} [{} against {}; goal {}: {verdict}]",
            line.row,
            line.work,
            line.value(),
            or_dash(&line.measured),
            or_dash(&line.baseline),
            line.goal()
        );
        self.lines.push(line);
    }

    /// Adds a sentence that explains a line: where the time goes.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        eprintln!("       {note}");
        self.notes.push(note);
    }

    /// Adds a row that could not be measured.
    pub(crate) fn miss(&mut self, rows: &str, reason: &str) {
        eprintln!("  {rows}: not measured: {reason}");
        let short: String =
            reason.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect();
        self.missing.push((rows.to_owned(), short));
    }

    /// Returns the table in Markdown.
    pub(crate) fn table(&self) -> String {
        let mut text = String::from(
            "| # | Work | Measured | Baseline | Ratio or value: median (spread) | Goal | Met |\n|---|---|---|---|---|---|---|\n",
        );
        let mut lines: Vec<_> = self.lines.iter().collect();
        // Digits and letters: 0a, 0b, 1, 10.
        lines.sort_by_key(|line| (leading_number(line.row), line.row));
        for line in lines {
            let met = if line.is_met() { "yes" } else { "**no**" };
            let cells = [
                line.row,
                &line.work,
                or_dash(&line.measured),
                or_dash(&line.baseline),
                &line.value(),
                &line.goal(),
                met,
            ];
            writeln!(text, "| {} |", cells.join(" | ")).expect("a string takes it");
        }
        for (rows, reason) in &self.missing {
            writeln!(
                text,
                "| {rows} | not measured: {} | – | – | – | – | **no** |",
                reason.replace('|', "/")
            )
            .expect("a string takes it");
        }
        text
    }

    /// Replaces the generated part of the page of results.
    pub(crate) fn write(&self, page: &Path, took: std::time::Duration) -> anyhow::Result<()> {
        const BEGIN: &str = "<!-- Written by `just bench` -->\n";
        const END: &str = "<!-- End of what `just bench` writes -->\n";
        let before = fs::read_to_string(page)?;
        let (head, rest) = before.split_once(BEGIN).unwrap_or((&before, END));
        let tail = rest.split_once(END).map_or("", |(_, tail)| tail);
        let notes: String = self.notes.iter().map(|note| format!("- {note}\n")).collect();
        let notes = if notes.is_empty() { notes } else { format!("\n{notes}") };
        let text = format!(
            "{head}{BEGIN}{}, in {:.0} minutes.\n\n{}{notes}{END}{tail}",
            circumstances(),
            took.as_secs_f64() / 60.0,
            self.table()
        );
        fs::write(page, text)?;
        Ok(())
    }
}

/// Returns machine, date and commit.
fn circumstances() -> String {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = memory.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default();
    let said = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output();
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
    };
    let changed = if said("git", &["status", "--porcelain"]).is_empty() { "" } else { " with changes" };
    format!(
        "{cores} cores ({}), {} GiB of memory; {}; commit {}{changed}",
        model.trim_start_matches([' ', '\t', ':']),
        memory.div_ceil(1 << 20),
        tests::now().format("%Y-%m-%d"),
        said("git", &["rev-parse", "--short", "HEAD"])
    )
}

/// Returns the ratio of each pair.
pub(crate) fn each_of(ours: &[f64], theirs: &[f64]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()
}

/// Returns the median; 0 of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    percentile(values, 50)
}

/// Returns a percentile; 0 of nothing.
pub(crate) fn percentile(values: &[f64], percent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
        .get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1)))
        .copied()
        .unwrap_or_default()
}

/// Writes a number with three digits.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

fn leading_number(row: &str) -> u32 {
    row.trim_end_matches(char::is_alphabetic).parse().unwrap_or(u32::MAX)
}
