# An agent that is fenced in, in network namespaces of the test's own.
set -euo pipefail
source tests/harness/tools.sh

python_env proxy/python
debian curl curl
debian ip iproute2
# Only root can switch uids, which is what it is for.
[[ $(id -u) != 0 ]] || debian nft nftables
release --bin tollgate
exec python3 tests/namespaces/run.py
