"""The stage of a search that averages networks over transformations of images."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from nngp.predictive.targets import TargetScaling
from nngp.selection.averages import kernel_on
from nngp.selection.climb import BestTrial, Budget
from nngp.selection.cost import averaged_work
from nngp.selection.families import Families
from nngp.selection.inputs import HyperparameterPoint
from nngp.selection.invariance_search import InvarianceSearch, ScoredInvariance, rescaled
from nngp.selection.objective import Objective
from nngp.selection.problem import SelectionProblem, averaged


@dataclass(frozen=True)
class InvarianceStage:
    """Finalists on the rows of an objective, with the families that the user gave, or with those
    that suit the first of them."""

    problem: SelectionProblem
    objective: Objective
    targets: TargetScaling
    note: Callable[[BestTrial], None]  # told of each average that was computed
    budget: Budget

    def run(self, found: list[BestTrial]) -> list[BestTrial]:
        """The finalists, each averaged, at its noise and scale."""
        families, out = self.problem.invariance, []
        for one in found:
            if self.budget.is_spent or one.candidate.is_infinite:
                setting = replace(one.setting, invariance=families or ())
                out.append(one._replace(setting=setting))
                continue
            tried: dict[Families, BestTrial] = {(): one}
            search = self._search(one, tried)
            if families is None:
                assert self.problem.image_shape is not None
                families = search.run(self.problem.image_shape).families
            elif families:
                search.judged(families)
            out.append(tried[families])
        return out

    def _search(self, one: BestTrial, tried: dict[Families, BestTrial]) -> InvarianceSearch:
        """The search for a network; `tried` gets what is computed, at its noise and scale."""
        clock, points = time.perf_counter(), self.objective.count
        inputs = self.objective.inputs
        rows, X = inputs.rows(points), inputs.scaled(one.setting, points).X
        given, net, engine = one.candidate, one.setting.base, self.problem.engine

        def note(found: ScoredInvariance) -> None:
            nonlocal clock
            began, clock = clock, time.perf_counter()
            score, setting = found.score / self.objective.Y.size, self._setting(one, found)
            climb = BestTrial(score, found.log_evidence, setting, given, 1, clock - began, "")
            self.note(climb)
            if found.families:
                tried[found.families] = climb
            self.budget.tracker.advance(averaged_work(self.problem, found.families, points))

        return InvarianceSearch(
            self.objective,
            self.problem.Y[rows],
            self.targets,
            lambda families: kernel_on(engine, averaged(net, families), X),
            one.setting.noise_var,
            given.noise_var is not None,
            given.weight_var is None and given.bias_var is None,
            self.problem.classes,
            note,
            self.budget,
        )

    def _setting(self, one: BestTrial, found: ScoredInvariance) -> HyperparameterPoint:
        """The setting of a network with the families, noise and scale that were found."""
        net = one.setting.base
        return replace(
            one.setting,
            base=net if found.scale == 1.0 else rescaled(net, found.scale),
            noise_var=max(found.noise_var, self.targets.noise_floor),
            invariance=found.families,
        )
