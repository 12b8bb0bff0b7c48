"""Rows of benchmarks that models are evaluated on and never trained on.

FaithBench, https://github.com/vectara/FaithBench, CC BY-NC-SA 4.0 (no commercial use); Bao et al. 2024 (arXiv
2410.13210). The release's `batch_*.json` (rows made up here, as below):

    {"samples": [{"sample_id": 0, "source": "The mill opened in 1902.", "summary": "A mill opened in 1920.",
      "annotations": [{"annot_id": 1, "annotator_id": "a3ac", "label": ["Unwanted", "Unwanted.Intrinsic"],
        "note": "1902, not 1920", "summary_span": "1920", "source_span": "1902", ...}], "metadata": {...}}]}

ContextualJudgeBench, https://huggingface.co/datasets/Salesforce/ContextualJudgeBench, CC BY 4.0; Xu et al.
2025 (arXiv 2503.15620). 2,000 pairs in eight splits, `data/faithfulness_qa-00000-of-00001.parquet`:

    {"question_id": "q7", "question": "When did the mill open?", "context": "The mill opened in 1902.",
     "positive_response": "In 1902.", "negative_response": "In 1920."}

FACTS Grounding, https://huggingface.co/datasets/google/FACTS-grounding-public, CC BY 4.0; Jacovi et al. 2025
(arXiv 2501.03200). 860 public rows in `examples.csv`:

    system_instruction,user_request,context_document,full_prompt
    Answer from the document only.,When did the mill open?,The mill opened in 1902.,"Answer from ..."
"""

from string import ascii_uppercase
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from pipeline.data.rows import SourceRow
from reward.offline.rows import InputRecord, RowId, make_query
from reward.types import Document, RagQuery

_LABELS = ("Benign", "Questionable", "Unwanted")


def _known(label: str) -> str:
    kind = label.partition(".")[0]  # "Unwanted.Intrinsic" is Unwanted
    if kind not in _LABELS:
        raise ValueError(f"{label!r} is no label of FaithBench; use the published file")
    return kind


class Annotation(InputRecord):
    """What one person marked in a summary."""

    annotator_id: RowId
    label: tuple[Annotated[str, AfterValidator(_known)], ...]
    note: str | None = None
    summary_span: str | None = None
    source_span: str | None = None

    @property
    def text(self) -> str:
        """With the one label that FaithJudge shows of several: Unwanted before Benign before the first."""
        first = self.label[0] if self.label else "-"
        label = next((label for label in ("Unwanted", "Benign") if label in self.label), first)
        text = f'{label}: "{self.summary_span or ""}"'
        text += f' (source: "{self.source_span}")' if self.source_span else ""
        return text + (f" - {self.note}" if self.note else "")


class FaithBenchRow(SourceRow):
    """A summary of an article, by one of ten models; it asks no question."""

    list_key: ClassVar[str | None] = "samples"

    sample_id: RowId
    source: str
    summary: str
    annotations: tuple[Annotation, ...] = ()

    @property
    def is_benign(self) -> bool:
        """Whether what was marked is no fault (FaithJudge's `scripts/binarize.py`)."""
        return all(set(one.label) <= {"Benign"} for one in self.annotations)

    @property
    def notes(self) -> list[str]:
        """What people found, annotator by annotator; nothing without a label."""
        names = list(dict.fromkeys(one.annotator_id for one in self.annotations))
        places = sorted((names.index(one.annotator_id), i) for i, one in enumerate(self.annotations))
        found = [f"Annotator {ascii_uppercase[who % 26]}: {self.annotations[i].text}" for who, i in places]
        return found if any(one.label for one in self.annotations) else []

    def queries(self, place: str) -> tuple[RagQuery, ...]:
        return _one(place, self.sample_id, "", self.source)


class PairRow(SourceRow):
    """Two responses of ContextualJudgeBench, of which the positive one is better by the context."""

    question_id: RowId
    question: str
    context: str = Field(min_length=1)
    positive_response: str
    negative_response: str

    def queries(self, place: str) -> tuple[RagQuery, ...]:
        return _one(place, self.question_id, self.question, self.context)


class FactsRow(SourceRow):
    """A request of FACTS Grounding about one long document."""

    system_instruction: str
    user_request: Annotated[str, Field(pattern=r"\S")]
    context_document: Annotated[str, Field(pattern=r"\S")]

    def queries(self, place: str) -> tuple[RagQuery, ...]:
        """The request, of the document; the file gives it no id."""
        return _one(place, place.rpartition("/")[2], self.user_request, self.context_document)


def _one(place: str, name: str, question: str, text: str) -> tuple[RagQuery, ...]:
    return (make_query(place, name, question, [Document(id=name, text=text)]),)
