# The official conformance suite, directly and through Tollgate.
set -euo pipefail
source tests/harness/tools.sh

npm_tree conformance
release --bin tollgate
cargo build --quiet --locked --example fixture
exec python3 tests/conformance/run.py
