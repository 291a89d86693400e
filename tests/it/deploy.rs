//! The deployment files name the program's variables, and give each process only its own secrets.

use crate::pages::{blocks, commands};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    process::Command,
    sync::LazyLock,
};
use tests::{
    deploy::{self, Role, compose, read, root, variables},
    yaml,
};

/// Secrets, and what may have them.
const HOLDERS: [(&str, &[&str]); 16] = [
    ("FANFARE_OPEN_KEYS", &["worker"]),
    ("FANFARE_SHARED_APPS", &["worker"]),
    ("FANFARE_OIDC_CLIENT_SECRET", &["worker"]),
    ("FANFARE_SECRET", &["api", "worker"]),
    ("FANFARE_OPERATOR_TOKEN", &["api"]),
    ("FANFARE_SANDBOX_TOKEN", &["api", "worker", "sandbox"]),
    ("OTEL_EXPORTER_OTLP_HEADERS", &["api", "worker"]),
    ("TEMPORAL_API_KEY", &["api", "worker", "migrate"]),
    ("AWS_SECRET_ACCESS_KEY", &["api", "worker"]),
    ("AWS_ACCESS_KEY_ID", &["api", "worker"]),
    ("AWS_SESSION_TOKEN", &["api", "worker"]),
    ("POSTGRES_PASSWORD", &["postgres"]),
    ("FANFARE_MIGRATE_PASSWORD", &["postgres", "migrate"]),
    ("FANFARE_API_PASSWORD", &["postgres", "api"]),
    ("FANFARE_WORKER_PASSWORD", &["postgres", "worker"]),
    ("TEMPORAL_PASSWORD", &["postgres", "temporal", "temporal-schema"]),
];

fn names(role: Role) -> BTreeSet<String> {
    variables(role).into_iter().map(|variable| variable.name).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value:?} is no text"))
}

#[test]
fn the_deployment_files_are_current() {
    for (path, content) in deploy::files() {
        let file = root().join(&path);
        if std::env::var_os("FANFARE_RECORD").is_some() {
            std::fs::write(file, content).unwrap();
        } else {
            let is_current = std::fs::read_to_string(file).is_ok_and(|found| found == content);
            assert!(is_current, "{path} is out of date: run `just deploy-files`");
        }
    }
}

#[test]
fn each_kind_of_deployment_names_every_variable_of_a_role_and_no_other() {
    let services = &yaml(&read(compose::FILE))[0]["services"];
    for role in Role::ALL {
        let (name, expected) = (role.name(), names(role));
        let environment = services[name]["environment"].as_object().unwrap();
        let in_compose: BTreeSet<_> = environment.keys().cloned().collect();
        assert_eq!(in_compose, expected, "{name} in the compose file");
        let container = container(name);
        let entries = container["env"].as_array().unwrap();
        let in_kubernetes: BTreeSet<_> =
            entries.iter().map(|entry| text(&entry["name"]).to_owned()).collect();
        assert_eq!(in_kubernetes, expected, "{name} in Kubernetes");
        let unit = read(&format!("deploy/systemd/{name}.env"));
        let lines = unit.lines().filter(|line| !line.starts_with("# ") && line.contains('='));
        let in_systemd: BTreeSet<_> =
            lines.map(|line| line.trim_start_matches('#').split('=').next().unwrap().to_owned()).collect();
        assert_eq!(in_systemd, expected, "{name} in systemd");
    }
}

#[test]
fn each_variable_that_the_page_on_traces_names_is_passed() {
    let page = read("docs/observability.md");
    let named = regex::Regex::new("OTEL_[A-Z_]+").unwrap();
    let named: BTreeSet<_> = named.find_iter(&page).map(|name| name.as_str().to_owned()).collect();
    assert!(named.len() > 5, "{named:?}");
    for role in [Role::Api, Role::Worker] {
        let missing: Vec<_> = named.difference(&names(role)).cloned().collect();
        assert!(missing.is_empty(), "{} does not get {missing:?}", role.name());
    }
}

