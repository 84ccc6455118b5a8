# Each fuzz target for up to a minute, or for ten with `--long`.
set -euo pipefail
source tests/harness/tools.sh

python_env fuzz
export PATH="$PWD/tests/.tools/fuzz/bin:$PATH"
cargo fuzz build --sanitizer none --fuzz-dir tests/fuzz --target-dir tests/.tools/fuzz-target --dev --strip-dead-code=true
exec python3 tests/fuzz/run.py
