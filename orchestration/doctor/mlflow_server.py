"""MLflow's server over its HTTP API: there, new enough, and open to us. MLflow itself is not imported."""

from __future__ import annotations

import configparser
import os
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from packaging.version import InvalidVersion, Version

from orchestration.doctor.asking import Answer, UnansweredError, ask, place_of
from orchestration.doctor.ports import LOOPBACK
from orchestration.doctor.records import Finding, failed, ok, skipped, warning
from pipeline.artifacts.settings import redact

VARIABLE = "MLFLOW_TRACKING_URI"
_NAME = "MLflow"
_LEAST = Version("3")
_USER, _PASSWORD, _TOKEN = "MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_TOKEN"
_API = "/api/2.0/mlflow"
_ASKED = {
    "experiments": f"{_API}/experiments/search?max_results=1",
    "registered models": f"{_API}/registered-models/search?max_results=1",
}


@dataclass(frozen=True)
class MlflowFacts:
    """What the server said."""

    uri: str
    version: str | None = None
    answers: Mapping[str, Answer] | None = None  # by what was asked for
    problem: str | None = None  # it could not be asked
    user: str | None = None  # as whom we asked


def gather_mlflow(uri: str, *, timeout_s: float) -> MlflowFacts:
    """Asks for the version, and as who we are for one experiment and one model; writes nothing."""
    user, password = _credentials()
    token = os.environ.get(_TOKEN)
    headers = {"Authorization": f"Bearer {token}"} if token and not user else None
    auth = (user, password or "") if user else None
    who, trust = user or ("the bearer of a token" if token else None), _trust()
    try:
        version = ask(f"{uri}/version", timeout_s=timeout_s, verify=trust)
        answers = {
            name: ask(f"{uri}{path}", timeout_s=timeout_s, headers=headers, auth=auth, verify=trust)
            for name, path in _ASKED.items()
        }
    except UnansweredError as error:
        return MlflowFacts(uri, problem=str(error), user=who)
    said = version.text.strip() if version.is_good else None
    return MlflowFacts(uri, version=said, answers=answers, user=who)


def check_mlflow(facts: MlflowFacts, *, client: str | None) -> Iterator[Finding]:
    """Judges what it said.

    Args:
        facts: Its answers.
        client: MLflow's version here; None where it is not installed.
    """
    if facts.problem:
        yield failed(_NAME, facts.problem, f"start the server, or fix {VARIABLE}")
        return
    yield _version(facts, client)
    yield _door(facts)


def check_no_server(uri: str | None) -> Finding:
    """Where runs are tracked without a server."""
    if uri is None:
        return skipped(_NAME, f"{VARIABLE} is not set; runs are tracked in a file beside them")
    return skipped(_NAME, f"{urlsplit(uri).scheme or 'a file'}: no server; MLflow uses {redact(uri)} itself")


def is_server(uri: str | None) -> bool:
    """Whether the address is one of a server."""
    return uri is not None and uri.startswith(("http://", "https://"))


def _version(facts: MlflowFacts, client: str | None) -> Finding:
    place = place_of(facts.uri)
    try:
        server = Version(facts.version or "")
    except InvalidVersion:
        return failed(_NAME, f"{place} is no MLflow: it tells no version", f"fix {VARIABLE}")
    found = f"{server} at {place}"
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


def _door(facts: MlflowFacts) -> Finding:
    name = "MLflow's door"
    answers = facts.answers or {}
    as_whom = f"as {facts.user}" if facts.user else "as nobody"
    for what, answer in answers.items():
        if answer.status == 401:
            fix = f"fix {_USER} and {_PASSWORD}, or {_TOKEN}"
            return failed(name, f"closed {as_whom}: {what} are not shown", fix)
        if answer.status == 403:
            fix = "give the user rights, or name this host in the server's --allowed-hosts"
            return failed(name, f"{what} are refused {as_whom}: {answer.line}", fix)
        if not answer.is_good:
            fix = "see the server's log; its database may be away or of another version"
            return failed(name, f"{what}: HTTP {answer.status}, {answer.line}", fix)
    host = urlsplit(facts.uri).hostname
    if facts.user is None and host not in (LOOPBACK, "localhost", "::1"):
        fix = f"start it with --app-name basic-auth and set {_USER} and {_PASSWORD} (promotions need them)"
        return warning(name, "open to everyone who has its address", fix)
    return ok(name, f"opens {as_whom}; experiments and models are shown")


def _credentials() -> tuple[str | None, str | None]:
    """As MLflow finds them: the environment, else ~/.mlflow/credentials."""
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
