//! The tables of variables in the page on configuration, one for each process.

use super::{BEGIN, END, Role, Variable, read, variables};
use std::collections::BTreeMap;

const FILE: &str = "docs/configuration.md";

/// Returns the page with its tables.
pub(super) fn files() -> BTreeMap<String, String> {
    let page = Role::ALL.into_iter().fold(read(FILE), |page, role| {
        let begin = format!("<!-- {BEGIN}variables of {} -->\n", role.name());
        let end = format!("<!-- {END} -->");
        let (before, rest) = page.split_once(&begin).expect("the page marks where a table begins");
        let (_, after) = rest.split_once(&end).expect("the page marks where a table ends");
        format!("{before}{begin}{}{end}{after}", table(role))
    });
    [(FILE.to_owned(), page)].into()
}

/// Returns the table of a process, by name.
fn table(role: Role) -> String {
    let mut variables = variables(role);
    variables.sort_by(|one, other| one.name.cmp(&other.name));
    let mut table = "| Variable | Default | Meaning |\n|---|---|---|\n".to_owned();
    for Variable { name, is_secret, is_required, default, help } in variables {
        let default = match (is_required, default.as_str()) {
            (true, _) => "required".to_owned(),
            (false, "") => String::new(),
            (false, default) => format!("`{default}`"),
        };
        let secret = if is_secret { " **Secret.**" } else { "" };
        let help = help.replace('|', "\\|").replace('\n', " ");
        table.push_str(&format!("| `{name}` | {default} | {help}.{secret} |\n"));
    }
    table
}
