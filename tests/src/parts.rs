//! The parts of the proof: what each of them runs and may run beside, and the page that all of them make.
//!
//! A part is a module of `tests/proof`, or another program that writes sections of `docs/PROOF.md`. What a part has
//! written is kept in a directory of its commit, and the page is made of what one such directory has: it can't mix two
//! commits. `tests/examples/proof.rs` runs the parts, `tests/it/walls/proof.rs` compares their list with the sources.

use crate::proof::in_minutes;
use anyhow::{Context, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

/// The program of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The tests of the module of `tests/proof` that has the part's name.
    Module,
    /// The cases of the behavior suite of the platforms that have this in their names.
    Behavior(&'static str),
    /// The tests of changed sources, see [`crate::mutants`].
    Mutants,
}

/// How a part shares the machine with others. The limits are for two cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// It mostly waits, for its own servers, and measures nothing that others slow down. Two such parts run at a time.
    Waits,
    /// It computes, and knows no time but a virtual one. One such part runs beside the others, and gets what they leave.
    Computes,
    /// It compares time or memory with limits, so that nothing runs beside it.
    Alone,
}

impl Share {
    /// Returns how many parts of the kind run at a time.
    fn lanes(self) -> usize {
        match self {
            Self::Waits => 2,
            Self::Computes | Self::Alone => 1,
        }
    }

    /// Returns what the page says of it.
    fn name(self) -> &'static str {
        match self {
            Self::Waits => "yes: it mostly waits for its own servers",
            Self::Computes => "yes, with the lowest priority: it knows no time",
            Self::Alone => "no: it measures",
        }
    }
}

/// A part of the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Its program.
    pub program: Program,
    /// How it shares the machine.
    pub share: Share,
    /// Files of the sections that it writes, without their extension.
    pub sections: &'static [&'static str],
}

const fn part(name: &'static str, program: Program, share: Share, sections: &'static [&'static str]) -> Part {
    Part { name, program, share, sections }
}

/// All parts.
pub static PARTS: [Part; 13] = [
    part("model", Program::Module, Share::Computes, &["1-model", "1b-model-waits"]),
    // Waits are moves of the timestamps in its own database.
    part("awaits", Program::Module, Share::Computes, &["2-awaits", "2b-twins", "2c-operations"]),
    // A held call ends after 18 s; what is not reached until then is repeated.
    part("crashes", Program::Module, Share::Waits, &["3-crashes"]),
    part("lifecycle", Program::Module, Share::Waits, &["4-lifecycle"]),
    // Times until all is published are told, and compared with no limit but that of a hanging test.
    part("faults", Program::Module, Share::Waits, &["5-faults"]),
    part("deploys", Program::Module, Share::Waits, &["6-deploys"]),
    part("hostile", Program::Module, Share::Waits, &["7-hostile", "7b-hostile-tokens", "7c-hostile-secrets"]),
    part("isolation", Program::Module, Share::Waits, &["7d-isolation", "7e-scopes"]),
    // Sandbox and adapters in one process, which wait for nothing.
    part("answers", Program::Behavior("changed_answers"), Share::Computes, &["7a-answers"]),
    // Memory is compared, but that of its own processes.
    part("soak", Program::Module, Share::Waits, &["8-soak"]),
    // Latencies are compared.
    part("costs", Program::Module, Share::Alone, &["9a-costs"]),
    part("real", Program::Module, Share::Waits, &["9b-real"]),
    // Its limits of time are several times what the tests take without a change.
    part("mutants", Program::Mutants, Share::Computes, &["9c-mutants"]),
];

impl Part {
    /// Returns the part with a name.
    pub fn of(name: &str) -> Option<&'static Self> {
        PARTS.iter().find(|part| part.name == name)
    }

    /// Returns the part that runs a test of `tests/proof`, by the test's path.
    pub fn of_test(path: &str) -> Option<&'static Self> {
        let module = path.split("::").next().and_then(Self::of)?;
        (module.program == Program::Module).then_some(module)
    }
}

/// Returns all parts, those that took longest first, and before them those that nobody knows the time of.
pub fn longest_first(took: &BTreeMap<String, Duration>) -> Vec<&'static Part> {
    let mut parts: Vec<_> = PARTS.iter().collect();
    parts.sort_by_key(|part| Reverse(took.get(part.name).copied().unwrap_or(Duration::MAX)));
    parts
}

/// Returns the index of the part to begin: of the first one that may run beside those that are running.
pub fn next(waiting: &[&Part], running: &[&Part]) -> Option<usize> {
    let count = |share| running.iter().filter(|part| part.share == share).count();
    let is_measured = count(Share::Alone) > 0;
    waiting.iter().position(|part| match part.share {
        Share::Alone => running.is_empty(),
        share => !is_measured && count(share) < share.lanes(),
    })
}

/// When a part began and ended that passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// When it began.
    pub began: DateTime<Utc>,
    /// When it ended.
    pub ended: DateTime<Utc>,
}

/// Results of the parts that passed on one commit.
pub struct Kept {
    commit: String,
    dir: PathBuf,
}

