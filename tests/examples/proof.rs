//! `just proof`: runs the parts of the proof on the commit that is checked out, and writes `docs/PROOF.md`.
//!
//! Parts that have passed on this commit are not run again, so that an interrupted proof goes on. Parts run side by
//! side as `tests::parts` says. Nothing counts of a tree that differs from its commit. With `--short`, the modules of
//! `tests/proof` run in their short form, on a tree of any state, and no page is written. Given `guard`, the program is
//! `fanfare`.

use anyhow::{Context, anyhow, bail, ensure};
use chrono::{DateTime, Utc};
use clap::Parser;
use fanfare_tests::{
    deploy::root,
    mutants, now,
    parts::{Kept, PARTS, Part, Passed, Program, Share, durations, longest_first, next},
    proof::in_minutes,
};
use futures::{StreamExt, future::LocalBoxFuture, stream::FuturesUnordered};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{ExitCode, ExitStatus, Stdio},
    time::Duration,
};
use tokio::{
    process::Command,
    time::{Instant, interval_at},
};

/// The page.
const PAGE: &str = "docs/PROOF.md";
/// Interval of the lines that tell what runs.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// Last lines of the log of a part that failed, which are shown.
const SHOWN: usize = 40;

/// Arguments.
#[derive(Parser)]
struct Args {
    /// Parts to run, also if they have passed on this commit; without any, all that have not
    parts: Vec<String>,
    /// Runs the short form, and prints the log of each part
    #[arg(long)]
    short: bool,
    /// Minutes after which no further mutants are begun
    #[arg(long, default_value_t = 20)]
    minutes: u64,
    /// Only tests the mutants of this commit, as the program of that part
    #[arg(long, hide = true)]
    mutate: Option<String>,
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("guard") {
        return server::main();
    }
    let args = Args::parse();
    let outcome = match &args.mutate {
        Some(commit) => mutants::test(commit, Duration::from_secs(args.minutes * 60)),
        None => {
            // One thread: a part ends with the one that started it.
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(prove(&args))
        }
    };
    if let Err(error) = outcome {
        eprintln!("proof: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Runs the parts that have not passed, and writes the page once all have.
async fn prove(args: &Args) -> anyhow::Result<()> {
    if let Some(unknown) = args.parts.iter().find(|name| Part::of(name).is_none()) {
        bail!("there is no part {unknown}, only {}", PARTS.map(|part| part.name).join(", "));
    }
    let commit = if args.short { None } else { Some(Commit::checked_out().await?) };
    let programs = Programs::build().await?;
    if let Some(commit) = &commit {
        commit.check().await?;
    }
    let name = commit.as_ref().map_or("short", |commit| &commit.0);
    let kept = Kept::of(&root().join("target/proof"), name)?;
    let took = durations(&fs::read_to_string(root().join(PAGE)).unwrap_or_default());
    let is_due = |part: &&Part| match args.parts.is_empty() {
        true if args.short => part.program == Program::Module,
        true => kept.passed(part).is_none(),
        false => args.parts.iter().any(|name| name == part.name),
    };
    let waiting = longest_first(&took).into_iter().filter(is_due).collect();
    let proof = Proof { commit: commit.as_ref(), programs: &programs, kept: &kept, minutes: args.minutes };
    let failed = proof.run(waiting, &took).await?;
    ensure!(failed.is_empty(), "{} failed", failed.join(", "));
    let Some(commit) = commit else { return Ok(()) };
    let cores = std::thread::available_parallelism()?.get();
    match kept.page(cores)? {
        Ok(page) => {
            fs::write(root().join(PAGE), page)?;
            println!("{PAGE} is of commit {}.", commit.0);
        }
        Err(missing) => {
            println!("The page is written when this commit has passed {}, too.", missing.join(", "))
        }
    }
    Ok(())
}

/// Returns what git prints, in the root of the repository.
async fn git(args: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").args(args).current_dir(root()).output().await.context("running git")?;
    ensure!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
}

/// The commit that is proven.
struct Commit(String);

impl Commit {
    /// Returns the commit that is checked out.
    async fn checked_out() -> anyhow::Result<Self> {
        let commit = Self(git(&["rev-parse", "HEAD"]).await?);
        commit.check().await?;
        Ok(commit)
    }

    /// Fails if the tree is not this commit's, except for the page.
    async fn check(&self) -> anyhow::Result<()> {
        let found = git(&["rev-parse", "HEAD"]).await?;
        ensure!(
            found == self.0,
            "The commit changed from {} to {found} meanwhile. A proof is of one commit: check the first one out to go on \
             with it, or begin with the other.",
            self.0
        );
        let changed = git(&["status", "--porcelain", "--", ".", &format!(":(exclude){PAGE}")]).await?;
        ensure!(
            changed.is_empty(),
            "These files differ from commit {}. A proof is of one commit: commit them, or put them away.\n{changed}",
            self.0
        );
        Ok(())
    }
}

/// The programs of the tests, built from the commit.
struct Programs {
    proof: PathBuf,
    behavior: PathBuf,
    /// Names of the tests of `tests/proof`.
    tests: Vec<String>,
}

impl Programs {
    async fn build() -> anyhow::Result<Self> {
        println!("{} builds the tests", now().format("%T"));
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--workspace", "--no-run", "--test", "proof", "--test", "behavior"]);
        cargo.args(["--message-format", "json-render-diagnostics"]).current_dir(root());
        let built = cargo.stderr(Stdio::inherit()).output().await.context("running cargo")?;
        ensure!(built.status.success(), "the tests don't compile");
        let messages = String::from_utf8(built.stdout)?;
        let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let programs: BTreeMap<_, _> = messages
            .filter_map(|message| {
                let target = &message["target"];
                let is_test = target["kind"].as_array()?.iter().any(|kind| kind == "test");
                let name = target["name"].as_str().filter(|_| is_test)?.to_owned();
                Some((name, PathBuf::from(message["executable"].as_str()?)))
            })
            .collect();
        let program =
            |name: &str| programs.get(name).cloned().with_context(|| format!("cargo built no {name}"));
        let proof = program("proof")?;
        let listed = Command::new(&proof).args(["--list", "--format", "terse"]).output().await?;
        let tests = String::from_utf8(listed.stdout)?;
        let tests: Vec<_> = tests.lines().filter_map(|line| line.strip_suffix(": test")).collect();
        if let Some(test) = tests.iter().find(|test| Part::of_test(test).is_none()) {
            bail!("no part of tests/src/parts.rs runs the test {test}");
        }
        let tests = tests.into_iter().map(str::to_owned).collect();
        Ok(Self { proof, behavior: program("behavior")?, tests })
    }
}

/// A run of the parts.
#[derive(Clone, Copy)]
struct Proof<'a> {
    /// The commit that is proven; `None` in the short form, which proves none.
    commit: Option<&'a Commit>,
    programs: &'a Programs,
    kept: &'a Kept,
    minutes: u64,
}

/// A part that has ended.
struct Ended {
    part: &'static Part,
    times: Passed,
    status: ExitStatus,
}

impl<'a> Proof<'a> {
    /// Runs parts, and returns the names of those that failed.
    async fn run(
        self,
        mut waiting: Vec<&'static Part>,
        took: &BTreeMap<String, Duration>,
    ) -> anyhow::Result<Vec<&'static str>> {
        let mut running: Vec<(&'static Part, DateTime<Utc>)> = Vec::new();
        let mut ends = FuturesUnordered::<LocalBoxFuture<'a, anyhow::Result<Ended>>>::new();
        let mut failed = Vec::new();
        let mut tell = interval_at(Instant::now() + TELL_EVERY, TELL_EVERY);
        let expected = |part: &Part| match took.get(part.name) {
            Some(took) => format!("{} last time", in_minutes(took.as_secs())),
            None => "for the first time".to_owned(),
        };
        loop {
            let parts: Vec<_> = running.iter().map(|(part, _)| *part).collect();
            if let Some(index) = next(&waiting, &parts) {
                let part = waiting.remove(index);
                println!("{} {} begins, {}", now().format("%T"), part.name, expected(part));
                running.push((part, now()));
                ends.push(Box::pin(self.run_part(part)));
                continue;
            }
            tokio::select! {
                ended = ends.next() => {
                    let Some(ended) = ended else { break };
                    let ended = ended?;
                    running.retain(|(part, _)| *part != ended.part);
                    // Nothing that ends on other sources counts, and nothing that goes on with them.
                    if let Some(commit) = self.commit {
                        commit.check().await?;
                    }
                    failed.extend(self.finish(ended)?);
                }
                _ = tell.tick() => {
                    let since = |began: DateTime<Utc>| (now() - began).to_std().unwrap_or_default().as_secs();
                    let told = running
                        .iter()
                        .map(|(part, began)| format!("{} {} ({})", part.name, in_minutes(since(*began)), expected(part)));
                    let told = told.collect::<Vec<_>>().join(", ");
                    println!("{} running: {told}; {} to follow", now().format("%T"), waiting.len());
                }
            }
        }
        Ok(failed)
    }

    /// Runs a part.
    async fn run_part(self, part: &'static Part) -> anyhow::Result<Ended> {
        let into = self.kept.begin(part)?;
        let log = File::create(self.kept.log(part))?;
        let this = std::env::current_exe().context("finding the path of this program")?;
        let mut command = Command::new(&this);
        command.args(["guard", "--parent", &std::process::id().to_string(), "--"]);
        if part.share == Share::Computes {
            command.args(["nice", "-n", "19"]);
        }
        let mut dir = root();
        match part.program {
            Program::Module => {
                dir.push("tests");
                let tests = self.programs.tests.iter();
                let tests = tests.filter(|test| Part::of_test(test) == Some(part));
                command.arg(&self.programs.proof).args(["--exact", "--test-threads", "1"]);
                // Whoever looks at a long run sees how far it is.
                command.args(self.commit.map(|_| "--nocapture")).args(tests);
            }
            Program::Behavior(cases) => {
                dir.push("platforms");
                command.arg(&self.programs.behavior).arg(cases);
            }
            Program::Mutants => {
                let commit = self.commit.context("mutants are those of a commit")?;
                command.arg(&this).args(["--mutate", &commit.0, "--minutes", &self.minutes.to_string()]);
            }
        }
        command.env("FANFARE_PROOF", if self.commit.is_some() { "full" } else { "short" });
        command.env("FANFARE_PROOF_INTO", into.canonicalize()?);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        let began = now();
        let status =
            command.current_dir(dir).status().await.with_context(|| format!("running {}", part.name))?;
        Ok(Ended { part, times: Passed { began, ended: now() }, status })
    }

    /// Keeps what a part has written that passed; returns the name of one that failed.
    fn finish(self, Ended { part, times, status }: Ended) -> anyhow::Result<Option<&'static str>> {
        let took = in_minutes((times.ended - times.began).to_std().unwrap_or_default().as_secs());
        let (time, log) = (now().format("%T"), self.kept.log(part));
        if self.commit.is_none() {
            io::copy(&mut File::open(&log)?, &mut io::stdout())?;
        }
        let kept = match status.success() {
            true => self.kept.finish(part, times),
            false => Err(anyhow!("{status}")),
        };
        match kept {
            Ok(()) => {
                println!("{time} {} passed after {took}", part.name);
                Ok(None)
            }
            Err(error) => {
                println!("{time} {} failed after {took}: {error:#}; its log is {}", part.name, log.display());
                if self.commit.is_some() {
                    show_end(&log)?;
                }
                Ok(Some(part.name))
            }
        }
    }
}

/// Prints the last lines of a log.
fn show_end(log: &Path) -> anyhow::Result<()> {
    let bytes = fs::read(log)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..].iter().for_each(|line| println!("    {line}"));
    Ok(())
}
