# Every daily command. `just` lists them.

_default:
    @just --list --unsorted

# Everything on this machine: Postgres, Temporal, API, worker, sandbox
dev *args:
    cargo run -- dev {{args}}

# The tests: they find, fetch or build what they need
test *args:
    cargo test --workspace {{args}}

# What CI checks besides the tests
check: lint walls openapi-check compose-check

# Formats the code
fmt:
    cargo fmt --all

# Formatting and clippy, warnings denied
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets -- -D warnings

# The walls: who may depend on what, and that workflows need no operating system
walls:
    cargo deny --offline --log-level error check bans licenses sources
    if rustup target list --installed | grep -q wasm32-unknown-unknown; then cargo check -p fanfare-workflows --target wasm32-unknown-unknown; else echo "wasm32-unknown-unknown is not installed: the wall is held by the test of the dependency list"; fi

# The sandbox alone
sandbox *args:
    cargo run -- sandbox {{args}}

# What a post costs, next to the barest Temporal program of its shape
bench:
    cargo bench -p fanfare-tests

# Writes api/openapi.json anew
openapi:
    document=$(cargo run -q -- openapi) && printf '%s\n' "$document" > api/openapi.json

# Draws the table in platforms/README.md anew
platforms:
    FANFARE_RECORD=1 cargo test -p fanfare-platforms --lib the_table_of_platforms_is_current

# Whether api/openapi.json is the generated one
openapi-check:
    cargo test -p fanfare-api the_committed_document_is_current

# The document's validity, the service against it, and the clients generated from it
contract:
    cargo build -p fanfare-server
    .ci/contract

# The same, and the README's pictures of the dashboard are taken anew
pictures:
    cargo build -p fanfare-server
    .ci/contract target/debug/fanfare docs

# Describes the queries anew in .sqlx, in a Postgres of its own that has today's migrations
sqlx:
    rm -rf target/sqlx && mkdir -p target/sqlx && touch store/src/lib.rs
    SQLX_OFFLINE=false SQLX_OFFLINE_DIR=$PWD/target/sqlx .ci/scratch-postgres cargo check -p fanfare-store --all-targets
    mkdir -p .sqlx && rm -f .sqlx/*.json && cp target/sqlx/*.json .sqlx/

# Records the histories that workflow code must go on replaying
histories:
    FANFARE_RECORD=1 cargo test -p fanfare-tests --test it what_runs_now_replays

# Whether the compose file is well-formed and its parts fit together
compose-check:
    go run github.com/compose-spec/compose-go/v2/cmd@v2.9.0 -no-interpolation docker-compose.temporal.yml > /dev/null

# What CI runs
ci:
    .ci/run
