//! Programs of others, from npm and PyPI, that a test uses, kills and stops.
//!
//! `tests/real` has the lists of packages with their hashes, and a script for each program. A program says `ready` when
//! it is, answers a line of JSON for each that it is told, and ends with its stdin.

use crate::{PATIENCE, directory, node, program, skip};
use anyhow::Context;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use std::{
    path::{Path, PathBuf},
    process::Stdio,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
    sync::OnceCell,
};

/// An error is kept too, so that a run tries to install the packages once.
static INSTALLED: OnceCell<anyhow::Result<Packages>> = OnceCell::const_new();

/// The installed packages.
pub struct Packages {
    /// Directory with the scripts, beside the packages of npm.
    scripts: PathBuf,
    /// Directory with the packages of PyPI.
    python: PathBuf,
}

impl Packages {
    /// Returns the packages, or `None`, with the reason printed, without Node or Python. The first call installs them if no
    /// earlier run has.
    pub async fn installed() -> Option<&'static Self> {
        let found = node().and_then(|()| program("python3").map(drop).context("python3 is not on PATH"));
        if let Err(reason) = found {
            skip(&format!("the proof with programs of others needs Node, npm and Python: {reason:#}"));
            return None;
        }
        let installed = INSTALLED.get_or_init(Self::install).await;
        Some(installed.as_ref().unwrap_or_else(|error| panic!("packages of tests/real: {error:#}")))
    }

    async fn install() -> anyhow::Result<Self> {
        let lists = Path::new(env!("CARGO_MANIFEST_DIR")).join("real");
        let modules = devstack::npm_packages("real", &lists, &[]).await?;
        let python = devstack::python_packages("real", &lists.join("requirements.txt")).await?;
        // Node looks for packages beside the script that imports them.
        let scripts = directory().join("real");
        std::fs::create_dir_all(&scripts)?;
        std::os::unix::fs::symlink(modules.join("node_modules"), scripts.join("node_modules"))?;
        for entry in std::fs::read_dir(&lists)? {
            let path = entry?.path();
            let is_script = path.extension().is_some_and(|extension| extension == "mjs" || extension == "py");
            if let Some(name) = path.file_name().filter(|_| is_script) {
                std::fs::copy(&path, scripts.join(name))?;
            }
        }
        Ok(Self { scripts, python })
    }

    /// Starts a script, and waits until it is ready.
    pub async fn start(&self, script: &'static str, args: &[&str]) -> Program {
        let interpreter = if script.ends_with(".py") { "python3" } else { "node" };
        let mut command = Command::new(interpreter);
        command.arg(self.scripts.join(script)).args(args).env("PYTHONPATH", &self.python);
        // A pipe that nobody reads from would stop what writes to it.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take().expect("piped");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut program = Program { script, child, stdin, lines };
        // Some libraries print notices before.
        while program.line().await != "ready" {}
        program
    }
}

/// A running program.
pub struct Program {
    script: &'static str,
    child: Child,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    async fn line(&mut self) -> String {
        let script = self.script;
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("{script} says nothing")).expect("readable");
        line.unwrap_or_else(|| panic!("{script} has ended"))
    }

    /// Tells it something, without waiting for its answer.
    pub async fn tell(&mut self, what: &Value) {
        self.stdin.write_all(format!("{what}\n").as_bytes()).await.expect("it reads");
    }

    /// Tells it something, and returns its answer.
    pub async fn ask(&mut self, what: &Value) -> Value {
        self.tell(what).await;
        self.answer().await
    }

    /// Returns its next answer.
    pub async fn answer(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{}: {error}: {line}", self.script))
    }

    /// Kills it with SIGKILL.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("killed");
    }

    /// Stops it: its connections stay open and get no answer.
    pub fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Lets it go on after [`Program::pause`].
    pub fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = self.child.id().expect("it runs");
        kill(Pid::from_raw(i32::try_from(pid).expect("a pid")), signal).expect("signalled");
    }
}
