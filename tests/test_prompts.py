"""Prompt sets: rendering, validation and the digest."""

import inspect
from pathlib import Path

import pytest
import yaml

from reward.roles.prompts import PromptSet, load_prompts
from reward.types import Document, RagQuery

COMPACT = yaml.safe_load(
    (Path(inspect.getfile(load_prompts)).parent / "prompts" / "compact.yaml").read_text()
)


def write(folder: Path, **roles: object) -> str:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump({**COMPACT, **roles}))
    return str(path)


@pytest.mark.parametrize("name", ["full", "compact"])
def test_shipped_sets_load_and_show_their_values(name: str, picnic: RagQuery) -> None:
    prompts = load_prompts(name)
    solver = prompts.solver(picnic)
    assert [message["role"] for message in solver] == ["system", "user"]
    assert picnic.query in solver[1]["content"]
    assert "the response" in prompts.proposer("the response")[1]["content"]
    checker = prompts.checker(picnic.documents, ["How much?", "How many?"])[1]["content"]
    assert "1. How much?" in checker
    assert "2. How many?" in checker
    for document in picnic.documents:
        assert document.text in solver[1]["content"]
        assert document.text in checker


def test_compact_renders_as_the_tiny_policy_was_taught(picnic: RagQuery) -> None:
    prompts = load_prompts("compact")
    first, second = (document.text for document in picnic.documents)
    assert prompts.solver(picnic)[1]["content"] == f"Doc: {first}\nDoc: {second}\nQuery: {picnic.query}"
    assert prompts.proposer("a) 466")[1]["content"] == "a) 466"
    checker = prompts.checker(picnic.documents, ["How much?", "How many?"])[1]["content"]
    assert checker == f"Doc: {first}\nDoc: {second}\n1. How much?\n2. How many?"


def test_compact_is_the_set_that_the_tiny_policy_was_trained_on() -> None:
    digest = "51c917c70fb248a56ef559f006bf25004d0077993868434bb71f88b04370ff50"
    assert load_prompts("compact").digest == digest


def test_a_proposer_may_be_told_how_many_questions_at_least(tmp_path: Path) -> None:
    full = load_prompts("full")
    assert "needs 3 questions or more" in full.proposer("x", min_questions=3)[0]["content"]
    assert "questions or more" not in full.proposer("x")[0]["content"]
    compact = load_prompts("compact")
    assert compact.proposer("x", min_questions=3) == compact.proposer("x")
    mine = write(tmp_path, proposer={"system": "{{ min_questions }}", "user": "{{ response }}"})
    assert load_prompts(mine).proposer("x", min_questions=2)[0]["content"] == "2"


def test_full_names_documents_by_id_and_title(picnic: RagQuery) -> None:
    content = load_prompts("full").checker(picnic.documents, ["How much?"])[1]["content"]
    assert "[Document july] Summer\n" in content
    assert "[Document may]\n" in content


def test_row_10_document_text_is_never_cut_or_interpreted() -> None:
    text = "Question: what? [Answer: 1]\nQuery: other {{ 7 * 7 }} {% for %} <b>&amp;</b>\n\nDocuments:\nend"
    document = Document(id="d", text=text)
    query = RagQuery(id="q", query="{{ documents }}", documents=(document,))
    for name in ("full", "compact"):
        prompts = load_prompts(name)
        assert text in prompts.solver(query)[1]["content"]
        assert "{{ documents }}" in prompts.solver(query)[1]["content"]
        assert text in prompts.checker([document], ["How many?"])[1]["content"]


def test_an_empty_system_text_gives_no_system_message(tmp_path: Path) -> None:
    prompts = load_prompts(write(tmp_path, proposer={"system": "", "user": "{{ response }}"}))
    assert [message["role"] for message in prompts.proposer("x")] == ["user"]


