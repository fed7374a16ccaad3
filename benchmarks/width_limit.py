"""More and wider networks beside their limit than `nngp reproduce width` has (GPU-sized).

    python benchmarks/width_limit.py --data DIR --store runs.db --minutes 9
    python benchmarks/width_limit.py --store runs.db --picture docs/pictures/width-limit.png

The first works until the time is over, and goes on where the store ends when called again. The part
`width` of the report shows of each width the run with the most networks, whoever did it. The second
draws it, and prints finding and verdict.
"""

import argparse
import time
from pathlib import Path

from nngp_paper.part import Results
from nngp_paper.parts import width_limit
from nngp_paper.runs import RunStore, unpacked
from nngp_paper.runs.study import carry_out
from nngp_paper.scope import ACTIVATIONS, Scope

WIDTHS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--dataset", default="mnist")
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--networks", type=int, default=256)
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--picture", type=Path, metavar="FILE")
    options = parser.parse_args()
    scope = Scope(options.dataset, (width_limit.TRAIN,), (), ACTIVATIONS, data=options.data)
    if options.picture:
        draw(options.store, scope, options.picture)
    else:
        study = width_limit.study(scope, options.widths, options.networks)
        with RunStore(options.store) as store:
            carry_out(store, study, until=time.monotonic() + 60 * options.minutes, progress=True)


def draw(path: Path, scope: Scope, picture: Path) -> None:
    with unpacked(path) as plain, RunStore(plain) as store:
        data = width_limit.read(Results(store, scope))
    width_limit.draw(data, picture)
    print(width_limit.finding(data))
    judged = width_limit.verdict(data)
    print(f"{judged.word}: {judged.reason}")


if __name__ == "__main__":
    main()
