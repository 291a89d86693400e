//! Secrets from files: each setting with a secret value can also be given as the path of a file, in the variable
//! whose name has `_FILE` appended, as Docker, Kubernetes and systemd provide secrets.
//!
//! Files are read before the command line is parsed and passed to the parser as arguments: an environment is
//! inherited by child processes and readable in `/proc`, a file is not. One mechanism serves all settings whose
//! values clap does not show (`hide_env_values`). No error shows a file's content or the variable's value, which
//! may be the secret itself by mistake.

use clap::{Arg, Command};
use std::{ffi::OsString, fs};

/// Suffix of the variable that holds the path of a file.
const SUFFIX: &str = "_FILE";

/// Returns a command line that has the secrets from files. `variable` reads an environment variable.
///
/// # Errors
///
/// If a secret is given twice, or its file can't be read or is empty.
pub(crate) fn arguments(
    command: &Command,
    given: impl IntoIterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> anyhow::Result<Vec<OsString>> {
    let mut given: Vec<OsString> = given.into_iter().collect();
    let (command, end) = chosen(command, &given);
    let mut secrets = Vec::new();
    for setting in command.get_arguments() {
        let (Some(name), Some(flag)) = (name(setting), setting.get_long()) else { continue };
        let file_name = format!("{name}{SUFFIX}");
        let read = |name: &str| variable(name).filter(|value| !value.is_empty());
        let Some(path) = read(&file_name) else { continue };
        anyhow::ensure!(read(&name).is_none(), "{name} and {file_name} are both set: remove one");
        let secret = fs::read_to_string(path)
            .map_err(|error| anyhow::anyhow!("{file_name} does not name a readable file: {error}"))?;
        let secret = secret.trim();
        anyhow::ensure!(!secret.is_empty(), "{file_name} names an empty file");
        secrets.push(format!("--{flag}={secret}").into());
    }
    // Before positional arguments and `--`.
    given.splice(end..end, secrets);
    Ok(given)
}

/// Returns the variables that a setting is read from.
pub(crate) fn variables(setting: &Arg) -> impl Iterator<Item = String> {
    let variable = setting.get_env().map(|variable| variable.to_string_lossy().into_owned());
    variable.into_iter().chain(name(setting).map(|name| format!("{name}{SUFFIX}")))
}

/// Describes the variables of secrets in the help of the commands that have some.
pub(crate) fn document(mut command: Command) -> Command {
    let names: Vec<String> = command.get_arguments().filter_map(name).collect();
    if !names.is_empty() {
        let example = format!("{}{SUFFIX}", names[0]);
        command = command.after_help(format!(
            "Secrets from files: append {SUFFIX} to the name of one of these variables and set it to the path of a \
             file that holds the value, for example {example}=/run/secrets/name. White space around the value is \
             ignored.\n  {}",
            names.join(", ")
        ));
    }
    command.mut_subcommands(document)
}

/// Returns the variable that a secret setting was read from.
pub(crate) fn source(setting: &Arg, variable: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    let name = name(setting)?;
    let file_name = format!("{name}{SUFFIX}");
    let is_file = variable(&file_name).is_some_and(|path| !path.is_empty());
    Some(if is_file { file_name } else { name })
}

/// Returns the variable of a setting with a secret value; `None` for other settings.
fn name(setting: &Arg) -> Option<String> {
    let variable = setting.get_env().filter(|_| setting.is_hide_env_values_set())?;
    Some(variable.to_string_lossy().into_owned())
}

/// Returns the subcommand that is chosen, and the index of the first argument after its name. Only flags without
/// values precede the name of a subcommand.
fn chosen<'a>(mut command: &'a Command, given: &[OsString]) -> (&'a Command, usize) {
    let mut end = given.len().min(1);
    for (index, argument) in given.iter().enumerate().skip(1) {
        let Some(argument) = argument.to_str() else { break };
        if let Some(subcommand) = command.find_subcommand(argument) {
            (command, end) = (subcommand, index + 1);
        } else if !argument.starts_with('-') || argument == "--" {
            break;
        }
    }
    (command, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_flags_precede_the_name_of_a_subcommand() {
        fn check(command: &Command) {
            if command.has_subcommands() {
                for argument in command.get_arguments() {
                    assert!(!argument.get_action().takes_values(), "{}: {argument}", command.get_name());
                }
            }
            command.get_subcommands().for_each(check);
        }
        check(&crate::command());
    }

    #[test]
    fn a_secret_follows_the_name_of_its_command() {
        let path = std::env::temp_dir().join(format!("fanfare-secret-{}", std::process::id()));
        fs::write(&path, " postgres://localhost/fanfare\n").unwrap();
        let variable = |name: &str| (name == "DATABASE_URL_FILE").then(|| path.clone().into_os_string());
        let secret = "--database-url=postgres://localhost/fanfare";
        for (given, expected) in [
            ("fanfare --log-json migrate", format!("fanfare --log-json migrate {secret}")),
            ("fanfare org create -- migrate", format!("fanfare org create {secret} -- migrate")),
            ("fanfare org create migrate", format!("fanfare org create {secret} migrate")),
            ("fanfare openapi", "fanfare openapi".to_owned()),
            ("fanfare", "fanfare".to_owned()),
            ("", String::new()),
        ] {
            let given = given.split_whitespace().map(OsString::from);
            let arguments = arguments(&crate::command(), given, variable).unwrap();
            let expected: Vec<OsString> = expected.split_whitespace().map(OsString::from).collect();
            assert_eq!(arguments, expected);
        }
        fs::remove_file(path).unwrap();
    }
}
