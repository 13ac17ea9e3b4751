"""An audit that can fail: lower bounds on epsilon, bias and variance of every mechanism, from drawn reports."""

from agents.privacy.audit.epsilon import Effort
from agents.privacy.audit.features import audit_features
from agents.privacy.audit.others import audit_degrees, audit_labels
from agents.privacy.audit.protocol import audit_protocol, exit_code
from agents.privacy.audit.rows import AuditRow
from agents.privacy.audit.ties import audit_memoized_ties, audit_ties

__all__ = [
    "AuditRow",
    "Effort",
    "audit_degrees",
    "audit_features",
    "audit_labels",
    "audit_memoized_ties",
    "audit_protocol",
    "audit_ties",
    "exit_code",
]
