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
    cargo fetch --quiet --locked --offline 2>/dev/null || cargo fetch --quiet --locked || return
    python_env lint || return
    PATH="$PWD/tests/.tools/lint/bin:$PATH" cargo deny --offline check bans licenses sources
}

check cargo fmt --check
check cargo clippy --quiet --locked --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" check cargo doc --quiet --locked --no-deps --document-private-items
check dependencies
echo "lint: $passed passed, $failed failed"
