# Daily commands; `just` lists them. Recipes build with `--workspace`: selecting a package resolves other
# features and recompiles dependencies.

_default:
    @just --list --unsorted

# Runs everything on this machine: Postgres, Temporal, API, worker, sandbox
dev *args:
    cargo run -- dev {{args}}

# Runs a cluster on this machine, without containers: the services of the compose file with its environment
cluster:
    cargo build --workspace --example cluster
    target/debug/examples/cluster

# Runs the tests, which find, download or build Postgres and Temporal
test *args:
    cargo test --workspace {{args}}

# Runs the tests, and lists the slowest
durations *args:
    .ci/durations --workspace {{args}}

# Runs the checks of CI other than the tests
check: lint walls openapi-check versions-check workflows-check compose-check manifests-check

# Formats the code
fmt:
    cargo fmt --all

# Checks formatting and runs clippy, warnings denied
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings
    cargo clippy --workspace --test proof --test cluster -- -D warnings

# Checks the allowed dependencies between crates, and that workflows compile without an operating system
walls:
    cargo deny --offline --log-level error check bans licenses sources
    if rustup target list --installed | grep -q wasm32-unknown-unknown; then cargo check -p fanfare-workflows --target wasm32-unknown-unknown; else echo "wasm32-unknown-unknown is not installed: only the test of the dependency list checks this"; fi

# Compares the dependencies with the RustSec database, which is on GitHub
advisories:
    cargo deny --log-level error check advisories

# What has passed on this commit is not run again. FANFARE_PREVIOUS may name a program of an earlier version
# Runs all parts of the proof on this commit, in two hours, and writes docs/PROOF.md; given names, only these parts
proof *parts: _cargo-mutants
    cargo build --workspace --example proof
    target/debug/examples/proof {{parts}}

# Tests further mutants of what decides about publishing, bounds and rate limits, for about this time: a part of the proof
mutants minutes="600": _cargo-mutants
    cargo build --workspace --example proof
    target/debug/examples/proof mutants --minutes {{minutes}}

# Installs the program that makes mutants
_cargo-mutants:
    cargo mutants --version 2>/dev/null | grep -q ' 27.1.0$' || cargo install --locked cargo-mutants --version 27.1.0

# Runs the short form of the proof, as CI does; given names, only these parts
proof-short *parts:
    cargo build --workspace --example proof
    target/debug/examples/proof --short {{parts}}

# Runs the sandbox only
sandbox *args:
    cargo run -- sandbox {{args}}

# Measures against programs that do the same work without Fanfare, and writes docs/BENCHMARKS.md; given rows, only these
bench *rows:
    cargo bench --workspace --bench bench -- {{rows}}

# Measures what posts need on disk, for docs/scaling.md
sizes:
    .ci/scratch-postgres psql -X -q -f tests/bench/sizes.sql

# Regenerates api/openapi.json
openapi:
    document=$(cargo run -q -- openapi) && printf '%s\n' "$document" > api/openapi.json

# Regenerates the table in platforms/README.md
platforms:
    FANFARE_RECORD=1 cargo test --workspace --lib the_tables_of_platforms_are_current

# Regenerates the table of metrics in docs/observability.md
metrics:
    FANFARE_RECORD=1 cargo test --workspace --test it the_table_of_metrics_is_current

# Checks that api/openapi.json is up to date
openapi-check:
    cargo test --workspace --lib the_committed_document_is_current

# Checks the OpenAPI document, the running service against it, and clients generated from it
contract:
    cargo build --workspace --bins
    .ci/contract

# Regenerates the generated part of the client packages from api/openapi.json
clients:
    clients/generator/generate

# Checks the client packages and the guides against a running service; ``just packages python` runs one part
packages part="all":
    cargo build --workspace --bins --examples
    .ci/packages target/debug/fanfare {{part}}

# Runs `contract` and retakes the screenshots of the dashboard and the sandbox
pictures:
    cargo build --workspace --bins
    .ci/contract target/debug/fanfare docs

# Regenerates the query descriptions in .sqlx, against a temporary Postgres with all migrations
sqlx:
    rm -rf target/sqlx && mkdir -p target/sqlx && touch store/src/lib.rs
    SQLX_OFFLINE=false SQLX_OFFLINE_DIR=$PWD/target/sqlx .ci/scratch-postgres cargo check --workspace --all-targets
    mkdir -p .sqlx && rm -f .sqlx/*.json && cp target/sqlx/*.json .sqlx/

# Records the workflow histories that are missing; given a name, a history of each branch of a changed workflow
histories version="1":
    FANFARE_RECORD={{version}} cargo test --workspace --test it -- --skip replay::every
    cargo test --workspace --test it -- replay::every replay::kept

# Keeps the queries of a version when it is released; later schemas must suit them until the next release
released:
    FANFARE_RECORD=1 cargo test --workspace --test proof queries_of_the_last_release

# Kills and restarts the processes of a cluster, in the full form: all platforms, the newest Temporal server; then `containers`
cluster-test: && containers
    FANFARE_PROOF=full cargo test --workspace --test cluster -- --nocapture

# Runs the services of the compose file in containers, publishes through them, and removes them
containers:
    cargo build --workspace --bins
    .ci/scratch-docker --networks .ci/compose target/debug/fanfare

# Builds the image of the Dockerfile with all its stages, and runs it; without a registry, of images made here
image profile="release":
    .ci/scratch-docker .ci/image full {{profile}}

# Regenerates the parts of the deployment files and the tables of docs/configuration.md that follow from the program's settings
deploy-files:
    FANFARE_RECORD=1 cargo test --workspace --test it deploy::the_deployment_files_are_current

# Names the images of the compose file and the Dockerfile by their current digests
pin-images:
    .ci/pin-images

# Checks the Kubernetes manifests against Kubernetes' own types
manifests-check:
    go run -C .ci/manifests . "$PWD"

# Checks that service, API document and clients have the same version
versions-check:
    .ci/release version

# Checks the workflow files
workflows-check:
    go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 -shellcheck= -pyflakes=

# Checks that the compose file is valid
compose-check:
    go run github.com/compose-spec/compose-go/v2/cmd@v2.9.0 -no-interpolation docker-compose.temporal.yml > /dev/null

# Runs everything that CI runs
ci:
    .ci/run
