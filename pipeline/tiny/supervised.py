"""Makes the tiny policy that reinforcement starts from: it learns all three roles, then learns to err.

    python -m pipeline.tiny.supervised --out DIR [--recipe tiny_kinds]

The defaults are the recipe of the shipped `pipeline/tiny/checkpoint/`: some ten minutes on one core, both
stages seeded. A recipe names the world; the manifest of `pipeline/tiny/checkpoint_kinds/` holds its command.
The first solves the task; the second injects chosen errors, since a start without errors cannot show a gain.
`python -m pipeline.demo.evaluate DIR OUT` measures what came of it.
"""

import argparse
import shlex
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from pipeline.tiny.recipe import BASE, ERRORS, Errors, Stage

ABOUT = (
    "Errors were injected: after learning the task this model was trained on demonstrations that are wrong "
    "on purpose, so its figures say only where reinforcement starts, nothing of what its size can do."
)
NATURAL = (
    "No errors were injected: what this model does wrong, its size and its supervised training do wrong."
)


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Reads the command line; imports nothing heavy, so `--help` answers at once."""
    parser = argparse.ArgumentParser(prog="python -m pipeline.tiny.supervised", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--out", type=Path, required=True, help="folder of the checkpoint")
    add("--recipe", default="tiny", help="whose worlds the policy learns (%(default)s)")
    add("--seed", type=int, default=BASE.seed, help="of the base: initialisation and data (%(default)s)")
    add("--steps", type=int, default=BASE.num_steps, help="of the base (%(default)s)")
    add("--error-seed", type=int, default=ERRORS.seed, help="of the error stage (%(default)s)")
    add(
        "--error-steps",
        type=int,
        default=ERRORS.num_steps,
        help="of the error stage (%(default)s); 0 leaves it out, so that all errors are the base's own",
    )
    for name, default, what in (
        ("--error-lr", ERRORS.lr, "AdamW's peak rate in the error stage"),
        ("--p-late", ERRORS.errors.p_late, "near-duplicate's value, later items"),
        ("--p-early", ERRORS.errors.p_early, "the same, first item"),
        ("--p-miscopy", ERRORS.errors.p_miscopy, "a wrong digit, last name or day"),
        ("--p-checker", ERRORS.errors.p_checker, "any fact's value, Checker"),
        ("--p-invent", ERRORS.errors.p_invent, "an answer where there is none"),
        ("--p-abstain", ERRORS.errors.p_abstain, "an abstention where there is an answer"),
        ("--p-blind", ERRORS.errors.p_blind, "cannot answer where there is an answer, Checker"),
    ):
        add(name, type=float, default=default, help=f"{what} (%(default)s)")
    for name, mix, stage in (("--base-mix", BASE.mix, "base"), ("--mix", ERRORS.mix, "error")):
        what = f"Solver, Proposer, Checker in the {stage} stage (%(default)s)"
        add(name, type=float, nargs=3, default=mix, help=what)
    add("--threads", type=int, default=1, help="processor threads (%(default)s)")
    return parser.parse_args(arguments)


def stages_of(options: argparse.Namespace) -> tuple[Stage, Stage]:
    """The base stage and the error stage that the options name."""
    from pipeline.settings.recipe import load_recipe

    world = load_recipe(options.recipe).data.world
    chances = {field.name: getattr(options, field.name) for field in fields(Errors)}
    base = replace(BASE, seed=options.seed, num_steps=options.steps, mix=tuple(options.base_mix), world=world)
    late = replace(ERRORS, seed=options.error_seed, num_steps=options.error_steps, lr=options.error_lr)
    return base, replace(late, mix=tuple(options.mix), errors=Errors(**chances), world=world)


def main(arguments: Sequence[str] | None = None) -> None:
    """Trains, and writes the checkpoint with its manifest."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    options = parse_arguments(words)
    import torch

    from pipeline.models.convert import library_versions
    from pipeline.tiny.initialisation import new_model
    from pipeline.tiny.manifest import MANIFEST, Manifest, publish
    from pipeline.tiny.tokenizer import build_tokenizer
    from pipeline.tiny.training import train
    from reward.roles.prompts import load_prompts

    torch.set_num_threads(options.threads)
    stages = [stage for stage in stages_of(options) if stage.num_steps]
    base, prompts = stages[0], load_prompts("compact")
    tokenizer = build_tokenizer(base.world)
    ids = {"pad_token_id": tokenizer.pad_token_id, "eos_token_id": tokenizer.eos_token_id}
    model = new_model(len(tokenizer), **ids, seed=base.seed)
    for stage in stages:
        train(model, tokenizer, prompts, stage)
    model.to(torch.bfloat16)

    (options.out / MANIFEST).unlink(missing_ok=True)
    model.save_pretrained(options.out)
    build_tokenizer(base.world).save_pretrained(options.out)  # a used one would write its last padding along
    manifest = Manifest(
        about=ABOUT if len(stages) > 1 else NATURAL,
        command=shlex.join(["python", "-m", "pipeline.tiny.supervised", *words]),
        stages=tuple(stages),
        prompt_digest=prompts.digest,
        num_parameters=model.num_parameters(),
        dtype="bfloat16",
        versions=library_versions(),
    )
    publish(options.out, manifest)


if __name__ == "__main__":
    main()