impl Kept {
    /// Opens what is kept of a commit, in a directory of its own below `dir`.
    ///
    /// # Errors
    ///
    /// When the directory can't be created.
    pub fn of(dir: &Path, commit: &str) -> io::Result<Self> {
        let dir = dir.join(commit);
        fs::create_dir_all(&dir)?;
        Ok(Self { commit: commit.to_owned(), dir })
    }

    /// Returns the path of a part's log.
    pub fn log(&self, part: &Part) -> PathBuf {
        self.dir.join(format!("{}.log", part.name))
    }

    fn record(&self, part: &Part) -> PathBuf {
        self.dir.join(format!("{}.json", part.name))
    }

    /// Returns when a part passed; `None` if it has not.
    pub fn passed(&self, part: &Part) -> Option<Passed> {
        serde_json::from_slice(&fs::read(self.record(part)).ok()?).ok()
    }

    /// Returns an empty directory for what a part writes that begins. It has not passed any more.
    ///
    /// # Errors
    ///
    /// When the directory can't be made.
    pub fn begin(&self, part: &Part) -> io::Result<PathBuf> {
        let (record, written) = (self.record(part), self.dir.join(part.name));
        if record.exists() {
            fs::remove_file(record)?;
        }
        if written.exists() {
            fs::remove_dir_all(&written)?;
        }
        fs::create_dir(&written)?;
        Ok(written)
    }

    /// Keeps what a part has written that passed.
    ///
    /// # Errors
    ///
    /// When these are not the part's sections, or can't be kept.
    pub fn finish(&self, part: &Part, passed: Passed) -> anyhow::Result<()> {
        let written = self.dir.join(part.name);
        let names: Vec<_> =
            fs::read_dir(&written)?.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>()?;
        let sections = names.iter().filter_map(|name| name.to_str()?.strip_suffix(".md"));
        let sections: BTreeSet<_> = sections.collect();
        let expected: BTreeSet<_> = part.sections.iter().copied().collect();
        ensure!(
            sections == expected,
            "{} wrote the sections {sections:?} instead of {expected:?}",
            part.name
        );
        for name in &names {
            fs::rename(written.join(name), self.dir.join(name))?;
        }
        fs::remove_dir(&written)?;
        // Last, since it says that all of it is there.
        fs::write(self.record(part), serde_json::to_vec(&passed)?).context("keeping when it passed")
    }

    /// Returns the page, or the names of the parts that it lacks.
    ///
    /// # Errors
    ///
    /// When a section can't be read.
    pub fn page(&self, cores: usize) -> anyhow::Result<Result<String, Vec<&'static str>>> {
        let passed: Vec<_> = PARTS.iter().map(|part| (part, self.passed(part))).collect();
        let missing: Vec<_> =
            passed.iter().filter(|(_, passed)| passed.is_none()).map(|(part, _)| part.name).collect();
        if !missing.is_empty() {
            return Ok(Err(missing));
        }
        let passed: Vec<_> = passed.into_iter().filter_map(|(part, passed)| Some((part, passed?))).collect();
        let times: Vec<_> = passed.iter().map(|(_, passed)| *passed).collect();
        let day = times.iter().map(|passed| passed.ended).max().context("a proof has parts")?.format("%F");
        let mut page = format!(
            "# Proof\n\nEvery post ends, exactly once, with a reason that anyone can read. This report is written by \
             `just proof`, which runs all of it on one commit; CI runs the short form of the same tests (`just \
             proof-short`). The tests are in [tests/proof](../tests/proof).\n\n\
             Commit {}, {day}, {cores} cores. The parts took {} together, side by side as far as they may.\n\n\
             | Part | Duration | Beside others |\n|---|---|---|\n",
            self.commit,
            in_minutes(together(&times).as_secs()),
        );
        for (part, passed) in &passed {
            let took = (passed.ended - passed.began).to_std().unwrap_or_default();
            page +=
                &format!("| `{}` | {} | {} |\n", part.name, in_minutes(took.as_secs()), part.share.name());
        }
        let sections: BTreeSet<_> = PARTS.iter().flat_map(|part| part.sections).collect();
        for section in sections {
            let path = self.dir.join(format!("{section}.md"));
            let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
            page += &format!("\n{text}");
        }
        Ok(Ok(page))
    }
}

/// Returns how long parts took of which some ran at the same time.
fn together(times: &[Passed]) -> Duration {
    let mut times = times.to_vec();
    times.sort_by_key(|passed| passed.began);
    let mut until = DateTime::<Utc>::MIN_UTC;
    let parts = times.iter().map(|passed| {
        let took = passed.ended - passed.began.max(until);
        until = until.max(passed.ended);
        took.max(TimeDelta::zero())
    });
    parts.sum::<TimeDelta>().to_std().unwrap_or_default()
}

