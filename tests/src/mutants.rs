//! Mutants: changes of the sources that decide about publishing, bounds and rate limits, each of which a test must notice.
//!
//! `cargo mutants` (<https://mutants.rs>) makes the changes one at a time, in a clone of the commit, and runs the fastest
//! tests that judge the changed source ([`GROUPS`]). A mutant that survives has a reason in `tests/proof/mutants.yml`, or
//! fails. All of them take hours, so that they are tested in small shards, of which those that have finished on a commit
//! are kept; a shard begins only while there is time.

use crate::{
    deploy::{read, root},
    proof::Section,
    yaml,
};
use anyhow::{Context, bail, ensure};
use serde::Deserialize;
use serde_json::Value;
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// Mutants of a shard. An interruption loses so many at most.
const SHARD: usize = 5;
/// Time limit for compiling a mutant, in seconds.
const BUILD_LIMIT: u64 = 1800;

/// Sources that the same tests judge.
struct Group {
    /// Name in the report.
    name: &'static str,
    /// Package of the sources.
    package: &'static str,
    /// Which of its files in `examine_globs` of `.cargo/mutants.toml`: what their paths begin with.
    files: &'static [&'static str],
    /// Packages of the tests.
    packages: &'static [&'static str],
    /// Programs of the tests.
    targets: &'static [&'static str],
    /// Tests, by what their names contain; all without any.
    tests: &'static [&'static str],
}

/// The groups, those first whose mutants take the least time.
static GROUPS: [Group; 5] = [
    Group {
        name: "`domain`",
        package: "fanfare-domain",
        files: &["domain/"],
        packages: &["fanfare-domain"],
        targets: &["--lib"],
        tests: &[],
    },
    Group {
        name: "rate limits",
        package: "fanfare-api",
        files: &["api/"],
        packages: &["fanfare-api", "fanfare-tests"],
        targets: &["--lib", "--test=it"],
        tests: &["http::", "limits::"],
    },
    Group {
        name: "bounds and counts in `store`",
        package: "fanfare-store",
        files: &["store/src/bounds", "store/src/usage"],
        packages: &["fanfare-store", "fanfare-tests"],
        targets: &["--lib", "--test=it"],
        tests: &["bounds::", "usage::", "store::callers::", "limits::"],
    },
    Group {
        name: "`publishing`",
        package: "fanfare-publishing",
        files: &["publishing/"],
        packages: &["fanfare-publishing", "fanfare-tests"],
        targets: &["--lib", "--test=proof"],
        tests: &["tests::", "awaits::"],
    },
    Group {
        name: "`store::publishing`",
        package: "fanfare-store",
        files: &["store/src/publishing"],
        packages: &["fanfare-store", "fanfare-tests"],
        targets: &["--lib", "--test=it", "--test=proof"],
        tests: &["publishing::", "store::", "awaits::"],
    },
];

/// A mutant that no test noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Survivor {
    /// The file and the change, without its place.
    mutant: String,
    /// The line that it begins in.
    line: String,
}

/// A row of `tests/proof/mutants.yml`: why no test can notice a mutant, or needs to.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reason {
    mutant: String,
    line: String,
    because: String,
}

/// Results of mutants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Tally {
    caught: usize,
    timed_out: usize,
    unviable: usize,
    survivors: Vec<Survivor>,
}

impl Tally {
    /// Adds the results of a shard; `line` returns a line of a source. Returns false if the shard has not finished.
    fn add(&mut self, outcomes: &Value, line: impl Fn(&str, usize) -> String) -> anyhow::Result<bool> {
        if outcomes["end_time"].is_null() {
            return Ok(false);
        }
        for outcome in outcomes["outcomes"].as_array().context("outcomes")? {
            let mutant = &outcome["scenario"]["Mutant"];
            match outcome["summary"].as_str() {
                Some("CaughtMutant") => self.caught += 1,
                Some("Timeout") => self.timed_out += 1,
                Some("Unviable") => self.unviable += 1,
                Some("MissedMutant") => {
                    let text =
                        |name: &str| mutant[name].as_str().with_context(|| format!("{name} of a mutant"));
                    let start = &mutant["span"]["start"];
                    let place = format!("{}:{}:{}: ", text("file")?, start["line"], start["column"]);
                    let change = text("name")?.strip_prefix(&place).context("the name of a mutant")?;
                    let number = start["line"].as_u64().context("the line of a mutant")?;
                    self.survivors.push(Survivor {
                        mutant: format!("{}: {change}", text("file")?),
                        line: line(text("file")?, usize::try_from(number)?).trim().to_owned(),
                    });
                }
                other => bail!("a mutant ended as {other:?}: {}", outcome["log_path"]),
            }
        }
        Ok(true)
    }

