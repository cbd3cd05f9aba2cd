"""Measure gated and ungated cycles through the real five services, beside a raw floor of the same durable hops.

A gated cycle is a turn whose one call adds a note: it is asked for, waits for a person, and is approved and finished in
freshly started processes. An ungated cycle reads a customer, which policy allows at once. Both are run 1 and 32 at a
time, in four rounds, in each of which first the floor runs (bench/floor/hops.py: bare aio-pika and asyncpg, the same
hops, commits, rows and sizes; no framework, no schemas, no spans, no reads, no HTTP of its own) and then Placet, with
its spans exported. PostgreSQL, RabbitMQ and Redis are started for this alone, and sync to the disk.

What is reported:
  CPU per cycle   user and system time of every process of the five services, PostgreSQL, RabbitMQ and Redis, with all
                  their children; what they use when idle (measured for 5 s, while both contenders stand still) is
                  subtracted for the time that the cycles took. A process that wakes up from idleness runs with cold caches,
                  so that takes away too much, most where the floor, whose processes do nothing when idle, loses nothing;
                  "(and idle)" takes away nothing, which is too little: the truth lies between. The provider stands apart,
                  and the driver (this process) is not counted, although it takes a share of the machine: trust CPU and
                  ratios more than cycles per second.
  latency         from the decision over HTTP to the news of the final answer at a frontend's queue
  bytes           growth of tables and indexes per waiting approval, after VACUUM
  memory          resident, before and after many approvals wait, and in fresh processes while they wait

32 cycles of each kind warm up and are not counted. The machine should do nothing else meanwhile.
"""

import argparse
import sys
from pathlib import Path

import uvloop

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.machine import machine
from bench.report import as_json, as_text
from bench.trial import ROUNDS, run_trials


def main() -> None:
    """Run both, print the report."""
    options = parse_options()
    cycles = {1: max(ROUNDS, options.cycles // 5), 32: max(ROUNDS, options.cycles)}
    with machine() as ready:
        about, floor, ours = uvloop.run(run_trials(ready, cycles))
    print(as_text(about, floor, ours))
    if options.json:
        options.json.write_text(as_json(about, floor, ours))


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="make bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--cycles", type=int, default=500, help="cycles at 32 at a time; a fifth of them one by one (500)")
    size.add_argument("--quick", dest="cycles", action="store_const", const=100, help="100 cycles: rough figures")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every figure to FILE")
    return parser.parse_args()


if __name__ == "__main__":
    main()
