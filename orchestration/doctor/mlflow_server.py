"""MLflow's server over its HTTP API: there, new enough, and open to us. MLflow itself is not imported."""

from __future__ import annotations

import configparser
import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from packaging.version import InvalidVersion, Version

from orchestration.doctor.http import UnansweredError, get, line_of, place_of
from orchestration.doctor.report import Finding, failed, ok, skipped, warning
from pipeline.artifacts.settings import redact

VARIABLE = "MLFLOW_TRACKING_URI"
_NAME = "MLflow"
_LEAST = Version("3")
_USER, _PASSWORD, _TOKEN = "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_API = "/api/2.0/mlflow"
_ASKED = {
    "experiments": f"{_API}/experiments/search?max_results=1",
    "registered models": f"{_API}/registered-models/search?max_results=1",
}


def check_mlflow(uri: str | None, *, client: str | None, timeout_s: float) -> Iterator[Finding]:
    """Asks for the version, and as who we are for one experiment and one model; writes nothing.

    Args:
        uri: Where runs are tracked.
        client: MLflow's version here; None where it is not installed.
        timeout_s: Of a request.
    """
    if uri is None:
        yield skipped(_NAME, f"{VARIABLE} is not set; runs are tracked in a file beside them")
        return
    if not uri.startswith(("http://", "https://")):
        kind = urlsplit(uri).scheme or "a file"
        yield skipped(_NAME, f"{kind}: no server; MLflow uses {redact(uri)} itself")
        return
    uri, (user, password), token = uri.rstrip("/"), _credentials(), os.environ.get(_TOKEN)
    headers = {"Authorization": f"Bearer {token}"} if token and not user else None
    auth = (user, password or "") if user else None
    try:
        trust = _trust()
        version = get(f"{uri}/version", timeout_s=timeout_s, verify=trust)
        answers = {
            name: get(f"{uri}{path}", timeout_s=timeout_s, headers=headers, auth=auth, verify=trust)
            for name, path in _ASKED.items()
        }
    except UnansweredError as error:
        yield failed(_NAME, str(error), f"start the server, or fix {VARIABLE}")
        return
    yield _version(uri, version, client)
    yield _access(uri, answers, user or ("the bearer of a token" if token else None))


def _version(uri: str, answer: httpx.Response, client: str | None) -> Finding:
    try:
        server = Version(answer.text.strip() if answer.is_success else "")
    except InvalidVersion:
        return failed(_NAME, f"{place_of(uri)} is no MLflow: it tells no version", f"fix {VARIABLE}")
    found = f"{server} at {place_of(uri)}"
    if server < _LEAST:
        return failed(_NAME, f"{found}; it is older than {_LEAST}", "upgrade the server (mlflow db upgrade)")
    if client is None:
        return ok(_NAME, found)
    here = Version(client)
    found += f"; here {here}"
    if server.major != here.major:
        return failed(_NAME, found, "install the same major version on both sides")
    if server < here:
        return warning(_NAME, f"{found}, which is newer", "upgrade the server before its clients")
    return ok(_NAME, found)


def _access(uri: str, answers: Mapping[str, httpx.Response], user: str | None) -> Finding:
    name = "MLflow's door"
    as_whom = f"as {user}" if user else "as nobody"
    for what, answer in answers.items():
        status = answer.status_code
        if status == 401:
            fix = f"fix {_USER} and {_PASSWORD}, or {_TOKEN}"
            return failed(name, f"closed {as_whom}: {what} are not shown", fix)
        if status == 403:
            fix = "give the user rights, or name this host in the server's --allowed-hosts"
            return failed(name, f"{what} are refused {as_whom}: {line_of(answer)}", fix)
        if not answer.is_success:
            fix = "see the server's log; its database may be away or of another version"
            return failed(name, f"{what}: HTTP {status}, {line_of(answer)}", fix)
    if user is None and urlsplit(uri).hostname not in _LOOPBACK:
        fix = f"start it with --app-name basic-auth and set {_USER} and {_PASSWORD} (promotions need them)"
        return warning(name, "open to everyone who has its address", fix)
    return ok(name, f"opens {as_whom}; experiments and models are shown")


def _credentials() -> tuple[str | None, str | None]:
    """User and password as MLflow finds them: the environment, else ~/.mlflow/credentials."""
    file = configparser.ConfigParser()
    file.read(Path.home() / ".mlflow" / "credentials")
    kept = file["mlflow"] if file.has_section("mlflow") else {}
    user, password = (os.environ.get(name) or kept.get(name.lower()) for name in (_USER, _PASSWORD))
    return user, password


def _trust() -> ssl.SSLContext | bool:
    """As MLflow trusts servers."""
    if os.environ.get("MLFLOW_TRACKING_INSECURE_TLS", "").lower() in ("true", "1"):
        return False
    authority = os.environ.get("MLFLOW_TRACKING_SERVER_CERT_PATH") or os.environ.get("REQUESTS_CA_BUNDLE")
    return ssl.create_default_context(cafile=authority) if authority else True
