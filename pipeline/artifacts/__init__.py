"""Files by content: objects named by their SHA-256, manifests that name them, pointers to manifests.

One layout in an S3 bucket and in a local folder:

    objects/sha256/ab/abcd...      a file
    models/abcd.../                a model, as MLflow's clients read it: MLmodel, model/, components/, a card
    manifests/sha256/ab/abcd...    what belongs together; written last, and only if absent
    pointers/NAME                  the digest of one manifest; moved by compare-and-set

A reader trusts manifests alone. `docs/artifacts.md` says what each kind of endpoint guarantees.
"""
