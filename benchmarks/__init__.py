"""Our speed beside the peers' and the machine's limit; run with `python -m benchmarks`."""