/// Returns how long each part took whose duration a page tells.
pub fn durations(page: &str) -> BTreeMap<String, Duration> {
    let row = |line: &str| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (minutes, rest) = rest.split_once(" min ")?;
        let (seconds, _) = rest.split_once(" s |")?;
        let seconds = minutes.parse::<u64>().ok()? * 60 + seconds.parse::<u64>().ok()?;
        Some((name.to_owned(), Duration::from_secs(seconds)))
    };
    page.lines().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    fn passed(began: i64, ended: i64) -> Passed {
        Passed { began: at(began), ended: at(ended) }
    }

    /// Runs a part that writes these sections.
    fn run(kept: &Kept, part: &Part, sections: &[&str], passed: Passed) -> anyhow::Result<()> {
        let dir = kept.begin(part)?;
        for section in sections {
            fs::write(dir.join(format!("{section}.md")), format!("## Section {section}\n"))?;
        }
        fs::write(dir.join(format!("{}.csv", part.name)), "")?;
        kept.finish(part, passed)
    }

    #[test]
    fn each_part_runs_as_soon_as_those_that_run_leave_it_a_place() {
        let [waits, computes] =
            [Share::Waits, Share::Computes].map(|share| part("a", Program::Module, share, &[]));
        let alone = part("b", Program::Module, Share::Alone, &[]);
        for (waiting, running, expected) in [
            (&[&waits, &computes][..], &[][..], Some(0)),
            (&[&waits, &computes], &[&waits], Some(0)),
            (&[&waits, &computes], &[&waits, &waits], Some(1)),
            (&[&waits, &computes], &[&waits, &waits, &computes], None),
            (&[&alone, &waits], &[&computes], Some(1)),
            (&[&alone], &[&computes], None),
            (&[&alone], &[], Some(0)),
            (&[&waits, &computes, &alone], &[&alone], None),
            (&[], &[], None),
        ] {
            assert_eq!(next(waiting, running), expected, "{waiting:?} beside {running:?}");
        }
    }

    #[test]
    fn the_longest_part_of_the_last_page_begins_first() {
        let page = "| `soak` | 33 min 37 s | yes |\n| `model` | 131 min 02 s | yes |\n| `soak` | never |\n| x | 1 min 00 s |\n";
        let took = durations(page);
        let expected = [("model", 7862), ("soak", 2017)]
            .map(|(name, took)| (name.to_owned(), Duration::from_secs(took)));
        assert_eq!(took, expected.into());
        let order = longest_first(&took);
        let last: Vec<_> = order[order.len() - 2..].iter().map(|part| part.name).collect();
        assert_eq!((order.len(), &last[..]), (PARTS.len(), &["model", "soak"][..]));
    }

    #[test]
    fn time_that_parts_share_counts_once() {
        let times = [passed(50, 70), passed(0, 10), passed(5, 8), passed(8, 20), passed(60, 90)];
        assert_eq!(together(&times), Duration::from_secs(20 + 40));
        assert_eq!(together(&[]), Duration::ZERO);
    }

    #[test]
    fn a_page_has_every_section_of_one_commit() {
        let dir = crate::directory().join("kept");
        let kept = Kept::of(&dir, "c0ffee").unwrap();
        let [last, others @ ..] = &PARTS;
        for part in others {
            run(&kept, part, part.sections, passed(0, 60)).unwrap();
        }
        assert_eq!(kept.page(2).unwrap(), Err(vec![last.name]));
        // Results of another commit do not complete it.
        let other = Kept::of(&dir, "decaf").unwrap();
        run(&other, last, last.sections, passed(0, 60)).unwrap();
        assert_eq!(kept.page(2).unwrap(), Err(vec![last.name]));
        // A part that is interrupted, or writes something else, has not passed, also if it did before.
        run(&kept, last, last.sections, passed(0, 60)).unwrap();
        kept.begin(last).unwrap();
        assert_eq!(kept.page(2).unwrap(), Err(vec![last.name]));
        assert!(run(&kept, last, &[], passed(0, 60)).is_err());
        assert!(run(&kept, last, &[last.sections[0], "9z-another"], passed(0, 60)).is_err());
        assert_eq!(kept.passed(last), None);
        run(&kept, last, last.sections, passed(60, 150)).unwrap();
        let page = kept.page(2).unwrap().unwrap();
        assert!(
            page.contains("\nCommit c0ffee, 1970-01-01, 2 cores. The parts took 2 min 30 s together"),
            "{page}"
        );
        let found: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("## Section ")).collect();
        let mut expected: Vec<_> = PARTS.iter().flat_map(|part| part.sections).copied().collect();
        expected.sort_unstable();
        assert_eq!(found, expected);
        let took = durations(&page);
        assert_eq!((took.len(), took[last.name]), (PARTS.len(), Duration::from_secs(90)));
    }

    #[test]
    fn a_test_belongs_to_the_part_of_its_module() {
        assert_eq!(Part::of_test("model::every_interleaving").map(|part| part.name), Some("model"));
        assert_eq!(Part::of_test("lifecycle::model::a_rule").map(|part| part.name), Some("lifecycle"));
        assert_eq!(Part::of_test("nothing::of_it"), None);
        assert_eq!(Part::of_test("mutants::of_it"), None);
    }
}
