"""Reads metrics from standard input with Prometheus's own parser and prints them as JSON."""

import json
import math
import sys

from prometheus_client.parser import text_string_to_metric_families


def finite(value):
    """NaN and infinities are no JSON."""
    return value if math.isfinite(value) else None


families = [
    {
        "name": family.name,
        "type": family.type,
        "help": family.documentation,
        "samples": [{"name": s.name, "labels": s.labels, "value": finite(s.value)} for s in family.samples],
    }
    for family in text_string_to_metric_families(sys.stdin.read())
]
print(json.dumps(families, allow_nan=False))
