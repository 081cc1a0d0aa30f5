"""The one way to the network: its proxy, its authority, and why an address cannot be reached.

Data, programs, pip, image builds and the doctor all ask this module, so that one setting serves them all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import requests
import urllib3

from harness.errors import MachineError, NoNetwork, NoSpace

PROXY_VARIABLES = tuple(
    name
    for upper in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
    for name in (upper, upper.lower())
)
AUTHORITY_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT")
_OTHERS = ("CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
SYSTEMS = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Files in which distributions keep all authorities."""
USER_AGENT = "gpudyno/0.1 (benchmark harness; requests)"
"""One mirror answers 403 to the default of Python's urllib."""
MOST_REDIRECTS = 5
BROKEN = (requests.RequestException, urllib3.exceptions.HTTPError, ValueError)
"""What a transfer that ends early may raise."""


class Offline(NoNetwork):
    """The line is dead: no name is known, or no host answers."""


def authority_file(environ: Mapping[str, str]) -> str | None:
    """Return the file of the authorities that connections trust: the user's, else the system's."""
    given = (environ[name] for name in AUTHORITY_VARIABLES if environ.get(name))
    return next(given, None) or next((path for path in SYSTEMS if Path(path).is_file()), None)


def _trusted_authority() -> str | None:
    """Return the same for this process; raises MachineError where the user's is not there."""
    path = authority_file(os.environ)
    if path is not None and not Path(path).exists():
        remedy = (
            f"correct {' or '.join(name for name in AUTHORITY_VARIABLES if os.environ.get(name) == path)}"
        )
        raise MachineError(f"there is no file of authorities '{path}'", remedy=f"{remedy}, or the setting ca")
    return path


def program_variables() -> dict[str, str]:
    """Return the variables by which pip, git and curl trust the same authority.

    Where the user named none, what pip's and git's own settings name goes before the system's.
    """
    path = _trusted_authority()
    if path is None:
        return {}
    given = any(map(os.environ.get, AUTHORITY_VARIABLES))
    return dict.fromkeys((*AUTHORITY_VARIABLES, *_OTHERS) if given else ("REQUESTS_CA_BUNDLE",), path)


