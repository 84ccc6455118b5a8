"""Steps that several scenarios have in common, and the list of scenarios."""

import concurrent.futures

from agent import link
from person import is_connected
from stage import SERVER

ALL = []
# Seconds that an access token lasts: long enough for a call, short enough to wait for its end.
SHORT = 4


def scenario(function):
    """Has a function played, under its own name."""
    ALL.append((function.__name__.replace("_", "-"), function))
    return function


def good(answer, text=None):
    """A call that worked."""
    assert answer.is_good(), str(answer)
    assert text is None or answer.text() == text, f"found `{answer.text()}`, expected `{text}`"


def wants_link(gateway, answer, code, server=SERVER):
    """A call that answers with the page on which a person goes on."""
    assert not answer.is_good(), str(answer)
    assert answer.text().startswith(code), f"expected `{code}`: {answer}"
    assert link(answer, gateway.public_url) == f"{gateway.public_url}/connect/{server}", str(answer)


def failed(page, code):
    """A page that tells what did not work."""
    assert code in page.words() and not is_connected(page), page


def callback(person, gateway):
    """Walks to the provider and agrees; gives the address to come back to, which was not opened."""
    page = person.confirm(SERVER)
    url = person.stops(page, page.form("/connect/"), f"{gateway.public_url}/oauth/callback")
    assert "code=" in url, url.split("?")[0]
    return url


def together(calls):
    """Does them all at once; the first that fails is raised."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()


def refreshes(provider):
    """How many refreshes the provider answered, well or not."""
    return len(provider.journal.answered(route="token", grant_type="refresh_token"))
