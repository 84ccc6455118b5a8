# What a call costs beside nginx, and the forward proxy beside squid and tinyproxy.
set -euo pipefail

if [[ -n ${TESTS_LONG:-} ]]; then
    exec tests/bench/run --check
fi
exec tests/bench/run --short
