"""The offline audit: files of answers in, verdicts, figures and a page out. `march audit` is its command."""
