# Real clients through the forward proxy.
set -euo pipefail
source tests/harness/tools.sh

python_env proxy/python
npm_tree proxy/node
debian curl curl
debian git git
release --bin tollgate
exec python3 tests/proxy/run.py
