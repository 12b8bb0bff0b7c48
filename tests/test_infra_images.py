"""The Dockerfile and the scripts of the images: linted, pinned, and the same promises for each image.

What the images do is shown by `test_infra_image_build.py`, which builds them without a container engine.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "infra" / "images"
TARGETS = ("audit", "orchestrator", "train-cpu", "train-gpu")
DOCKERFILE = (ROOT / "Dockerfile").read_text()
TOOLS = Path(sys.executable).parent


def instructions() -> list[str]:
    """The Dockerfile's instructions, each on one line and without comments."""
    uncommented = re.sub(r"^\s*#.*\n", "", DOCKERFILE, flags=re.MULTILINE)
    return [line for line in uncommented.replace("\\\n", " ").splitlines() if line.strip()]


def stages() -> dict[str, list[str]]:
    """The instructions of each stage, those of the stages it is built on included."""
    found: dict[str, list[str]] = {}
    name = ""
    for instruction in instructions():
        if start := re.fullmatch(r"FROM (\S+) AS (\S+)", instruction):
            name = start[2]
            found[name] = [*found.get(start[1], []), instruction]
        elif name:
            found[name].append(instruction)
    return found


def last(stage: str, instruction: str) -> str:
    """What an image has of an instruction of which the last one counts."""
    return [line for line in stages()[stage] if line.startswith(f"{instruction} ")][-1].split(maxsplit=1)[1]


def lint(program: str, *arguments: str) -> None:
    done = subprocess.run(
        [TOOLS / program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_hadolint_finds_nothing() -> None:
    lint("hadolint", "--config", "infra/images/hadolint.yaml", "Dockerfile")


@pytest.mark.parametrize("script", sorted(IMAGES.parent.rglob("*.sh")), ids=lambda script: script.name)
def test_shellcheck_finds_nothing(script: Path) -> None:
    lint("shellcheck", str(script))


def test_every_base_has_a_tag_and_a_digest() -> None:
    bases = [line for line in instructions() if line.startswith("FROM ") and "$" in line]
    named = {name for line in bases for name in re.findall(r"\$\{(\w+)\}", line)}
    assert named == {"PYTHON_IMAGE", "CUDA_IMAGE", "CUDA_BUILD_IMAGE"}
    for name in named:
        assert re.search(
            rf"^ARG {name}=docker\.io/\S+:[\w.-]+@sha256:[0-9a-f]{{64}}$", DOCKERFILE, re.MULTILINE
        )
    ours = [line.split()[1] for line in instructions() if line.startswith("FROM ") and "$" not in line]
    assert set(ours) <= set(stages())


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_promises_what_the_manifests_rely_on(target: str) -> None:
    assert last(target, "USER") == "10001:10001"
    assert last(target, "WORKDIR") == last(target, "VOLUME") == "/var/lib/march"
    assert last(target, "ENTRYPOINT") == '["march-entrypoint"]'
    assert f'org.opencontainers.image.title="march-{target}"' in last(target, "LABEL")
    assert 'image.version="$MARCH_VERSION"' in last(target, "LABEL")
    assert 'image.revision="$MARCH_COMMIT"' in last(target, "LABEL")
    assert "HOME=/var/lib/march" in " ".join(stages()[target])
    assert any(line.endswith("/opt/inventory /usr/share/doc/march") for line in stages()[target])


@pytest.mark.parametrize("target", ["audit", "orchestrator"])
def test_a_service_has_a_health_check(target: str) -> None:
    assert "MARCH_HEALTH_URL" in last(target, "HEALTHCHECK")


def test_only_the_gpu_image_keeps_a_compiler() -> None:
    """And with it the package lists are gone, and no secret is an argument."""
    with_compiler = {target for target in TARGETS if any("g++" in line for line in stages()[target])}
    assert with_compiler == {"train-gpu"}
    for instruction in instructions():
        if "apt-get install" in instruction:
            assert "--no-install-recommends" in instruction and "rm -rf /var/lib/apt/lists/*" in instruction
        assert not re.match(r"(ARG|ENV) \w*(TOKEN|SECRET|PASSWORD|KEY)", instruction)


def test_what_is_copied_is_let_through_and_is_there() -> None:
    let_through = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"]
    for instruction in instructions():
        words = [word for word in instruction.split()[1:] if not word.startswith("--")]
        if not instruction.startswith("COPY ") or "--from=" in instruction:
            continue
        for source in words[:-1]:
            assert (ROOT / source).exists()
            assert any(source == path or source.startswith(f"{path}/") for path in let_through), source
    assert all((ROOT / path).exists() for path in let_through)


def test_the_builders_uv_is_the_makefiles() -> None:
    in_makefile = re.search(r"^UV_VERSION := (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert (
        in_makefile and f"uv=={in_makefile[1]}" in (ROOT / "requirements" / "image.txt").read_text().split()
    )


def test_flash_attention_is_the_extras() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert f" {extras['flash-attn'][0]};" in DOCKERFILE


def test_pinning_writes_the_registrys_digests(tmp_path: Path) -> None:
    registry, new = tmp_path / "docker", f"sha256:{'0' * 64}"
    registry.write_text(
        f"#!/bin/sh\ncase $4 in *python*) echo {new} ;; *base*) echo $CUDA ;; *) exit 1 ;; esac\n"
    )
    registry.chmod(0o755)
    dockerfile = tmp_path / "Dockerfile"
    [cuda] = re.findall(r"^ARG CUDA_IMAGE=(.*)@(.*)$", DOCKERFILE, re.MULTILINE)
    [python] = re.findall(r"^ARG PYTHON_IMAGE=(.*)@(.*)$", DOCKERFILE, re.MULTILINE)
    dockerfile.write_text(
        "".join(f"ARG {n}_IMAGE={i}@{d}\n" for n, (i, d) in zip("AB", (python, cuda), strict=True))
    )
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "CUDA": cuda[1]}
    done = subprocess.run(
        [IMAGES / "pin.sh", dockerfile], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"{python[0]}: {python[1]} -> {new}\n{cuda[0]}: as pinned\n"
    assert dockerfile.read_text() == f"ARG A_IMAGE={python[0]}@{new}\nARG B_IMAGE={cuda[0]}@{cuda[1]}\n"