/// Returns the container of a role's pods.
fn container(role: &str) -> Value {
    yaml(&read(&format!("deploy/kubernetes/{role}.yaml")))[0]["spec"]["template"]["spec"]["containers"][0]
        .clone()
}

#[test]
fn a_secret_reaches_only_the_processes_that_need_it() {
    let services = &yaml(&read(compose::FILE))[0]["services"];
    for (service, definition) in services.as_object().unwrap() {
        let environment = &definition["environment"];
        let values = environment.to_string();
        for (secret, holders) in HOLDERS {
            // As a variable of its own, or within the value of another one.
            let has = environment.get(secret).is_some() || values.contains(&format!("${{{secret}:"));
            assert_eq!(
                has,
                holders.contains(&service.as_str()),
                "{service} and {secret} in the compose file"
            );
        }
    }
    let known: BTreeSet<_> = HOLDERS.iter().map(|(secret, _)| *secret).chain(["DATABASE_URL"]).collect();
    for role in Role::ALL {
        let container = container(role.name());
        for variable in variables(role) {
            assert!(
                !variable.is_secret || known.contains(variable.name.as_str()),
                "{} has no holders",
                variable.name
            );
            let entries = container["env"].as_array().unwrap();
            let entry = entries.iter().find(|entry| entry["name"] == variable.name.as_str()).unwrap();
            let secret = &entry["valueFrom"]["secretKeyRef"]["name"];
            // Each role has a Secret of its own.
            let expected = variable.is_secret.then(|| format!("fanfare-{}", role.name()));
            assert_eq!(secret.as_str(), expected.as_deref(), "{} of {}", variable.name, role.name());
        }
    }
    let config = read("deploy/kubernetes/config.env");
    for secret in known {
        assert!(!config.contains(&format!("{secret}=")), "{secret} is in the ConfigMap");
    }
}

#[test]
fn containers_have_no_more_rights_than_they_need() {
    let file = &yaml(&read(compose::FILE))[0];
    for (name, service) in file["services"].as_object().unwrap() {
        assert_eq!(service["cap_drop"][0], "ALL", "{name}");
        assert_eq!(service["security_opt"][0], "no-new-privileges:true", "{name}");
        if Role::ALL.iter().any(|role| role.name() == name) {
            assert_eq!(service["read_only"], true, "{name}");
            assert!(service["mem_limit"].is_string() && service["pids_limit"].is_number(), "{name}");
            assert_eq!(service["stop_grace_period"], "90s", "{name}");
            let networks = service["networks"].to_string();
            assert_eq!(networks.contains("data"), name != "sandbox", "{name}: {networks}");
        }
        for port in service["ports"].as_array().into_iter().flatten() {
            assert!(text(port).starts_with("127.0.0.1:"), "{name} listens on all interfaces: {port:?}");
            assert!(name != "api" && name != "worker", "{name} can't be scaled with a port of the host");
        }
    }
    for network in ["data", "temporal"] {
        assert_eq!(file["networks"][network]["internal"], true, "{network}");
    }
    for role in Role::ALL {
        let pod =
            yaml(&read(&format!("deploy/kubernetes/{}.yaml", role.name())))[0]["spec"]["template"]["spec"]
                .clone();
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
        assert_eq!(pod["securityContext"]["runAsUser"], 10001);
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
        assert_eq!(pod["automountServiceAccountToken"], false);
        let container = &pod["containers"][0];
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false);
        assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
        assert!(container["resources"]["limits"]["memory"].is_string());
    }
    assert!(read("Dockerfile").contains("\nUSER 10001:10001\n"));
}

#[test]
fn the_cluster_runs_the_server_that_the_compose_file_names() {
    let file = &yaml(&read(compose::FILE))[0];
    for (service, image) in
        [("temporal", "temporalio/server:"), ("temporal-schema", "temporalio/admin-tools:")]
    {
        let version = text(&file["services"][service]["image"]).strip_prefix(image).unwrap();
        assert_eq!(version.split(['-', '@']).next(), Some(devstack::versions::TEMPORAL_SERVER), "{service}");
    }
}

