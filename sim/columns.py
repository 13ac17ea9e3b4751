"""Every column of `rounds.csv`, `groups.csv` and `agents.parquet`, defined once: name, unit, and what it means."""

from __future__ import annotations

from typing import NamedTuple


class Column(NamedTuple):
    """One column. A quantity that does not exist in a run is left empty, never written as 0."""

    name: str
    unit: str
    meaning: str


def _block(text: str) -> list[Column]:
    rows = [line.split("|") for line in text.strip().splitlines()]
    return [Column(*(part.strip() for part in row)) for row in rows]


ROUND = _block("""
round | count | number of the round, from 1
seed | integer | seed of the run
honest | users | honest users of the graph
attackers | users | injected users of all groups
online | users | users that could report in this round
abstained | users | honest users silent because their lifetime budget's schedule says so
sent | reports | reports that left a device, all phases
delivered | reports | reports that arrived inside the collection window
late | reports | reports that arrived after the window closed, dropped
lost | reports | reports that never arrived
rejected | reports | delivered reports that intake refused as malformed
bytes | bytes | size of all reports sent
sim_seconds | simulated s | time from the round call to the last window's close
epsilon_mean | epsilon | mean total budget spent so far by an honest user, in the scenario's privacy unit
epsilon_max | epsilon | largest total budget spent so far by an honest user
epsilon_features | epsilon | largest feature budget spent so far by an honest user
epsilon_ties | epsilon | largest tie budget spent so far by an honest user, in the scenario's privacy unit
epsilon_labels | epsilon | largest label budget spent so far by an honest user
delta | probability | largest sum of deltas of an honest user
detection_precision | share | flagged attackers / flagged users
detection_recall | share | flagged attackers / attackers
detection_fpr | share | flagged honest users / honest users
detection_fpr_victims | share | flagged victims / victims (honest users that hold a tie with an attacker above level 0)
detection_auc | share | probability that a random attacker scores above a random honest user
detection_ap | share | average precision of the suspicion score for attackers
detection_bound_auc | share | Neyman-Pearson bound on the AUC of any rule on mutual pairs, for compliant attackers
gamma | score | the pruning threshold used; inf: nobody is pruned
suspicion_honest_mean | score | mean suspicion of honest users
suspicion_attacker_mean | score | mean suspicion of attackers
pruned_honest | users | honest users pruned
pruned_attackers | users | attackers pruned
edges | ties | published ties of the hard edge set: edges_true + edges_false + edges_attack
edges_true | ties | published ties that exist between honest users
edges_false | ties | published ties between honest users that do not exist
edges_attack | ties | published ties with an attacker at one end or both
edge_precision | share | edges_true / edges
edge_recall | share | edges_true / true ties between honest users
edge_f1 | share | harmonic mean of edge_precision and edge_recall
density | share | edges / pairs of participants
edge_expected_f1 | share | the F1 that the method predicts for itself, before any truth is seen
edge_weight_true | weight | sum of published weights on true ties (weighted methods)
edge_weight_false | weight | sum of published weights on pairs of honest users without a tie
edge_weight_attack | weight | sum of published weights on ties with an attacker
feature_error_raw | feature units | root mean square error of the rectified reports, honest users
feature_error_denoised | feature units | root mean square error after denoising, honest users
train_accuracy | share | over all honest training users
validation_accuracy | share | over all honest validation users
test_accuracy | share | over all honest test users, pruned and offline ones included
test_macro_f1 | share | mean F1 over the classes, honest test users
victim_accuracy | share | test accuracy over the victims among the test users
loss | nats | training loss at the chosen epoch
epochs | count | training epochs run
accuracy_no_edges | share | test accuracy of the same model and features without any tie
accuracy_true_graph | share | test accuracy with the true graph and the features that this run's server holds
accuracy_clean | share | test accuracy with the true graph and clean features
accuracy_no_attack | share | test accuracy of the same defence on the same reports without attackers
accuracy_undefended | share | attack on, suspicion and pruning off, the protocol's plain edges
accuracy_oracle_pruned | share | test accuracy with the attackers removed by name
accuracy_random_edges | share | test accuracy with as many uniformly random ties as were published
accuracy_knn | share | test accuracy with ties between users of most similar public features (public features only)
accuracy_public_only | share | test accuracy with the tuned graph of public features and labels, no private report in it
accuracy_fit_only | share | with private reports that enter through fitted coefficients only
damage | share | accuracy_no_attack - accuracy_undefended
recovered | share | test_accuracy - accuracy_undefended
gain_retained | share | (test - no_edges) / (true_graph - no_edges); empty if the denominator is under 0.02
estimate_auc | share | AUC of the method's tie probabilities against the truth, all pairs of honest users
estimate_ap | share | average precision of the same
estimate_mae | share | mean absolute error of the same
estimate_brier | share | mean squared error of the same
estimate_ece | share | expected calibration error of the same, ten equal bins
estimate_ece_pmad | ratio | estimate_ece / mean absolute deviation of the probabilities from their mean
estimate_mae_constant | share | mean absolute error of the constant predictor "share of noisy bits"
estimate_brier_constant | share | mean squared error of the constant predictor
degree_distance | share | total variation distance between published and true degree distributions
largest_degree | ties | largest published degree
distinct_rows | users | users that are the lower end, by server id, of a published tie: 1 for a star on the first user
seconds_report | s | making the reports
seconds_network | s | simulating their delivery
seconds_intake | s | checking and storing them
seconds_attestation | s | finding the ties that both ends report
seconds_suspicion | s | scoring users
seconds_refinement | s | making the structure
seconds_denoising | s | denoising the features
seconds_training | s | training, the trials of `gamma: auto` included
seconds_anchors | s | training the anchors
seconds_total | s | the whole round
peak_memory_mb | MB | largest resident memory of the process so far
""")

GROUP = _block("""
round | count | number of the round
group | name | attacker group
members | users | attackers in the group
active | users | members that reported in this round
flagged | users | members flagged
intended_ties | ties | ties that members asked honest users for, so far
accepted_ties | ties | of those, ties that the honest end holds above level 0
surviving_ties | ties | published ties between a member and an honest user
victims | users | honest users that hold a member above level 0
victims_reached | users | honest users with a published tie to a member
victims_flagged | users | victims of the group that are flagged
suspicion_mean | score | mean suspicion of the members
suspicion_auc | share | probability that a random member scores above a random honest user
""")

AGENT = _block("""
agent | id | stable id: honest users first, in the graph's own order, then attackers
kind | name | honest or attacker
group | name | attacker group; empty for honest users
victim | yes or no | whether an honest user holds a tie with an attacker above level 0
suspicion | score | score in the last round; empty for a user that the score knows nothing about
flagged | yes or no | whether the user is flagged in the last round
flagged_round | count | first round in which the user was flagged; empty if never
epsilon | epsilon | total budget spent, in the scenario's privacy unit
epsilon_features | epsilon | budget spent on features
epsilon_ties | epsilon | budget spent on ties, in the scenario's privacy unit
delta | probability | sum of deltas
""")

TIMING = frozenset(c.name for c in ROUND if c.name.startswith("seconds_")) | {"peak_memory_mb"}
"""Columns that differ from run to run; all others are a function of scenario and seed."""
