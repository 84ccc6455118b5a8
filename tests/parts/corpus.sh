# The tests of `tests/corpus`: those whose name contains `corpus`, and the OAuth cases.
set -uo pipefail
source tests/harness/cargo.sh

cargo_tests "test(corpus) | test(oauth_cases)" "corpus" --lib --test it
echo "corpus: $passed passed, $failed failed"
