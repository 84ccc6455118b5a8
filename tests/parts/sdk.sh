# Official SDK clients through Tollgate to official SDK servers.
set -euo pipefail
source tests/harness/tools.sh

python_env sdk/python-current
python_env sdk/python-legacy
python_env sdk/python-servers
npm_tree sdk/typescript
cargo build --quiet --locked --manifest-path tests/sdk/rmcp/Cargo.toml --target-dir tests/.tools/sdk/rmcp
release --bin tollgate
exec python3 tests/sdk/run.py