#[test]
fn a_process_has_longer_to_stop_than_it_takes() {
    /// Time for the rest of a process's end, such as sending the last traces.
    const MARGIN: u64 = 4;
    for kind in Kind::ALL {
        let drain: u64 = environment(kind, Role::Api)["FANFARE_DRAIN"].parse().unwrap();
        let api = drain + server::stopping::API.as_secs();
        for (role, longest) in [(Role::Api, api), (Role::Worker, server::stopping::WORKER.as_secs())] {
            let granted = granted(kind, role);
            assert!(longest + MARGIN < granted, "{} in {kind:?}: {granted} s", role.name());
        }
    }
}

/// Returns the seconds after which a process that was told to stop is killed.
fn granted(kind: Kind, role: Role) -> u64 {
    match kind {
        Kind::Compose => {
            let all = &yaml(&read(compose::FILE))[0]["x-fanfare"]["stop_grace_period"];
            text(all).strip_suffix('s').unwrap().parse().unwrap()
        }
        Kind::Kubernetes => {
            let workload = &yaml(&read(&format!("deploy/kubernetes/{}.yaml", role.name())))[0];
            workload["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].as_u64().unwrap()
        }
        Kind::Systemd => setting(&unit(role), "TimeoutStopSec=").parse().unwrap(),
    }
}

/// A kind of deployment.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Compose,
    Kubernetes,
    Systemd,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Compose, Self::Kubernetes, Self::Systemd];
}

/// Values that an operator sets: keys as the program generates them, and passwords.
fn secrets() -> &'static BTreeMap<String, String> {
    static SECRETS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
        let program = env!("CARGO_BIN_EXE_fanfare-under-test");
        let pair = Command::new(program).args(["key", "generate"]).output().unwrap();
        let passwords =
            HOLDERS.iter().filter(|(name, _)| name.ends_with("PASSWORD") || name.ends_with("TOKEN"));
        let passwords =
            passwords.map(|(name, _)| ((*name).to_owned(), "0123456789abcdef0123456789abcdef".to_owned()));
        assignments(&String::from_utf8(pair.stdout).unwrap()).chain(passwords).collect()
    });
    &SECRETS
}

/// Returns the assignments of an environment file.
fn assignments(text: &str) -> impl Iterator<Item = (String, String)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once('=')).map(|(name, value)| (name.to_owned(), value.to_owned()))
}

/// Returns an environment file whose empty values an operator has set.
fn completed(path: &str) -> BTreeMap<String, String> {
    let complete = |(name, value): (String, String)| {
        let value = if value.is_empty() { secrets()[&name].clone() } else { value };
        (name, value)
    };
    assignments(&read(path)).map(complete).collect()
}

/// Returns the environment of a role's process in an installation whose operator has set what is required and nothing
/// else.
fn environment(kind: Kind, role: Role) -> BTreeMap<String, String> {
    let name = role.name();
    match kind {
        Kind::Compose => compose::service(name, secrets()),
        Kind::Kubernetes => {
            let config = completed("deploy/kubernetes/config.env");
            let secret = completed(&format!("deploy/kubernetes/secrets/{name}.env"));
            let container = container(name);
            let entries = container["env"].as_array().unwrap().iter();
            let set = entries.filter_map(|entry| {
                let name = text(&entry["name"]).to_owned();
                let value = if let Some(value) = entry["value"].as_str() {
                    value.to_owned()
                } else {
                    let from = &entry["valueFrom"];
                    let (source, reference) = match &from["secretKeyRef"] {
                        Value::Null => (&config, &from["configMapKeyRef"]),
                        reference => (&secret, reference),
                    };
                    assert_eq!(reference["key"], name.as_str());
                    match source.get(&name) {
                        Some(value) => value.clone(),
                        None if reference["optional"] == true => return None,
                        None => panic!("{name} of {} is required and has no value", role.name()),
                    }
                };
                Some((name, value))
            });
            set.collect()
        }
        Kind::Systemd => completed(&format!("deploy/systemd/{name}.env")),
    }
}

