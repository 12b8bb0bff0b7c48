"""One file a benchmark: its rows, its prompts, how it is judged and scored, and whose scorer that equals."""
