"""Options of the command line and keys of a job as typed settings; files that a settings file names."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, ValidationInfo

BESIDE = "beside"  # in pydantic's context: the folder of the settings' file, while it is read


def beside(path: Path, info: ValidationInfo) -> Path:
    """The path, seen from the settings' own folder, if they are read from a file."""
    folder = (info.context or {}).get(BESIDE)
    return path if folder is None else (Path(folder) / path.expanduser()).resolve()


InputPath = Annotated[Path, AfterValidator(beside)]