/// Returns the systemd unit of a role.
fn unit(role: Role) -> String {
    let instances = if matches!(role, Role::Api | Role::Worker) { "@" } else { "" };
    read(&format!("deploy/systemd/fanfare-{}{instances}.service", role.name()))
}

/// Returns the value of a unit's setting.
fn setting<'a>(unit: &'a str, name: &str) -> &'a str {
    unit.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"))
}

/// Every required variable is there, and the program's own parser accepts every value.
#[test]
fn the_program_accepts_the_environment_of_each_kind_of_deployment() {
    let program = server::command();
    for (kind, role) in Kind::ALL.into_iter().flat_map(|kind| Role::ALL.map(|role| (kind, role))) {
        let environment = environment(kind, role);
        let command = program.find_subcommand(role.name()).unwrap();
        let mut args = vec!["fanfare".to_owned(), role.name().to_owned()];
        if let Kind::Systemd = kind {
            let unit = unit(role);
            let start = setting(&unit, "ExecStart=/usr/local/bin/fanfare ").replace("%i", "8080");
            args.splice(1.., start.split(' ').map(str::to_owned));
        }
        // As flags: a test can't change the environment of its own process.
        for setting in command.get_arguments() {
            let Some(value) = setting.get_env().and_then(|name| environment.get(name.to_str().unwrap()))
            else {
                continue;
            };
            let flag = setting.get_long().unwrap();
            let takes_value = setting.get_action().takes_values();
            args.push(if takes_value { format!("--{flag}={value}") } else { format!("--{flag}") });
        }
        let parsed = program.clone().try_get_matches_from(args);
        assert!(parsed.is_ok(), "{} in {kind:?}: {}", role.name(), parsed.unwrap_err());
    }
}

#[test]
fn a_sandbox_that_others_reach_has_a_token_and_an_address() {
    for kind in Kind::ALL {
        let sandbox = environment(kind, Role::Sandbox);
        let is_open = sandbox.get("FANFARE_SANDBOX_LISTEN").is_some_and(|address| {
            let address: SocketAddr = address.parse().unwrap();
            !address.ip().is_loopback()
        });
        assert_eq!(is_open, !matches!(kind, Kind::Systemd), "{kind:?}");
        if !is_open {
            continue;
        }
        for role in [Role::Sandbox, Role::Api, Role::Worker] {
            let environment = environment(kind, role);
            for name in ["FANFARE_SANDBOX_TOKEN", "FANFARE_SANDBOX_URL"] {
                assert!(environment.contains_key(name), "{name} of {} in {kind:?}", role.name());
            }
        }
    }
    // Compose passes a variable that is not required, too, if it is set.
    let services = &yaml(&read(compose::FILE))[0]["services"];
    let token = text(&services["sandbox"]["environment"]["FANFARE_SANDBOX_TOKEN"]);
    assert!(token.starts_with("${FANFARE_SANDBOX_TOKEN:?"), "{token}");
}

#[test]
fn processes_of_the_compose_file_start_when_postgres_and_temporal_are_prepared() {
    let services = &yaml(&read(compose::FILE))[0]["services"];
    for needed in ["postgres", "temporal"] {
        assert_eq!(services["migrate"]["depends_on"][needed]["condition"], "service_healthy", "{needed}");
    }
    let networks = services["migrate"]["networks"].as_array().unwrap();
    assert!(networks.contains(&"data".into()) && networks.contains(&"temporal".into()), "{networks:?}");
    for service in ["api", "worker"] {
        let condition = &services[service]["depends_on"]["migrate"]["condition"];
        assert_eq!(condition, "service_completed_successfully", "{service}");
    }
}

