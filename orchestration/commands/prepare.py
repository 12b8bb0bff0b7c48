"""`march prepare`: files of benchmarks to the rows that a training reads.

Exit codes: 0; 2 for what a user can fix; 130 when it was interrupted: a download then goes on where it
stopped, and rows are prepared again.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from orchestration.terminal.messages import error_console, fail, unused_keys, warn_ignored

if TYPE_CHECKING:
    from pipeline.data.prepare import Manifest
    from pipeline.data.sources import RemoteFile, Source
    from pipeline.data.work import Input, PrepareJob

_SMALL_BYTES = 4_000_000
_NOISE = 0.3
_files = partial(typer.Option, rich_help_panel="Where rows come from")
_left_out = partial(typer.Option, rich_help_panel="What is left out")
_drawn = partial(typer.Option, rich_help_panel="What is drawn")


def prepare(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...",
            help="What the inputs are, in their order: bioasq, 2wikimultihopqa, musique, hotpotqa, ragtruth, "
            "tatqa or jsonl.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for rows, manifest and data card.")],
    inputs: Annotated[
        list[Path] | None, _files("--input", help="A file in the official format; one a DATASET.")
    ] = None,
    download: Annotated[bool, _files("--download", help="Fetch what is published.")] = False,
    urls: Annotated[
        list[str] | None, _files("--url", help="Fetch from this address instead; one a DATASET.")
    ] = None,
    downloads: Annotated[Path, _files(help="Folder of fetched files.")] = Path("runs/downloads"),
    accept_licence: Annotated[
        list[str] | None, _files(metavar="DATASET", help="You read its terms and may use it.")
    ] = None,
    prompts: Annotated[str, typer.Option(help="full, compact, or a YAML file like them.")] = "full",
    tokenizer: Annotated[
        str | None, _left_out(help="Folder or name of the policy's tokenizer, or tiny.")
    ] = None,
    max_prompt_tokens: Annotated[
        int | None, _left_out(min=1, help="Leave out longer prompts; needs --tokenizer.")
    ] = None,
    exclude_overlap: Annotated[
        list[Path] | None, _left_out(metavar="FILE", help="Leave out what this evaluation set has, too.")
    ] = None,
    max_shared_documents: Annotated[
        int, _left_out(min=0, help="Documents that a row may share with evaluation sets.")
    ] = 0,
    near_duplicates: Annotated[
        float,
        _left_out(
            min=0,
            max=1,
            help="Least similarity of the same texts; 0: equal rows only, without --exclude-overlap.",
        ),
    ] = 0.8,
    limit: Annotated[int | None, _drawn(min=1, help="First rows of each input only.")] = None,
    sample: Annotated[int | None, _drawn(min=1, help="So many rows of each input, drawn.")] = None,
    noise: Annotated[
        float | None,
        _drawn(min=0, max=0.95, help="Share of irrelevant documents; BioASQ only.", show_default=str(_NOISE)),
    ] = None,
    unanswerable: Annotated[
        float | None,
        _drawn(
            min=0,
            max=1,
            metavar="SHARE",
            help="Share of rows whose supporting documents are taken away, so that no claim is right; "
            "2wikimultihopqa, musique and hotpotqa.",
        ),
    ] = None,
    seed: Annotated[int, _drawn(min=0, help="Of all that is drawn.")] = 0,
) -> None:
    """Turn benchmarks' files into the rows that a training reads.

    Several at once: march prepare 2wikimultihopqa musique --input a.json --input b.jsonl --out DIR
    """
    from pipeline.data.work import Choices, PrepareJob
    from pipeline.settings.recipe import path_of_model

    accepted = tuple(accept_licence or ())
    if not exclude_overlap:
        warn_ignored("without --exclude-overlap", max_shared_documents=max_shared_documents)
    if "bioasq" not in datasets:
        warn_ignored("without bioasq", noise=noise)
    try:
        job = PrepareJob(
            inputs=_inputs(datasets, inputs or [], urls or [], download, downloads, accepted),
            out=out,
            prompts=prompts,
            tokenizer_path=tokenizer and path_of_model(tokenizer),
            max_prompt_tokens=max_prompt_tokens,
            evaluation_sets=tuple(exclude_overlap or ()),
            choices=Choices(
                near_duplicates=near_duplicates or None,
                max_shared_documents=max_shared_documents,
                noise=_NOISE if noise is None else noise,
                unanswerable=unanswerable,
                limit=limit,
                sample=sample,
                seed=seed,
                accepted_licences=accepted,
            ),
        )
        _run(job)
    except KeyboardInterrupt:
        fail("stopped; a download goes on where it is, rows are prepared again by the same command", code=130)


def _inputs(
    datasets: Sequence[str],
    given: Sequence[Path],
    urls: Sequence[str],
    download: bool,
    folder: Path,
    accepted: Sequence[str],
) -> tuple[Input, ...]:
    """Pairs datasets with files, which are fetched if that was asked for."""
    from pipeline.data.sources import SOURCES, require_terms
    from pipeline.data.work import Input

    if unknown := [name for name in datasets if name not in SOURCES]:
        raise ValueError(f"DATASET: {unknown[0]!r} is none that is known; give one of {', '.join(SOURCES)}")
    ways = [bool(given), bool(urls), download]
    if sum(ways) != 1:
        raise ValueError(
            "--input: give files with --input, or addresses with --url, or --download; one of these"
        )
    num = len(given) or len(urls) or len(datasets)
    names = list(datasets) * num if len(datasets) == 1 else list(datasets)
    if len(names) != num:
        raise ValueError(f"--input: {num} for {len(names)} datasets; give one each, in the same order")
    sources = [SOURCES[name] for name in names]
    require_terms(sources, accepted)
    paths = list(given)
    if download:
        paths = [_download(source, source.files, folder / source.name) for source in sources]
    elif urls:
        paths = [_mirrored(source, url, folder) for source, url in zip(sources, urls, strict=True)]
    return tuple(Input(source, path) for source, path in zip(sources, paths, strict=True))


def _mirrored(source: Source, url: str, folder: Path) -> Path:
    """Fetches a source's file from another address, into a folder of that address.

    A file by the name of a published one must be what was published, as far as its digest is known.
    """
    from urllib.parse import urlsplit

    from pipeline.data.sources import RemoteFile

    parts = urlsplit(url)
    name = Path(parts.path).name
    if parts.scheme not in ("http", "https") or not name:
        raise ValueError(f"--url: {url!r} is no address of a file; give one like https://HOST/FILE.json")
    if len(source.files) > 1:
        together = " and ".join(one.name for one in source.files)
        raise ValueError(f"--url: {source.name} is read from {together}; give their folder with --input")
    remote = RemoteFile(url=url, name=name)
    for published in source.files:
        if name == Path(urlsplit(published.url).path).name:
            remote = replace(published, url=url)
    return _download(source, [remote], folder / source.name / hashlib.sha256(url.encode()).hexdigest()[:12])


def _download(source: Source, files: Sequence[RemoteFile], folder: Path) -> Path:
    """Fetches all files of a source; returns the one that is read."""
    from orchestration.terminal.progress import ByteProgress
    from pipeline.data.download import download as fetch

    if not files:
        raise ValueError(f"--download: {source.title} cannot be fetched: {source.by_hand}")
    console = error_console()
    console.print(f"{source.title}, {source.url}, licence: {source.licence}", highlight=False, soft_wrap=True)
    paths = []
    for remote in files:
        with ByteProgress(console, f"fetching {remote.name}") as progress:
            paths.append(fetch(remote, folder, progress.reach))
    return paths[0]


def _run(job: PrepareJob) -> None:
    from orchestration.terminal.progress import ByteProgress
    from pipeline.data.job import run_job
    from pipeline.data.prepare import CARD_FILE

    files = [file for given in job.inputs for file in given.files if file.is_file()]
    num_bytes = sum(file.stat().st_size for file in files)
    # None where the work takes less time than starting them.
    is_small = job.tokenizer_path is None and num_bytes < _SMALL_BYTES
    num_workers = 0 if is_small else len(os.sched_getaffinity(0))
    with ByteProgress(error_console(), "preparing", total=num_bytes) as progress:
        manifest = run_job(replace(job, num_workers=num_workers), progress.add_rows)
    print(_closing_line(manifest, job.out, num_asked=(job.choices.sample or 0) * len(job.inputs)))
    print(f"Data card: {job.out / CARD_FILE}")


def _closing_line(manifest: Manifest, out: Path, *, num_asked: int) -> str:
    left_out = ", ".join(f"{num:,} {reason}" for reason, num in manifest.removed.items() if num)
    line = (
        f"{manifest.num_rows:,} of {manifest.num_read:,} rows in {out / 'train.jsonl'}; "
        f"left out: {left_out or 'nothing'}"
    )
    if manifest.num_read < num_asked:
        line += f"\nonly {manifest.num_read:,} rows could be drawn, of {num_asked:,} that --sample asks for"
    if num := sum(one.num_unanswerable for one in manifest.statistics):
        why = ": what answers was taken away" if manifest.choices.unanswerable else ""
        line += f"\n{num:,} of them are known to be unanswerable{why}"
    if unused := {key for one in manifest.statistics for key in one.unused_keys}:
        line += f"\n{unused_keys(unused)}"
    if manifest.num_overlap_document:
        line += (
            f"\n{manifest.num_overlap_document:,} rows have documents of evaluation sets; the card shows how "
            "many each, and --max-shared-documents lets common ones pass"
        )
    return line
