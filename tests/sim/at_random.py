"""Small scenarios drawn at random from everything that a scenario may say, extremes included."""

import random

import numpy as np

GRAPHS = ("isolated", "rare", "bare", "five", "unlabelled", "two", "one-class", "no-ties", "complete")
REFINEMENTS = (
    "attested", "blink", "dprr", "edgerefine", "equal-levels", "feature-prior", "lapgraph", "ldpgen", "none",
    "posterior", "privgraph", "randomized-response", "solitude",
)  # fmt: skip
SCORES = (
    "combined", "gap-sum", "gated-sum", "likelihood-ratio", "mean-gap", "mean-gap-mutual", "none", "row-conformity",
    "typed-mixture",
)  # fmt: skip
WITHOUT_P_VALUES = ("likelihood-ratio", "mean-gap", "mean-gap-mutual", "none")
EVERYTHING = ["protocol", "degrees", "feedback", "labels", "graph"]


def write_graphs(folder):
    """Graphs of the awkward kinds in `GRAPHS`, as npz files."""
    rng = np.random.default_rng(0)

    def save(name, nodes, labels, features=6, ties=None, among=None):
        pairs = np.array(np.triu_indices(among or nodes, 1))
        chosen = rng.permutation(pairs.shape[1])[: pairs.shape[1] if ties is None else ties]
        held = {"edge_index": pairs[:, chosen], "y": np.asarray(labels)}
        if features:
            held["x"] = (rng.random((nodes, features)) < 0.4).astype(float)
        np.savez(folder / f"{name}.npz", **held)

    save("isolated", 40, rng.integers(0, 3, 40), ties=60, among=25)
    save("rare", 50, [0] * 47 + [1] * 3, ties=100)
    save("bare", 30, rng.integers(0, 2, 30), features=0, ties=60)
    save("five", 5, [0, 0, 1, 1, 0], ties=6)
    save("unlabelled", 30, [0, 1] * 5 + [-1] * 20, ties=50)
    save("two", 2, [0, 1], ties=1)
    save("one-class", 20, [0] * 20, ties=30)
    save("no-ties", 16, [0, 1] * 8, ties=0)
    save("complete", 12, [0, 1] * 6)


def drawn(r, key, *values, chance=0.5):
    """{key: one of the values}, or nothing."""
    return {key: r.choice(values)} if r.random() < chance else {}


def graph(r, folder):
    split = r.choice([{}, {"train": 0.6, "validation": 0.0, "test": 0.4}, {"train": 0.5, "validation": 0.5, "test": 0}])
    if r.random() < 0.55:
        classes = r.choice([1, 2, 3])
        own = {"source": "synthetic", "nodes": r.choice([40, 80, 120]), "classes": classes, "dimensions": 24}
        own |= {"mean_degree": r.choice([2.0, 4.0]), "words": 4.0, "homophily": 1.0 if classes == 1 else 0.8}
    else:
        own = r.choice([{"source": "karate"}] + [{"source": "file", "path": str(folder / f"{g}.npz")} for g in GRAPHS])
    return {**own, "split": split}


def privacy(r, public):
    features = r.choice(["none", "piecewise", "laplace", "gaussian", "multi-bit", "one-bit", "square-wave"])
    private = {"kind": features, "epsilon": r.choice([0.001, 1.0, 50.0, 1000.0])}
    ties = {"kind": "auto", "epsilon": r.choice([0.01, 1.0, 2.0, 5.0, 8.0, 30.0, 1000.0])}
    return {
        "unit": r.choice(["list-entry", "undirected-tie", "whole-list"]),
        "features": {"kind": "none"} if public or features == "none" else private,
        "ties": {**ties, "levels": r.choice([1, 2, 5, 5, 120])},
        "across_rounds": r.choice(["fresh", "split", "memoized"]),
        **drawn(r, "labels", {"kind": "randomized-response", "epsilon": r.choice([0.01, 2.0, 1000.0])}, chance=0.3),
        **drawn(r, "lifetime_epsilon", 1000.0, 5000.0, chance=0.1),
    }