    fn tested(&self) -> usize {
        self.caught + self.timed_out + self.unviable + self.survivors.len()
    }
}

/// Returns the reason of each survivor, or what is wrong. When all mutants are tested, each reason must be one of a survivor.
fn explain<'a>(
    survivors: &[Survivor],
    reasons: &'a [Reason],
    are_all_tested: bool,
) -> Result<Vec<&'a str>, String> {
    let explains = |reason: &Reason, survivor: &Survivor| {
        (&reason.mutant, &reason.line) == (&survivor.mutant, &survivor.line)
    };
    let mut faults = Vec::new();
    let mut found = Vec::new();
    for survivor in survivors {
        match reasons.iter().find(|reason| explains(reason, survivor)) {
            Some(reason) => found.push(&*reason.because),
            None => faults.push(format!("no test notices, and nothing explains: {survivor:?}")),
        }
    }
    let is_needed = |reason: &Reason| survivors.iter().any(|survivor| explains(reason, survivor));
    let needless = reasons.iter().filter(|reason| are_all_tested && !is_needed(reason));
    faults.extend(needless.map(|reason| format!("is noticed, or not there any more: {}", reason.mutant)));
    if faults.is_empty() { Ok(found) } else { Err(faults.join("\n")) }
}

fn reasons() -> anyhow::Result<Vec<Reason>> {
    let documents = yaml(&read("tests/proof/mutants.yml"));
    let all = documents.into_iter().map(serde_json::from_value::<Vec<Reason>>);
    Ok(all.collect::<Result<Vec<_>, _>>().context("tests/proof/mutants.yml")?.concat())
}

/// Tests the mutants of a commit that are not tested yet, for about `time`, and writes the section about all of them.
///
/// # Errors
///
/// When a survivor is not explained, or the mutants can't be tested.
pub fn test(commit: &str, time: Duration) -> anyhow::Result<()> {
    let begun = Instant::now();
    let mut section = Section::new("9c-mutants", "Mutants");
    let tree = Tree::of(commit)?;
    let reasons = reasons()?;
    let (mut all, mut mutants) = (Tally::default(), 0);
    let mut table =
        "| Sources | Mutants | Tested | Caught | Timed out | Unviable | Missed, with a reason |\n\
                     |---|---|---|---|---|---|---|"
            .to_owned();
    for group in &GROUPS {
        let count = tree.count(group)?;
        let tally = tree.test(group, count, || begun.elapsed() < time)?;
        let Tally { caught, timed_out, unviable, survivors } = &tally;
        table += &format!(
            "\n| {} | {count} | {} | {caught} | {timed_out} | {unviable} | {} |",
            group.name,
            tally.tested(),
            survivors.len()
        );
        mutants += count;
        all.caught += caught;
        all.timed_out += timed_out;
        all.unviable += unviable;
        all.survivors.extend(tally.survivors);
    }
    let explained = explain(&all.survivors, &reasons, all.tested() == mutants);
    let explained = explained.map_err(anyhow::Error::msg).context("tests/proof/mutants.yml")?;
    section.text(
        "The sources that decide about publishing, bounds and rate limits were changed, one condition, operator, arm or \
         result at a time, and the fastest tests that judge them were run. Shards of the mutants are tested in turn, as \
         long as there is time: `just mutants` tests the rest on the same commit.",
    );
    section.text(table);
    let rows = all.survivors.iter().zip(explained).map(|(survivor, because)| {
        let escaped = |text: &str| text.replace('|', "\\|");
        format!("\n| {} | `{}` | {} |", escaped(&survivor.mutant), escaped(&survivor.line), escaped(because))
    });
    section.text(format!("| Missed | Line | Reason |\n|---|---|---|{}", rows.collect::<String>()));
    section.figure("Mutants", mutants);
    section.figure("Tested", all.tested());
    section.figure("Caught by a test that failed", all.caught);
    section.figure("Caught by a test that hung", all.timed_out);
    section.figure("Not compiled", all.unviable);
    section.figure("Missed, with a reason", all.survivors.len());
    section.write();
    Ok(())
}

/// A clone of a commit, whose sources are changed, and what is known of its mutants.
struct Tree {
    dir: PathBuf,
    results: PathBuf,
}

