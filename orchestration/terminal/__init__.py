"""What every command says the same way: messages, errors in one line, progress."""
