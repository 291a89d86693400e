//! The person at the console: who runs a command, and what it prints and returns.

use nix::unistd::{User, getuid};
use std::{error::Error, fmt, process::ExitCode};
use store::people::audit::Actor;

/// The one who runs the command: the user, also behind `sudo`, and the host.
pub(crate) fn actor() -> Actor {
    let user = std::env::var("SUDO_USER").ok().or_else(|| {
        let user = User::from_uid(getuid()).ok().flatten();
        user.map(|user| user.name)
    });
    let user = user.unwrap_or_else(|| getuid().to_string());
    let host =
        std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    let operator = match host.as_deref().map(str::trim) {
        Some(host) if !host.is_empty() => format!("{user}@{host}"),
        _ => user,
    };
    Actor { operator: Some(operator), ..Actor::OPERATOR }
}

/// Prints rows below their headings, each column as wide as its longest value.
pub(crate) fn table<const N: usize>(headings: [&str; N], rows: &[[String; N]]) {
    let widths: Vec<_> = (0..N)
        .map(|column| {
            let values = rows.iter().map(|row| row[column].chars().count());
            values.max().unwrap_or_default().max(headings[column].len())
        })
        .collect();
    let print = |cells: [&str; N]| {
        let line: Vec<_> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        println!("{}", line.join("  ").trim_end());
    };
    print(headings);
    for row in rows {
        print(row.each_ref().map(String::as_str));
    }
}

/// A command that was understood, and not done.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: u8,
    message: String,
}

impl Refusal {
    /// Returns the refusal of a wrong argument.
    pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
        Self { code: 2, message: message.into() }.into()
    }

    /// Returns the refusal of an argument that names nothing.
    pub(crate) fn missing(message: impl Into<String>) -> anyhow::Error {
        Self { code: 3, message: message.into() }.into()
    }

    /// Returns the refusal of a command that has nothing to do.
    pub(crate) fn nothing(message: impl Into<String>) -> anyhow::Error {
        Self { code: 4, message: message.into() }.into()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Refusal {}

/// Returns the exit code for an error.
pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
    error.downcast_ref::<Refusal>().map_or(ExitCode::FAILURE, |refusal| refusal.code.into())
}
