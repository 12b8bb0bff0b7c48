"""When a job is due, by what its retrainings recorded; the timer for one machine; `march status`."""
