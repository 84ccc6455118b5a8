# Runs Rust tests and adds their counts to `passed` and `failed`. Sourced from the repository's root.
shopt -s lastpipe
passed=0 failed=0

# cargo_tests FILTER WORDS TARGETS…: FILTER chooses the tests for nextest, WORDS do so for the
# ordinary test runner, which is used where nextest is not installed.
cargo_tests() {
    local filter=$1 words=$2
    shift 2
    if cargo nextest --version >/dev/null 2>&1; then
        # What failed is shown at once, and in the end, where it is looked for.
        cargo nextest run --locked --no-fail-fast --color never --status-level slow --failure-output immediate-final \
            "$@" -E "$filter" 2>&1 | count
    else
        # WORDS are several arguments.
        # shellcheck disable=SC2086
        cargo test --locked --no-fail-fast --color never "$@" -- $words 2>&1 | count
    fi
    settle "${PIPESTATUS[0]}"
}

# The examples in the documentation.
cargo_doctests() {
    cargo test --locked --no-fail-fast --color never --doc 2>&1 | count
    settle "${PIPESTATUS[0]}"
}

# Passes a runner's output on and reads its summaries.
count() {
    local line
    local nextest='Summary .* ([0-9]+)(/[0-9]+)? tests? run: ([0-9]+) passed'
    local libtest='^test result: .* ([0-9]+) passed; ([0-9]+) failed'
    while IFS= read -r line; do
        printf '%s\n' "$line"
        if [[ $line =~ $nextest ]]; then
            passed=$((passed + BASH_REMATCH[3]))
            failed=$((failed + BASH_REMATCH[1] - BASH_REMATCH[3]))
        elif [[ $line =~ $libtest ]]; then
            passed=$((passed + BASH_REMATCH[1]))
            failed=$((failed + BASH_REMATCH[2]))
        fi
    done
}

# A runner that failed without a failed test could not build, or found nothing to run.
settle() {
    (($1 == 0 || failed)) || failed=1
}