def attackers(r, name):
    knows = r.choice([["protocol"], EVERYTHING])
    targets = ["cyclic", "random", "same-victims", "maximal-gain", "random-node", "random-value"]
    claims = ["maximal", "collusive", "framing", "honest-like", "level-match", "minimal"]
    timing = ["always", "always", "on-off", "ramp", "sleeper"]
    if knows is EVERYTHING:
        targets += ["high-degree", "low-degree"]
        claims, timing = [*claims, "adaptive"], [*timing, "whitewash"]
    chosen = {"kind": r.choice(targets)}
    if chosen["kind"] not in ("maximal-gain", "random-node", "random-value"):
        chosen["per_attacker"] = r.choice([1, 2])
    features = ["extreme", "constant", "honest-like", "illegal-dense", "mimic-class", "opposite", "random"]
    return {
        "name": name,
        **r.choice([{"count": 0}, {"count": 1}, {"count": 5}, {"count": 150}, {"share": 0.1}, {"share": 1.0}]),
        "knowledge": knows,
        "features": {"kind": r.choice(features)},
        "targets": chosen,
        "ties": {"kind": r.choice(["clique", "degree-preserving", "none", "preferential", "ring", "star"])},
        "claims": {"kind": r.choice(claims), "channel": r.choice(["compliant", "bypass", "camouflage"])},
        "timing": {"kind": r.choice(timing), "idle": r.choice(["silent", "harmless"])},
        "labels": r.choice(["none", "none", "random"]),
    }


def refinement(r, kind):
    options = {
        "attested": [("cut", 0.0, 0.9), ("weights", "none", "confidence")],
        "blink": [("variant", "hard", "soft", "hybrid"), ("evidence", "two-list", "single-bit")],
        "dprr": [("symmetrise", "or", "lower-triangle", "none"), ("budget", "authors", "edgerefine")],
        "edgerefine": [
            ("rate", 0.0, 0.3, 1.0),
            ("calibration", "simple", "isotonic", "beta", "temperature"),
            ("debias", True),
            ("selection", "top-k"),
            ("ties", "continuous", "random"),
            ("edge_count", "exact", "noisy"),
        ],
        "feature-prior": [("publish", "top", "hard"), ("bits_enter", "coefficients"), ("common_from", 0.0)],
        "ldpgen": [("generator", "chung-lu"), ("most_groups", 1, 2), ("first_groups", 1, 8)],
        "posterior": [("labels", False), ("output", "hard")],
        "privgraph": [("preset", "released-code"), ("group_size", 1, 500)],
        "randomized-response": [("variant", "debiased"), ("ends", "either")],
        "solitude": [("preset", "released-code"), ("publish", "threshold"), ("epochs", 2, 4)],
    }
    found = {"kind": kind}
    for key, *values in options.get(kind, []):
        found |= drawn(r, key, *values)
    return found


def server(r, kind):
    score, rule = r.choice(SCORES), r.choice(["none", "threshold", "threshold", "top-share", "benjamini-hochberg"])
    if rule == "benjamini-hochberg" and score in WITHOUT_P_VALUES:
        score = "combined"
    pruning = {"kind": rule, **(drawn(r, "permanent", True) if rule != "none" else {})}
    if rule == "threshold":
        pruning |= drawn(r, "gamma", "midpoint", 0.0, 1.0)
    if rule == "top-share":
        pruning |= drawn(r, "share", 0.5, 0.99)
    models = ["gcn", "graphsage", "gat", "gin", "mlp", "label-propagation"]
    training = {"model": r.choice(models), "epochs": r.choice([1, 2, 3]), "hidden": 8, "heads": 2}
    return {
        "memory": r.choice(["none", "last"]),
        "suspicion": {"kind": score},
        "pruning": pruning,
        "refinement": refinement(r, kind),
        "denoising": r.choice([{"kind": "none"}, {"kind": "dual"}, {"order": "hoa-nfr", "hops": r.choice([0, 3])}]),
        "training": {**training, "warm_start": r.random() < 0.3, "select": r.choice(["best", "last"])},
    }


def scenario(seed, folder):
    """One scenario as plain data: a function of the seed alone. Consecutive seeds go through all refinements."""
    r = random.Random(seed)
    kind, where = REFINEMENTS[seed % len(REFINEMENTS)], graph(r, folder)
    public = kind == "feature-prior" or where.get("path", "").endswith("bare.npz")
    trust, often = r.choice(["maximal", "correlated", "independent"]), r.choice([0.0, 0.5, 1.0])
    honest = {"trust": {"kind": trust}, "acceptance": often, "vigilance": r.choice([0.0, 0.9, 1.0])}
    latency = r.choice([{"kind": "constant", "seconds": 0.0}, {"kind": "exponential"}, {"kind": "lognormal"}])
    return {
        "seed": seed,
        "rounds": r.choice([1, 2, 3]),
        "graph": where,
        "privacy": privacy(r, public),
        "population": {
            "honest": {**honest, "availability": r.choice([0.0, 0.4, 1.0, 1.0])},
            "attackers": [attackers(r, f"group {i}") for i in range(r.choice([0, 1, 1, 2, 3]))],
        },
        "network": {"latency": latency, "loss": r.choice([0, 0, 0.3, 1]), "deadline": r.choice([10.0, 10.0, 0.2])},
        "server": server(r, kind),
        "anchors": r.choice(["none", "last", "each"]),
        "observer": r.random() < 0.85,
    }
