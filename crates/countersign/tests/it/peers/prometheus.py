"""Reads metrics on stdin as Prometheus's own client does; writes one JSON document a line."""

import json
import sys

from prometheus_client.parser import text_string_to_metric_families

for family in text_string_to_metric_families(sys.stdin.read()):
    samples = [
        {"name": sample.name, "labels": sample.labels, "value": sample.value}
        for sample in family.samples
    ]
    about = {"name": family.name, "type": family.type, "help": family.documentation}
    print(json.dumps(about | {"samples": samples}))
