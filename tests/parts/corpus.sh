# The tests whose name contains `corpus`.
set -uo pipefail
source tests/harness/cargo.sh

cargo_tests "test(corpus)" "corpus" --lib --test it
echo "corpus: $passed passed, $failed failed"