def request_url(url: str, *, connect_seconds: float, read_seconds: float) -> requests.Response:
    """Return the answer to a request, its body unread.

    Raises MachineError where a certificate or a proxy prevents it, Offline where the line is dead, and
    NoNetwork where the answer is of no use.
    """
    host = urlsplit(url).hostname or url
    with requests.Session() as session:
        session.max_redirects = MOST_REDIRECTS
        try:
            reply = session.get(
                url,
                stream=True,
                timeout=(connect_seconds, read_seconds),
                verify=_trusted_authority() or True,
                headers={"User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            )
        except BROKEN as error:
            obstacle = network_obstacle(str(error), host)
            if obstacle is None and isinstance(error, requests.Timeout | requests.ConnectionError):
                obstacle = _dead_line(host)
            raise obstacle or NoNetwork(f"{host} failed ({type(error).__name__})") from None
        proxied = requests.utils.select_proxy(url, requests.utils.get_environ_proxies(url)) is not None
        page = reply.headers.get("Content-Type", "").startswith("text/html")
        status = reply.status_code
        if status == 407 or (proxied and status in (403, 451, 511)):
            answer = str(status)
        elif page and status == 200:
            answer = "page"
        else:
            return reply
        reply.close()
        raise _proxy_error(host, answer)


class KnownCause(MachineError):
    """A cause that was seen in so many words, with the one remedy that belongs to it."""


_KNOWN = (
    (
        r"too ?many ?requests|pull rate limit",
        "{host} gives no more for a while without a name (429)",
        "sign in by `docker login` where it is a registry, or try again in some hours",
    ),
    (
        r"error getting credentials|docker-credential-\S+.*not found",
        "the credential helper that Docker's config.json names is missing or gives nothing",
        "install it or sign in again, or take credsStore out of ~/.docker/config.json",
    ),
    (
        r"manifest unknown|repository does not exist|pull access denied|source metadata for .*: not found",
        "there is no image of that name at {host}, or for members alone",
        "correct what --base names, or sign in by `docker login`",
    ),
    (
        r"(?:certificate|release file).*(?:(?:is )?not (?:yet )?valid (?:yet|cert)|not yet valid|expired)"
        r"|(?:peer certificate: |cert)(?:Cert)?(?:NotValidYet|Expired)",
        "the certificate of {host} is not valid at the time of this machine's clock",
        "set the clock, or have the certificate renewed",
    ),
    (
        r"certificate.*(?:name mismatch|address mismatch|doesn't match|does not match|is valid for .*, not"
        r"|SANs|NotValidForName)|no alternative certificate subject",
        "the certificate that {host} shows is another host's",
        "correct the address or the proxy on the way",
    ),
    (
        r"do not match the hashes",
        "a package's hash is none of the lock's, as where another Python or index is asked",
        "take a Python that the lock names and the index's own files",
    ),
    (
        r"requires a different python",
        "this Python is none of the lock's",
        "take one that the lock names",
    ),
    (
        r"conflicting dependencies|ResolutionImpossible|\(constraint\)",
        "a constraint in pip's settings excludes a version of the lock",
        "unset PIP_CONSTRAINT, or take it out of pip.conf",
    ),
)
"""What programs print of causes that are no trouble of the network: pattern, problem and remedy."""
_AUTHORITY = re.compile(
    r"unknown authority|local issuer|self.signed|issuer is (?:unknown|not)|unknownissuer|x509: unknown|"
    r"NO_CERTIFICATE_OR_CRL_FOUND|unable to get issuer|verification failed\. CAfile",
    re.IGNORECASE,
)
_PROXY = re.compile(
    r"ProxyError|(?:to|resolve|from) proxy|proxyconnect|proxy authentication|"
    r"tunnel (?:connection )?failed|\bSOCKS\b",
    re.IGNORECASE,
)
_NAME = re.compile(
    r"name or service not known|name resolution|no such host|failed to resolve '|could not resolve|"
    r"nodename nor servname",
    re.IGNORECASE,
)
_LINE = re.compile(
    r"connection refused|no route to host|network is unreachable|timed? ?out|"
    r"deadline exceeded|connection reset|unexpected eof|failed to connect to",
    re.IGNORECASE,
)
_CONNECTS = re.compile(r"Failed to connect to (\S+) port")
_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_HOST = re.compile(
    r"host='([^']+)'|lookup ([\w.-]+)|resolve host: ([\w.-]+)|https?://(?:[^@/\s]*@)?([\w.-]+)"
)


def network_obstacle(said: str, host: str) -> MachineError | None:
    """Return what a library or a program met on its way to a host, by what it said; null where it is none."""
    for pattern, problem, remedy in _KNOWN:
        if re.search(pattern, said, re.IGNORECASE):
            return KnownCause(problem.format(host=host), remedy=remedy)
    if _AUTHORITY.search(said):
        return MachineError(
            f"the certificate of {host} is signed by an authority unknown here",
            remedy="name the file with that authority in the setting ca, or in SSL_CERT_FILE",
        )
    if _PROXY.search(said):
        code = re.search(r"\b(407|403|451|511)\b", said)
        return _proxy_error(host, "SOCKS" if "SOCKS" in said else code[1] if code else "")
    # git names the proxy, where it reaches no other host.
    if (met := _CONNECTS.search(said)) and met[1] != host:
        return _proxy_error(host, "")
    if _NAME.search(said):
        return Offline(
            f"the name of {host} is not known here",
            remedy="look at the machine's network and name server, or name your proxy in HTTPS_PROXY",
        )
    return _dead_line(host) if _LINE.search(said) else None


def _dead_line(host: str) -> Offline:
    return Offline(f"{host} cannot be reached", remedy="try again later")


_OF_PROXY = {
    "": "gives no connection",
    "407": "asks for a name and a password (407)",
    "page": "or portal answers with a page of its own",
    "SOCKS": "is one for SOCKS, which is not supported",
}


def _proxy_error(host: str, answer: str) -> MachineError:
    return MachineError(
        f"the proxy on the way to {host} {_OF_PROXY.get(answer, f'refuses it ({answer})')}",
        remedy="set HTTPS_PROXY to http://NAME:PASSWORD@HOST:PORT, get it allowed, or add it to NO_PROXY",
    )


_CAME = re.compile(
    r"^\W*(?:#\d+ [\d.]+ )?\s*(?:Downloading|Using cached|Successfully|Installing collected) ?"
)
"""What pip prints once the network has answered."""


def failure_cause(lines: Sequence[str], otherwise: str, source: str) -> MachineError:
    """Return why a program failed, by what it printed; `source` is the host where no line names it.

    It is `otherwise`, the program's own word, where no cause was seen since the network answered last.
    """
    if any(map(_FULL.search, lines)):
        return NoSpace("the disk is full", remedy="free some space")
    # The last line with a sign, since earlier ones may have been tried again.
    for line in reversed(lines):
        named = _HOST.search(line)
        if found := network_obstacle(line, next(filter(None, named.groups())) if named else source):
            return found
        if _CAME.search(line):
            break
    return MachineError(otherwise[:200])