impl Tree {
    /// Checks the commit out. The clone stays, since compiling it takes long.
    fn of(commit: &str) -> anyhow::Result<Self> {
        let mutants = root().canonicalize()?.join("target/mutants");
        let tree = Self { dir: mutants.join("tree"), results: mutants.join(commit) };
        fs::create_dir_all(&tree.results)?;
        if !tree.dir.exists() {
            // It takes the objects from here.
            let mut clone = Command::new("git");
            clone.args(["clone", "--quiet", "--shared", "--no-checkout"]).arg(root()).arg(&tree.dir);
            ensure!(clone.status()?.success(), "the repository can't be cloned");
        }
        // Also undoes the mutant of a run that was interrupted; other files keep their times.
        let mut checkout = Command::new("git");
        checkout.args(["checkout", "--quiet", "--force", "--detach", commit]).current_dir(&tree.dir);
        ensure!(checkout.status()?.success(), "the commit can't be checked out");
        Ok(tree)
    }

    /// Returns a cargo command in the clone, which ends with this process.
    fn cargo(&self) -> anyhow::Result<Command> {
        let parent = std::process::id().to_string();
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["guard", "--parent", &parent, "--", "cargo"]).current_dir(&self.dir);
        // The short form of the tests, whose sections are nobody's.
        command.env_remove("FANFARE_PROOF").env_remove("FANFARE_PROOF_INTO");
        // No backtrace is read, and linking is a part of each mutant's time.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        Ok(command)
    }

    fn mutants(&self, group: &Group) -> anyhow::Result<Command> {
        let mut command = self.cargo()?;
        command.args(["mutants", "--package", group.package, "--colors", "never"]);
        command.args(group.files.iter().map(|files| format!("--re=^{files}")));
        Ok(command)
    }

    /// Returns the number of mutants of a group.
    fn count(&self, group: &Group) -> anyhow::Result<usize> {
        let listed = self.mutants(group)?.args(["--list", "--level=error"]).output()?;
        let errors = String::from_utf8_lossy(&listed.stderr);
        ensure!(listed.status.success(), "cargo mutants --list: {errors}");
        let count = String::from_utf8_lossy(&listed.stdout).lines().count();
        ensure!(count > 0, "{} has no mutants: its files are not in .cargo/mutants.toml", group.name);
        Ok(count)
    }

    /// Runs the tests of a group without a mutant, and returns the time limit of those with one.
    fn try_unchanged(&self, group: &Group, log: &Path) -> anyhow::Result<u64> {
        let run = |further: &[&str]| -> anyhow::Result<Duration> {
            let begun = Instant::now();
            let mut tests = self.cargo()?;
            tests.arg("test").args(group.packages.iter().map(|name| format!("--package={name}")));
            tests.args(group.targets).args(further);
            let output = File::create(log)?;
            let ended = tests.stdout(output.try_clone()?).stderr(output).status()?;
            ensure!(ended.success(), "the tests fail without a mutant, see {}", log.display());
            Ok(begun.elapsed())
        };
        run(&["--no-run"])?;
        let took = run(&[&["--"][..], group.tests].concat())?;
        Ok(took.as_secs() * 5 + 120)
    }

    /// Tests the shards of a group that have not finished yet while there is time, and returns the results of all that
    /// have.
    fn test(&self, group: &Group, count: usize, has_time: impl Fn() -> bool) -> anyhow::Result<Tally> {
        let of = group.files.concat().replace('/', "-");
        let dir = self.results.join(of.trim_end_matches('-'));
        fs::create_dir_all(&dir)?;
        let mut tally = Tally::default();
        let mut limit = None;
        let shards = count.div_ceil(SHARD);
        for shard in 0..shards {
            let dir = dir.join(shard.to_string());
            if self.read(&dir, &mut tally)? || !has_time() {
                continue;
            }
            let limit = match limit {
                Some(limit) => limit,
                None => *limit.insert(self.try_unchanged(group, &dir.with_extension("log"))?),
            };
            println!("{}: shard {} of {shards}", group.name, shard + 1);
            let mut command = self.mutants(group)?;
            command.args(["--in-place", "--baseline", "skip", "--no-times", "--output"]).arg(&dir);
            command.args([format!("--timeout={limit}"), format!("--build-timeout={BUILD_LIMIT}")]);
            command.args([format!("--shard={shard}/{shards}"), "--sharding=round-robin".to_owned()]);
            command.args(group.packages.iter().map(|name| format!("--test-package={name}")));
            command.args(group.targets.iter().map(|target| format!("--cargo-arg={target}")));
            command.args(["--", "--"]).args(group.tests);
            let ended = command.status()?;
            // It ends with an error if a mutant was missed.
            ensure!(self.read(&dir, &mut tally)?, "cargo mutants did not finish: {ended}");
        }
        Ok(tally)
    }

    /// Adds the results of a shard, and returns true, if it has finished.
    fn read(&self, shard: &Path, tally: &mut Tally) -> anyhow::Result<bool> {
        let Ok(outcomes) = fs::read(shard.join("mutants.out/outcomes.json")) else { return Ok(false) };
        // One that was interrupted may be cut.
        let Ok(outcomes) = serde_json::from_slice::<Value>(&outcomes) else { return Ok(false) };
        tally.add(&outcomes, |file, number| {
            let source = fs::read_to_string(self.dir.join(file)).unwrap_or_default();
            source.lines().nth(number - 1).unwrap_or_default().to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outcome(summary: &str, line: u32, change: &str) -> Value {
        let mutant = json!({
            "name": format!("a/src/lib.rs:{line}:7: {change}"),
            "file": "a/src/lib.rs",
            "span": { "start": { "line": line, "column": 7 }, "end": { "line": line, "column": 9 } },
        });
        json!({ "scenario": { "Mutant": mutant }, "summary": summary, "log_path": "log" })
    }

    fn survivor(line: &str) -> Survivor {
        Survivor { mutant: "a/src/lib.rs: replace < with <= in f".to_owned(), line: line.to_owned() }
    }

    fn reason(line: &str) -> Reason {
        let Survivor { mutant, line } = survivor(line);
        Reason { because: format!("of {line}"), mutant, line }
    }

    #[test]
    fn results_are_counted_and_survivors_named_by_their_lines() {
        let outcomes = [
            outcome("CaughtMutant", 1, "replace f with ()"),
            outcome("CaughtMutant", 2, "replace f with ()"),
            outcome("MissedMutant", 3, "replace < with <= in f"),
            outcome("Timeout", 4, "replace f with ()"),
            outcome("Unviable", 5, "replace f with ()"),
        ];
        let line = |file: &str, number| format!("  line {number} of {file} ");
        let mut tally = Tally::default();
        let unfinished = json!({ "outcomes": outcomes, "end_time": null });
        assert!(!tally.add(&unfinished, line).unwrap());
        assert_eq!(tally, Tally::default());
        assert!(tally.add(&json!({ "outcomes": outcomes, "end_time": "now" }), line).unwrap());
        let survivors = vec![survivor("line 3 of a/src/lib.rs")];
        assert_eq!(tally, Tally { caught: 2, timed_out: 1, unviable: 1, survivors });
        assert_eq!(tally.tested(), 5);
        let strange = json!({ "outcomes": [outcome("Failure", 1, "replace f with ()")], "end_time": "now" });
        assert!(tally.add(&strange, line).is_err());
    }

    #[test]
    fn each_survivor_has_a_reason_and_each_reason_a_survivor() {
        let survivors = [survivor("one"), survivor("two")];
        let reasons = [reason("two"), reason("one"), reason("three")];
        assert_eq!(explain(&survivors, &reasons[..2], true), Ok(vec!["of one", "of two"]));
        assert_eq!(explain(&survivors, &reasons, false), Ok(vec!["of one", "of two"]));
        let needless = explain(&survivors, &reasons, true).unwrap_err();
        assert!(needless.starts_with("is noticed, or not there any more"), "{needless}");
        let unknown = explain(&survivors, &reasons[..1], false).unwrap_err();
        assert!(unknown.contains("nothing explains") && unknown.contains("one"), "{unknown}");
    }

    #[test]
    fn the_reasons_are_readable_and_each_file_is_in_a_group() {
        assert!(reasons().unwrap().iter().all(|reason| !reason.because.is_empty()));
        let config = read(".cargo/mutants.toml");
        let globs = config.lines().filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","));
        let globs: Vec<_> = globs.collect();
        assert!(globs.len() >= GROUPS.len(), "{globs:?}");
        for glob in globs {
            let of = GROUPS.iter().filter(|group| group.files.iter().any(|files| glob.starts_with(files)));
            assert_eq!(of.count(), 1, "{glob}");
        }
    }
}
