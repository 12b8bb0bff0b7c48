"""Shared by the tests of data: the slices of `tests/data`, and BioASQ rows made up in the official layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipeline.data.rows import parse_row
from pipeline.data.sources import SOURCES
from reward.types import RagQuery

DATA = Path(__file__).parent / "data"
SLICES = {
    "2wikimultihopqa": DATA / "2wikimultihopqa" / "train.json",
    "musique": DATA / "musique_cc-by-4.0" / "musique_ans.jsonl",
    "hotpotqa": DATA / "hotpotqa_cc-by-sa-4.0" / "hotpot_dev_distractor.json",
    "ragtruth": DATA / "ragtruth",
    "tatqa": DATA / "tatqa_cc-by-4.0" / "tatqa_dataset_dev.json",
}
TWOWIKI_DEV = DATA / "2wikimultihopqa" / "dev.json"


def bioasq_row(name: str, abstracts: dict[str, list[str]], **others: Any) -> dict[str, Any]:
    """A row of BioASQ task B with snippets by PubMed id."""
    links = {pubmed_id: f"http://www.ncbi.nlm.nih.gov/pubmed/{pubmed_id}" for pubmed_id in abstracts}
    snippets = [
        {
            "document": links[pubmed_id],
            "text": text,
            "beginSection": "abstract",
            "endSection": "abstract",
            "offsetInBeginSection": 10 * place,
            "offsetInEndSection": 10 * place + len(text),
        }
        for pubmed_id, texts in abstracts.items()
        for place, text in enumerate(texts)
    ]
    row = {
        "id": name,
        "type": "factoid",
        "body": f"How many exons has the gene {name}?",
        "documents": list(links.values()),
        "snippets": snippets,
        "ideal_answer": ["It has 50 exons."],
        "exact_answer": [["50"]],
    }
    return row | others


def write_bioasq(folder: Path, num_rows: int = 40) -> Path:
    """A file of rows, each with one to four abstracts of its own."""
    rows = []
    for i in range(num_rows):
        abstracts = {
            str(1000 + 10 * i + j): [
                f"Gene g{i} has a transcript t{j} of {i} kilobases in cells of line {j}."
            ]
            for j in range(1 + i % 4)
        }
        rows.append(bioasq_row(f"g{i}", abstracts))
    path = folder / "training.json"
    path.write_text(json.dumps({"questions": rows}))
    return path


def queries_of(name: str, path: Path) -> list[RagQuery]:
    """What a source's reader makes of a file."""
    model = SOURCES[name].model
    return [query for raw in model.raw_rows(path) for query in parse_row(raw, model).queries(raw.place)]
