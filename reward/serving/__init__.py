"""The audit over HTTP: the reward server and its client.

One reward, from the request to the signed answer:

    middleware.py       token, limits, trace; errors become answers; the answer is signed
    routes.py     JSON to records (wire.py), and back; readiness and version
    service.py    one audit: joined, admitted (admission.py), within a deadline, tried again
    reward.auditor.audit    Proposer, Checker, vote
    errors.py     every failure: its status, and whether a retry helps

Around it: server.py (the process and its end), connections.py (sockets, TLS), tokens.py, signing.py,
metrics.py, logs.py, config.py (all settings). client.py asks it.
"""
