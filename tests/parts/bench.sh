# What a call costs, beside nginx.
set -euo pipefail

if [[ -n ${TESTS_LONG:-} ]]; then
    exec tests/bench/run --check
fi
exec tests/bench/run --short
