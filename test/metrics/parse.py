"""Reads metrics from standard input with Prometheus's own parser and prints them as JSON."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

families = [
    {
        "name": family.name,
        "type": family.type,
        "help": family.documentation,
        "samples": [{"name": s.name, "labels": s.labels, "value": s.value} for s in family.samples],
    }
    for family in text_string_to_metric_families(sys.stdin.read())
]
# NaN and infinities are no JSON: a sample that has one is a failure here.
print(json.dumps(families, allow_nan=False))
