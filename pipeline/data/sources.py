"""The benchmarks that `march prepare` reads: what each is, its licence, and where its files are published.

Addresses and digests are of the published files. Where a project publishes on GitHub, the file of a commit
has a digest that git itself knows; other projects publish none, and then the digest of the first download is
kept beside it and held against later ones.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pipeline.data.bioasq import BioasqRow
from pipeline.data.musique import MusiqueRow
from pipeline.data.plain import PlainRow
from pipeline.data.ragtruth import RagTruthRow
from pipeline.data.rows import SourceRow
from pipeline.data.tatqa import TatRow
from pipeline.data.twowiki import HotpotRow, TwoWikiRow


@dataclass(frozen=True)
class RemoteFile:
    url: str
    name: str  # on this machine
    git_blob: str | None = None  # SHA-1 by which git knows the content
    member: str | None = None  # the file inside, where it is an archive


@dataclass(frozen=True)
class Source:
    name: str
    title: str
    url: str
    licence: str
    model: type[SourceRow]
    files: tuple[RemoteFile, ...] = ()  # the train split; the first is what is read
    by_hand: str = ""  # how to get the files where they cannot be downloaded
    terms: str = ""  # what must be accepted before use


def require_terms(sources: Iterable[Source], accepted: Collection[str]) -> None:
    """Raises `ValueError` when the terms of a source must be accepted and are not."""
    for source in sources:
        if source.terms and source.name not in accepted:
            raise ValueError(
                f"{source.name}: {source.terms} ({source.url}: {source.licence}); "
                f"read its terms, and if they allow your use add --accept-licence {source.name}"
            )


def _on_github(path: str, git_blob: str) -> RemoteFile:
    return RemoteFile(f"https://raw.githubusercontent.com/{path}", path.rpartition("/")[2], git_blob)


_RAGTRUTH = "ParticleMedia/RAGTruth/c103204b9ce28d6bbad859304bf30de72b8ed8fe/dataset"
_TATQA = "NExTplusplus/TAT-QA/870accc41953dcde885aabeb963d94aabdc0fbc3/dataset_raw"

SOURCES = {
    source.name: source
    for source in (
        Source(
            name="bioasq",
            title="BioASQ task B",
            url="http://participants-area.bioasq.org/datasets",
            licence="CC BY 2.5 by its paper, NLM terms by other copies; to be confirmed",
            model=BioasqRow,
            by_hand="register at its page, accept its terms, fetch the training set and give --input",
            terms="it is given out after registration, and copies state its licence differently",
        ),
        Source(
            name="2wikimultihopqa",
            title="2WikiMultihopQA",
            url="https://github.com/Alab-NII/2wikimultihop",
            licence="Apache-2.0",
            model=TwoWikiRow,
            files=(
                RemoteFile(
                    url="https://www.dropbox.com/s/ms2m13252h6xubs/data_ids_april7.zip?dl=1",
                    name="2wikimultihopqa_train.json",
                    member="train.json",
                ),
            ),
        ),
        Source(
            name="musique",
            title="MuSiQue",
            url="https://github.com/StonyBrookNLP/musique",
            licence="CC-BY-4.0",
            model=MusiqueRow,
            by_hand="run its repository's download_data.sh (Google Drive), and give --input",
        ),
        Source(
            name="hotpotqa",
            title="HotpotQA",
            url="https://hotpotqa.github.io",
            licence="CC-BY-SA-4.0",
            model=HotpotRow,
            files=(
                RemoteFile(
                    url="http://curtis.ml.cmu.edu/datasets/hotpot/hotpot_train_v1.1.json",
                    name="hotpot_train_v1.1.json",
                ),
            ),
        ),
        Source(
            name="ragtruth",
            title="RAGTruth",
            url="https://github.com/ParticleMedia/RAGTruth",
            licence="MIT",
            model=RagTruthRow,
            files=(
                _on_github(f"{_RAGTRUTH}/source_info.jsonl", "119277774009f110aa58596b93f9512f62594a89"),
                _on_github(f"{_RAGTRUTH}/response.jsonl", "f9ae5913fb9976684f3e13be3cd3465062db54cc"),
            ),
        ),
        Source(
            name="tatqa",
            title="TAT-QA",
            url="https://nextplusplus.github.io/TAT-QA",
            licence="CC-BY-4.0",
            model=TatRow,
            files=(
                _on_github(f"{_TATQA}/tatqa_dataset_train.json", "ec6a61be61ea7bb92c3278877e46e8488cc5203c"),
            ),
        ),
        Source(
            name="jsonl",
            title="Plain JSONL",
            url="",
            licence="that of your data",
            model=PlainRow,
            by_hand="it is your own file; give --input",
        ),
    )
}
