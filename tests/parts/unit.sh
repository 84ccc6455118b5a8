# The library's own tests, the integration tests, and the examples in the documentation.
set -uo pipefail
source tests/harness/cargo.sh

cargo_tests "not test(corpus)" "--skip corpus" --lib --bins --test it
cargo_doctests
echo "unit: $passed passed, $failed failed"
