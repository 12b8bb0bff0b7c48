"""What made a model: data, recipe, code, prompts, judge, parent, machine, figures; in one record."""
