# The README's first command, as whoever reads it types it; the demo ends by itself.
set -euo pipefail

if cargo run --quiet --locked --release -- demo --once; then
    echo "demo: 1 passed, 0 failed"
else
    echo "demo: 0 passed, 1 failed"
    exit 1
fi
