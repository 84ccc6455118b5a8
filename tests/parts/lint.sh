# Formatting, lints, documentation, dependencies. Each command counts as one test.
set -uo pipefail
source tests/harness/tools.sh
passed=0 failed=0

check() {
    echo "-- $*"
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

dependencies() {
    # The whole tree is read, other systems' crates too.
    fetched Cargo.toml && python_env lint || return
    PATH="$PWD/tests/.tools/lint/bin:$PATH" cargo deny --offline check bans licenses sources
}

# What is fuzzed is what ships: nothing else comes in with the targets.
fuzz_dependencies() {
    fetched tests/fuzz/Cargo.toml && python_env lint || return
    PATH="$PWD/tests/.tools/lint/bin:$PATH" cargo deny --offline --locked --config deny.toml \
        --manifest-path tests/fuzz/Cargo.toml check bans sources
}

fetched() {
    cargo fetch --quiet --locked --offline --manifest-path "$1" 2>/dev/null ||
        cargo fetch --quiet --locked --manifest-path "$1"
}

check cargo fmt --all --check
check cargo fmt --check --manifest-path tests/fuzz/Cargo.toml
check cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" check cargo doc --quiet --locked --no-deps --document-private-items
check dependencies
check fuzz_dependencies
echo "lint: $passed passed, $failed failed"
