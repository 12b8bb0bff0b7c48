"""Where things are in a store: keys, and the digests and names that may stand in them."""

import re

OBJECTS, MANIFESTS, POINTERS = "objects/", "manifests/", "pointers/"
MODELS, WEIGHTS = "models/", "model"  # and the folder in a model of what its manifest names
UPLOADS = "uploads/"  # begun and not finished
LINKS = "mlflow"  # in a store that is a folder: to models, for MLflow's server
_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}(/[A-Za-z0-9][A-Za-z0-9._-]{0,127}){0,3}")


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def object_key(digest: str) -> str:
    return _by_digest(OBJECTS, digest)


def manifest_key(digest: str) -> str:
    return _by_digest(MANIFESTS, digest)


def model_key(digest: str, path: str) -> str:
    """Where a file of a model is, by the manifest's digest and the path that MLflow has."""
    return f"{MODELS}{digest}/{path}"


def pointer_key(name: str) -> str:
    """Where a pointer is; ValueError for what cannot name one."""
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"pointer: {name!r} is no name; use letters, digits, '.', '_', '-' and '/'")
    return POINTERS + name


def digest_of(key: str) -> str:
    """The digest that an object's, a manifest's or a model file's key has."""
    if key.startswith(MODELS):
        return key.removeprefix(MODELS).partition("/")[0]
    return key.rpartition("/")[2]


def _by_digest(folder: str, digest: str) -> str:
    if not is_digest(digest):
        raise ValueError(f"digest: {digest!r} is no SHA-256 in hexadecimal; give its 64 digits")
    return f"{folder}sha256/{digest[:2]}/{digest}"
