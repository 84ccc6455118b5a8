# Builds the fuzz targets; run.py runs them as they are built here. Run from the repository's root.
set -euo pipefail
source tests/harness/tools.sh

python_env fuzz
PATH="$PWD/tests/.tools/fuzz/bin:$PATH" exec cargo fuzz build --sanitizer none --fuzz-dir tests/fuzz \
    --target-dir tests/.tools/fuzz-target --dev --strip-dead-code=true
