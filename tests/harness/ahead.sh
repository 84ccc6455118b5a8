# ahead.sh PART…: builds what the parts need in the end, in the order in which they need it. Run from the repository's root.
source tests/harness/tools.sh

# needed PART…: whether one of these is among the parts.
needed() {
    local part
    for part; do
        [[ " $parts " != *" $part "* ]] || return 0
    done
    return 1
}

parts=$*
# Nothing waits for these for long, so that whatever else runs goes first.
needed fuzz && alone fuzz nice bash tests/fuzz/build.sh &
# In the end this is one thread for minutes: the sooner it gets there, the better.
needed sdk conformance oauth proxy namespaces bench demo && release --bin tollgate
needed bench && release --package tollgate-bench
wait
