"""Inputs that are made of what the repository has already: cases of the corpus, the policy folder, real ClientHellos."""

import json
import pathlib
import ssl

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# Lengths of pieces, in the form of `tollgate_fuzz::cut`.
PIECES = b"\x20\x01\n"


def write(target, name, content):
    """Puts an input into the folder that the target begins with."""
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def from_corpus():
    """The URLs, authorities and heads of tests/corpus."""
    for line in (ROOT / "tests/corpus/egress.jsonl").read_text().splitlines():
        case = json.loads(line)
        given = case["input"]
        for key in ("url", "connect"):
            if key in given:
                write("target", case["id"], given[key].encode())
        if "raw" in given:
            write("head", case["id"], PIECES + given["raw"].encode("latin-1"))


def from_policy():
    """The policy folder as it is shipped, and the same with everything in it that stands in a comment."""
    names = ["egress.toml", "keys.toml", "tollgate.toml"]
    names += sorted(f"servers/{path.name}" for path in (ROOT / "policy/servers").glob("*.toml"))
    for name in names:
        text = (ROOT / "policy" / name).read_text()
        path = name.replace("/_", "/")
        write("policy", f"shipped-{path.replace('/', '-')}", f"=== {path}\n{text}".encode())
        shown = "".join(line.removeprefix("# ") for line in text.splitlines(keepends=True))
        write("policy", f"shown-{path.replace('/', '-')}", f"=== {path}\n{shown}".encode())


def hello(name, versions):
    """What OpenSSL sends first."""
    context = ssl.create_default_context()
    context.minimum_version, context.maximum_version = versions
    context.set_alpn_protocols(["h2", "http/1.1"])
    output = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), output, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return output.read()


def in_records(record, length):
    """The same message in records of this length."""
    message = record[5:]
    parts = [message[at : at + length] for at in range(0, len(message), length)]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)


def from_openssl():
    """ClientHellos of TLS 1.2 and 1.3, for a name and for an address, whole and over several records."""
    v12, v13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3
    for name in ("api.example.net", "xn--bcher-kva.example", "127.0.0.1"):
        for label, versions in (("12", (v12, v12)), ("13", (v13, v13)), ("both", (v12, v13))):
            found = hello(name, versions)
            write("hello", f"{name}-{label}", PIECES + found)
            write("hello", f"{name}-{label}-records", PIECES + in_records(found, 100))


def make():
    """Makes them all."""
    from_corpus()
    from_policy()
    from_openssl()


if __name__ == "__main__":
    make()
