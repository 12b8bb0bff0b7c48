"""A world of real text: paragraphs of Wikipedia, asked for facts that are known.

The paragraphs are those of 2WikiMultihopQA (https://github.com/Alab-NII/2wikimultihop, Apache-2.0; Ho et al.
2020), which also gives facts about them as triples. `facts.py` finds where a paragraph says such a fact, and
reads more of them off its opening by rules; `rows.py` asks for one or two of them among paragraphs that
resemble theirs. `data/` is a part of the data set with its licence; the official files go the same way.
"""
