# The library's own tests, the integration tests, and examples in the documentation once there are any.
set -uo pipefail
source tests/harness/cargo.sh

cargo_tests "not test(corpus)" "--skip corpus" --lib --bins --test it
cargo_doctests
echo "unit: $passed passed, $failed failed"
