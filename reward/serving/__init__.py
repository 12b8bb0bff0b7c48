"""The audit over HTTP: the reward server, what guards its door, and the client that the trainer uses."""
