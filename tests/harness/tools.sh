# Installs what a part needs, once, under tests/.tools. Sourced from the repository's root.

# python_env DIR: a virtual environment with tests/DIR/requirements.txt, at tests/.tools/DIR.
python_env() {
    local wanted="tests/$1/requirements.txt" home="tests/.tools/$1"
    # Its programs name the place where it was made, and do not run from another.
    { pwd && cat "$wanted"; } | cmp -s - "$home/installed.txt" && return
    rm -rf "$home"
    # Debian's Python comes without what makes environments.
    python3 -c "import ensurepip" 2>/dev/null || debian_package python3-venv
    python3 -m venv "$home"
    "$home/bin/pip" install --quiet --no-deps --disable-pip-version-check --requirement "$wanted"
    { pwd && cat "$wanted"; } >"$home/installed.txt"
}

# npm_tree DIR: the packages of tests/DIR/package-lock.json, at tests/.tools/DIR/node_modules.
# No package's install script runs.
npm_tree() {
    local wanted="tests/$1" home="tests/.tools/$1"
    cmp -s "$wanted/package-lock.json" "$home/installed.json" && return
    rm -rf "$home"
    mkdir -p "$home"
    cp "$wanted/package.json" "$wanted/package-lock.json" "$home/"
    npm ci --prefix "$home" --ignore-scripts --no-audit --no-fund --loglevel=error
    cp "$wanted/package-lock.json" "$home/installed.json"
}

# debian PROGRAM PACKAGE: installs the package unless the program is there.
debian() {
    PATH="$PATH:/usr/sbin" command -v "$1" >/dev/null || debian_package "$2"
}

debian_package() {
    local root=()
    [[ $(id -u) == 0 ]] || root=(sudo -n)
    echo "installing Debian's $1"
    alone debian "${root[@]}" apt-get update -qq
    # RUNLEVEL=1 keeps the package from starting a service.
    alone debian "${root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
        apt-get install -qq -y --no-install-recommends "$1" >/dev/null
}

# alone NAME COMMAND…: what is built ahead may want the same as a part, at the same time.
alone() {
    mkdir -p tests/.tools
    flock "tests/.tools/$1.lock" "${@:2}"
}

# release ARGUMENTS…: builds targets of this package as they ship.
release() {
    cargo build --quiet --locked --release "$@"
}
