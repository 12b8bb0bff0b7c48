"""When a job is retrained: by the clock, by new data, by drift; and the service that starts it."""
