# People's connections with real parts: an authorization server, a server that wants its tokens, browsers.
set -euo pipefail
source tests/harness/tools.sh

npm_tree oauth/node
debian openssl openssl
# Where Chromium cannot be installed, its scenario is skipped, and says so.
debian chromium chromium || true
debian chromedriver chromium-driver || true
release --bin tollgate
exec python3 tests/oauth/run.py
