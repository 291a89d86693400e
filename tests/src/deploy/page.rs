//! The table of variables in the page on deployment.

use super::{BEGIN, END, Role, Variable, all, read};
use std::collections::BTreeMap;

const FILE: &str = "docs/deployment.md";

/// Returns the page with its table.
pub(super) fn files() -> BTreeMap<String, String> {
    let page = read(FILE);
    let begin = format!("<!-- {BEGIN}variables -->\n");
    let end = format!("<!-- {END} -->");
    let (before, rest) = page.split_once(&begin).expect("the page marks where the table begins");
    let (_, after) = rest.split_once(&end).expect("the page marks where the table ends");
    let mut table = "| Variable | Of | Default | Meaning |\n|---|---|---|---|\n".to_owned();
    for (name, (Variable { is_secret, is_required, default, help, .. }, roles)) in all() {
        let roles = roles.into_iter().map(Role::name).collect::<Vec<_>>().join(", ");
        let default = match (is_required, default.as_str()) {
            (true, _) => "required".to_owned(),
            (false, "") => String::new(),
            (false, default) => format!("`{default}`"),
        };
        let secret = if is_secret { " **Secret.**" } else { "" };
        let help = help.replace('|', "\\|").replace('\n', " ");
        table.push_str(&format!("| `{name}` | {roles} | {default} | {help}.{secret} |\n"));
    }
    [(FILE.to_owned(), format!("{before}{begin}{table}{end}{after}"))].into()
}
