"""The simulation: a Mesa model whose one step is one round, with a SimPy clock as master of time."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial
from typing import Any

import mesa
import numpy as np
import simpy
from scipy import sparse

from agents.attacker import Attacker
from agents.coalition import Coalition, Plan
from agents.honest import HonestUser
from agents.population import MEMOIZED, Population
from agents.privacy.ledger import Ledger
from agents.protocol import Feedback, RoundCall
from agents.report import ReportBatch, join
from agents.user import User
from server.pipeline import Outcome, Pipeline, adjacency
from server.server import ServerAgent
from sim.directory import Directory
from sim.facts import RoundFacts
from sim.kernel.errors import SettingError
from sim.kernel.graphs import Graph
from sim.kernel.network import collect
from sim.kernel.randomness import Streams
from sim.observer import Observer
from sim.premises import grant, load_graph, public_protocol, refuse_untrainable, with_features
from sim.scenario import Scenario

Progress = Callable[[int, str], None]
PHASES_A_ROUND = 16
"""Network draws are keyed by round * 16 + phase."""


class Simulation(mesa.Model):
    """Builds a population from a scenario and runs its rounds. It keeps no ground truth: every honest user holds its
    own part, and the observer (if any) a copy that nothing flows back from."""

    def __init__(self, scenario: Scenario, progress: Progress | None = None) -> None:
        streams = Streams(scenario.seed)
        super().__init__(rng=streams.integer("mesa") % 2**32)
        self.spec = scenario
        self.round = 0
        self.progress = progress
        self.notes: list[str] = []  # sentences for the user, from before the first round
        self.outcome: Outcome | None = None
        self.environment = simpy.Environment()
        graph = with_features(scenario, load_graph(scenario, streams))
        self._streams = streams
        self._settle(scenario, graph, streams)

    def _settle(self, scenario: Scenario, graph: Graph, streams: Streams) -> None:
        honest = graph.nodes
        groups = scenario.population.attackers
        sizes = [group.size(honest) for group in groups]
        participants = honest + sum(sizes)
        train, validation, test = scenario.graph.split.draw(graph.labels, streams)
        refuse_untrainable(scenario, graph, train)
        self.protocol = public_protocol(scenario, graph, participants)
        self.directory = Directory.draw(participants, streams)

        self.population = Population.found(
            scenario.population.honest,
            graph.features,
            graph.ties,
            participants,
            self.protocol.ties.levels,
            streams.child("honest"),
        )
        self.users: list[User] = [HonestUser(self, i, self.population) for i in range(honest)]
        self.coalitions: list[Coalition] = []
        first = honest
        for group, size in zip(groups, sizes):
            members = np.arange(first, first + size)
            granted = grant(group.knowledge, graph, train, participants)
            coalition = Coalition(group, members, streams.child(f"attackers/{group.name}"), granted)
            self.coalitions.append(coalition)
            self.users += [Attacker(self, int(i), coalition) for i in members]
            first += size

        known = self._labels(scenario, graph.labels, train | validation, streams)
        everyone = np.arange(participants)
        masks = [np.zeros(participants, dtype=bool) for _ in range(2)]
        masks[0][:honest], masks[1][:honest] = train, validation
        for coalition in self.coalitions:
            if coalition.spec.labels == "random":
                generator = streams.generator(f"attackers/{coalition.spec.name}/labels")
                known[coalition.members] = generator.integers(0, graph.classes, len(coalition.members))
                masks[0][coalition.members] = True
        order = self.directory.stable[everyone]
        pipeline = Pipeline(scenario.server, self.protocol, streams.child("server"))
        pipeline.transition = scenario.privacy.labels.transition(graph.classes)
        self.server = ServerAgent(self, pipeline, known[order], masks[0][order], masks[1][order])
        pipeline.warm_up()
        self.population.reports(np.arange(1), self._call(0))  # a report that nobody sees compiles the kernels

        self.ledger = Ledger.open(scenario.privacy, self.protocol, participants, scenario.rounds)
        self.ledger.charge_labels(np.flatnonzero(train | validation))
        group_of = np.full(participants, -1)
        for index, coalition in enumerate(self.coalitions):
            group_of[coalition.members] = index
        self.observer = (
            Observer(scenario, graph, self.directory, group_of, (train, validation, test))
            if scenario.observer
            else None
        )

    def _labels(self, scenario: Scenario, labels: np.ndarray, known: np.ndarray, streams: Streams) -> np.ndarray:
        """(N,) labels as the server receives them: through the label mechanism for training and validation users."""
        held = np.flatnonzero(known)
        out = np.full(self.protocol.participants, -1, dtype=np.int64)
        epochs = np.zeros(len(held), dtype=np.uint64)
        out[held] = scenario.privacy.labels.perturb(
            labels[held], held, epochs, streams.child("honest"), self.protocol.classes
        )
        return out

    # One round ------------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One round: SimPy drives until the round's process ends."""
        self.environment.run(until=self.environment.process(self._play()))

    def _play(self) -> Generator[Any, Any, None]:
        started, opened = time.perf_counter(), self.environment.now
        self.round += 1
        facts = RoundFacts(self.round)
        self._tell("reports")
        calls = [self._call(phase) for phase in range(self.protocol.ties.phases)]
        for user in self.users:
            user.hear(calls[0])
        online = self.population.available(self.round) & self.ledger.allowed(self.round)[: self.population.size]
        plans = [self._plan(coalition, calls[0]) for coalition in self.coalitions]
        self._answer(plans)
        self._note_presence(online, plans, facts)

        self.server.open_round()
        for call in calls:
            clock = time.perf_counter()
            batch = self._reports(call, np.flatnonzero(online), plans)
            facts.clock("report", clock)
            clock = time.perf_counter()
            journeys = self.spec.network.journeys(
                batch.senders, self._streams, self.round * PHASES_A_ROUND + call.phase
            )
            window = yield from collect(self.environment, journeys, self.spec.network.deadline)
            delivered = batch.take(np.sort(np.array(window.arrived, dtype=np.int64)))
            facts.clock("network", clock)
            facts.traffic(batch, len(delivered.senders), int(np.isinf(journeys).sum()))
            self.ledger.charge(self.round, call, batch.senders, self.population)
            published = self.server.receive(self.directory.translate(delivered))
            if call.phase + 1 < len(calls):
                calls[call.phase + 1].broadcast.update(self.directory.publish(published))
        facts.sim_seconds = self.environment.now - opened

        evidence = self.server.evidence()
        if getattr(self.spec.server.refinement, "needs_true_edge_count", False):
            # The one number about the private graph that a method may ask for; the method's note says that it leaks.
            evidence.extra["true_edge_count"] = np.array(self.population.lists[:, : self.population.size].nnz // 2)
        hear = None if self.progress is None else partial(self.progress, self.round)  # not _tell: it holds the model
        outcome = self.server.conclude(evidence, self.round, calls[0].epoch, hear)
        facts.finish(started, outcome, self.server.seconds_intake, self.server.rejected)
        self._give_feedback(outcome, plans)
        self.outcome = outcome
        if self.observer is not None:
            self.observer.watch(
                facts, outcome, evidence, self.server.pipeline, plans, self.ledger, self.population, self._tell
            )

    def _call(self, phase: int) -> RoundCall:
        memoized = self.spec.privacy.across_rounds == "memoized"
        return RoundCall(self.round, phase, MEMOIZED if memoized else self.round, memoized, self.protocol, {})

    def _tell(self, stage: str) -> None:
        if self.progress is not None:
            self.progress(self.round, stage)

    def _plan(self, coalition: Coalition, call: RoundCall) -> Plan:
        try:
            return coalition.plan(call, self._feedback(coalition))
        except SettingError as error:
            raise SettingError(f"attacker group {coalition.spec.name!r}: {error}") from None

    def _feedback(self, coalition: Coalition) -> dict[int, Feedback]:
        heard = ((int(i), self.users[i].feedback) for i in coalition.members)
        return {i: feedback for i, feedback in heard if feedback is not None}

    def _answer(self, plans: list[Plan]) -> None:
        """Let honest users who are asked for a tie answer for themselves: once per asker, again when it earns more."""
        fresh: list[tuple[int, int, int]] = []
        for plan in plans:
            for asker, target, earned in zip(*(side.tolist() for side in (*plan.asked, plan.earned))):
                user = self.users[target]
                if isinstance(user, HonestUser) and (earned or (target, asker) not in self.population.answered):
                    fresh.append((target, asker, user.answer(asker, earned)))
        self.population.hold(fresh)

    def _note_presence(self, online: np.ndarray, plans: list[Plan], facts: RoundFacts) -> None:
        facts.online = int(online.sum()) + sum(int(plan.active.sum()) for plan in plans)
        facts.abstained = int((~self.ledger.allowed(self.round)[: self.population.size]).sum())
        for user, here in zip(self.users, online.tolist()):
            user.online = here
        for plan in plans:
            for member, active in zip(plan.members.tolist(), plan.active.tolist()):
                self.users[member].online = active

    def _reports(self, call: RoundCall, senders: np.ndarray, plans: list[Plan]) -> ReportBatch:
        batches = [self.population.reports(senders, call)]
        batches += [coalition.encode(plan, call) for coalition, plan in zip(self.coalitions, plans)]
        return join([batch for batch in batches if len(batch.senders)] or batches[:1])

    def _give_feedback(self, outcome: Outcome, plans: list[Plan]) -> None:
        """Tell each user, privately, whether it is flagged and which of the ties that it claims were published. Of
        others it hears nothing: a published tie that it does not claim shows what the other end has reported."""
        structure, stable, n = outcome.learned.structure, self.directory.stable, self.protocol.participants
        published = adjacency(replace(structure, u=stable[structure.u], v=stable[structure.v]), n)
        claims = sparse.vstack([self.population.lists, *(plan.lists for plan in plans)], format="csr")
        confirmed: Any = sparse.csr_array(published.multiply(claims))
        confirmed.sort_indices()
        flagged = outcome.decision.flagged[self.directory.public].tolist()
        for user, own in zip(self.users, np.split(confirmed.indices, confirmed.indptr[1:-1])):
            user.learn(Feedback(flagged[user.ident], own.astype(np.int64)))

    # Life cycle -----------------------------------------------------------------------------------------------------

    def checkpoint(self) -> dict[str, Any]:
        """Everything that changes from round to round, as plain picklable data. Taken between rounds."""
        return {
            "round": self.round,
            "now": self.environment.now,
            "lists": self.population.lists,
            "answered": self.population.answered,
            "coalitions": [coalition.state() for coalition in self.coalitions],
            "feedback": [user.feedback for user in self.users],
            "shelves": self.server.shelves,
            "held": self.server.pipeline.held,
            "warm": self.server.pipeline.warm,
            "ledger": self.ledger.state(),
            "observer": self.observer.state() if self.observer else None,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a checkpoint of the same scenario."""
        self.round = state["round"]
        self.environment = simpy.Environment(initial_time=state["now"])
        self.population.lists, self.population.answered = state["lists"], state["answered"]
        for coalition, held in zip(self.coalitions, state["coalitions"]):
            coalition.restore(held)
        for user, feedback in zip(self.users, state["feedback"]):
            user.feedback = feedback
        self.server.shelves = state["shelves"]
        self.server.pipeline.held, self.server.pipeline.warm = state["held"], state["warm"]
        self.ledger.restore(state["ledger"])
        if self.observer is not None and state["observer"] is not None:
            self.observer.restore(state["observer"])

    def close(self) -> None:
        """Let go of all agents. Mesa before 3.5 keeps every model alive through a class-level table of ids."""
        self.remove_all_agents()
        ids: Any = getattr(mesa.Agent, "_ids", None)
        if hasattr(ids, "pop"):
            ids.pop(self, None)
