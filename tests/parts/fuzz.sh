# Each fuzz target for up to a minute, or for ten with `--long`.
set -euo pipefail
source tests/harness/tools.sh

alone fuzz bash tests/fuzz/build.sh
export PATH="$PWD/tests/.tools/fuzz/bin:$PATH"
exec python3 tests/fuzz/run.py
