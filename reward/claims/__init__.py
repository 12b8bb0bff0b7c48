"""Kinds of claims: what in a text can be checked, and the few functions that the audit needs of each kind."""