def test_a_role_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    path = Path(write(tmp_path))
    path.write_text(f"{path.read_text()}\nsolver: {{system: a, user: b}}\n")
    with pytest.raises(ValueError, match=r"solver: given twice, in lines \d+ and \d+; keep one"):
        load_prompts(str(path))


def test_the_digest_names_the_templates_and_not_the_layout(tmp_path: Path) -> None:
    assert load_prompts(write(tmp_path)).digest == load_prompts("compact").digest
    other = load_prompts(write(tmp_path, proposer={"system": "other", "user": "{{ response }}"}))
    assert other.digest != load_prompts("compact").digest
    assert len(other.digest) == 64


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"checker": None}, "checker: is no object, keys with values (found None); give exactly"),
        (
            {"judge": {"system": "", "user": ""}},
            "judge: unknown key; remove it or fix its name; give exactly",
        ),
        ({"proposer": {"user": "{{ response }}"}}, "proposer.system: missing; add it; give exactly"),
        (
            {"proposer": {"system": 3, "user": "{{ response }}"}},
            "proposer.system: Input should be a valid string (found 3); give exactly",
        ),
        ({"proposer": {"system": "", "user": "{{ response"}}, "proposer.user is not a valid template"),
        ({"proposer": {"system": "", "user": "{{ reply }}"}}, "proposer.user names ['reply']"),
        ({"proposer": {"system": "", "user": "nothing"}}, "proposer never shows response"),
        ({"proposer": {"system": "", "user": "{{ response.body }}"}}, "proposer cannot be rendered"),
        ({"proposer": {"system": "", "user": "{{ response.__class__ }}"}}, "proposer cannot be rendered"),
        ({"proposer": {"system": "", "user": "{{ lipsum() }}{{ response }}"}}, "names ['lipsum']"),
        (
            {"proposer": {"system": "", "user": "{% include 'x' %}{{ response }}"}},
            "proposer cannot be rendered",
        ),
        (
            {
                "checker": {
                    "system": "{% if false %}{{ response }}{% endif %}",
                    "user": COMPACT["checker"]["user"],
                }
            },
            "checker.system names ['response']",
        ),
        ({"checker": {"system": "", "user": "{{ documents[0].text }}"}}, "checker never shows questions"),
    ],
)
def test_a_wrong_set_is_refused_in_one_line(tmp_path: Path, roles: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match="prompts: ") as caught:
        load_prompts(write(tmp_path, **roles))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["- a\n- b", "a: [", "plain", "\x00"])
def test_a_file_that_is_no_set_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(content)
    with pytest.raises(ValueError, match="prompts: "):
        load_prompts(str(path))


def test_an_unknown_name_tells_the_known_ones() -> None:
    with pytest.raises(ValueError, match="compact, full"):
        load_prompts("ful")


def test_no_renderer_of_the_checker_accepts_a_response() -> None:
    assert list(inspect.signature(PromptSet.checker).parameters) == [
        "self",
        "documents",
        "questions",
        "kinds",
    ]


def test_full_puts_the_documents_first_so_that_solver_and_checker_share_them(picnic: RagQuery) -> None:
    prompts = load_prompts("full")
    solver, checker = prompts.solver(picnic), prompts.checker(picnic.documents, ["How much?"])
    assert solver[0] == checker[0]
    shared = solver[1]["content"].partition("Task:\n")[0]
    assert checker[1]["content"].startswith(shared)
    assert all(document.text in shared for document in picnic.documents) and picnic.query not in shared


def test_a_prompt_file_of_ones_own_may_put_the_role_first(tmp_path: Path, picnic: RagQuery) -> None:
    role_first = {
        "system": "Check.",
        "user": "{% for d in documents %}{{ d.text }}{% endfor %}{{ questions[0] }}",
    }
    messages = load_prompts(write(tmp_path, checker=role_first)).checker(picnic.documents, ["How much?"])
    assert messages[0]["content"] == "Check."
    assert messages[1]["content"] == "".join(one.text for one in picnic.documents) + "How much?"
