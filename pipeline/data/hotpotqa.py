"""HotpotQA: questions over ten Wikipedia paragraphs of which two are needed.

https://hotpotqa.github.io, CC BY-SA 4.0; Yang et al. 2018. In the distractor setting, a JSON list:

    {"_id": "5a8510a25542994c784ddaf0", "answer": "writer", "type": "comparison", "level": "medium",
     "question": "What profession does Stephen Jay Gould and Ann Beattie have in common?",
     "supporting_facts": [["Stephen Jay Gould", 1], ["Ann Beattie", 0]],
     "context": [["Jay Gould House", ["The Jay Gould House was a mansion located at 857 Fifth Avenue ...",
                                      " It was constructed for Jay Gould in the French ..."]], ...]}

Sentences carry their own leading spaces and are joined as they stand.
"""

from __future__ import annotations

from pipeline.data.twowiki import ParagraphsRow


class HotpotRow(ParagraphsRow):
    """A row of HotpotQA."""

    joined_by = ""
