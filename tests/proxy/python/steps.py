"""Runs the steps of a client, and prints what came of each as one line of JSON.

The argument is a JSON object: `proxy` (a URL with the credential in it), `ca` (a file), `folder` (for what is
written), and `steps`, each a name, what is done (`get`, `post`, `socket`, `clone`) and a URL. A client is an object
with methods of these names, which give (status, text). What fails gives its message, with those of its causes.
"""

import hashlib
import json

UPLOAD = bytes(range(256)) * 16384
WORD = "tollgate"


def outcome(status, body):
    """What is told of an answer: a long body by its length and digest."""
    if len(body) > 1000:
        return {"status": status, "text": f"{len(body)} {hashlib.sha256(body).hexdigest()}"}
    return {"status": status, "text": body.decode(errors="replace")}


def failed(error):
    said = []
    while error is not None:
        said.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__
    return {"status": None, "text": " / ".join(said)}


def run(client, steps):
    done = {}
    for name, verb, url in steps:
        try:
            done[name] = outcome(*getattr(client, verb)(url))
        # Whatever a library throws is what its user sees.
        except Exception as error:
            done[name] = failed(error)
    print(json.dumps(done))