/// Without these settings a server ignores the fairness key of workflows, and nothing tells.
#[test]
fn every_way_to_run_temporal_has_the_settings_that_fairness_needs() {
    let file = &yaml(&read(compose::FILE))[0];
    let compose = yaml(text(&file["configs"]["temporal"]["content"])).remove(0);
    for needed in ["matching.useNewMatcher", "matching.enableFairness"] {
        assert_eq!(compose[needed][0]["value"], true, "{needed} in the compose file");
    }
    let helm = &yaml(&read("deploy/temporal/helm-values.yaml"))[0];
    assert_eq!(helm["server"]["dynamicConfig"], compose, "Helm");
    let block = blocks("temporal.md").into_iter().find(|block| block.section == "Fairness").unwrap();
    assert_eq!(yaml(&block.code)[0], compose, "docs/temporal.md");
}

#[test]
fn systemd_accepts_the_units() {
    if tests::program("systemd-analyze").is_none() {
        tests::skip("systemd-analyze is not installed: the units are not verified");
        return;
    }
    let dir = tests::directory().join("units");
    std::fs::create_dir_all(&dir).unwrap();
    let program = env!("CARGO_BIN_EXE_fanfare-under-test");
    let mut units = Vec::new();
    for entry in std::fs::read_dir(root().join("deploy/systemd")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".service") {
            continue;
        }
        let unit = std::fs::read_to_string(&path).unwrap().replace("/usr/local/bin/fanfare", program);
        let instance = name.replace("@.", "@8080.");
        std::fs::write(dir.join(&instance), unit).unwrap();
        units.push(dir.join(instance));
    }
    assert_eq!(units.len(), Role::ALL.len());
    // The credential of the page.
    let page = read("docs/deployment.md");
    let drop_in = page.split_once("```ini\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
    let drop_ins = dir.join("fanfare-api@.service.d");
    std::fs::create_dir_all(&drop_ins).unwrap();
    std::fs::write(drop_ins.join("secret.conf"), drop_in).unwrap();
    let verified = Command::new("systemd-analyze").arg("verify").args(&units).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stderr).into_owned();
    // Only what is said of these files: other units of the machine are loaded, too.
    let ours: Vec<_> = said.lines().filter(|line| line.contains("fanfare")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
    let exposure = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--threshold=20"])
        .args(&units)
        .output()
        .unwrap();
    assert!(exposure.status.success(), "{}", String::from_utf8_lossy(&exposure.stdout));
}

#[test]
fn the_templates_of_the_secrets_are_copied_for_their_owner_only() {
    let home = tests::directory().join("home");
    std::fs::create_dir_all(&home).unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", &commands("deployment.md", "sh secrets")]);
    let copied = shell.current_dir(root()).env("HOME", &home).output().unwrap();
    assert!(copied.status.success(), "{}", String::from_utf8_lossy(&copied.stderr));
    let secrets = home.join("fanfare-secrets");
    assert_eq!(secrets.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    for role in Role::ALL {
        let file = secrets.join(format!("{}.env", role.name()));
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o77, 0, "{}", file.display());
    }
}

#[test]
fn yaml_is_read_as_the_programs_read_it_that_it_is_for() {
    let file = "x: &x { a: 1, b: 2 }\ny: &y { <<: *x, b: 3 }\nz:\n  <<: *y\n  c: [*x, no, 0644, '1', 2020-01-02]\n\
                ---\n# Nothing.\n---\n- |\n  a\n   b\n- null\n";
    let (x, y) = (json!({ "a": 1, "b": 2 }), json!({ "a": 1, "b": 3 }));
    let z = json!({ "a": 1, "b": 3, "c": [x, "no", "0644", "1", "2020-01-02"] });
    assert_eq!(yaml(file), [json!({ "x": x, "y": y, "z": z }), json!(["a\n b\n", null])]);
    for wrong in ["a: 1\nb: 2\na: 3\n", "a: *b\n", "a: [1\n", "? [1]\n: 2\n"] {
        assert!(std::panic::catch_unwind(|| yaml(wrong)).is_err(), "{wrong}");
    }
}
