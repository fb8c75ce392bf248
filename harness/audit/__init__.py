"""`draftboard audit`: whether each method's output is the target's, and what the target thinks where it is not."""

from draftboard.audit.conclusions import audit_outputs
from draftboard.audit.files import audit_files
from draftboard.audit.report import SCHEMA, Difference, Limit, MethodAudit, Report, SamplingAudit
from draftboard.audit.run import Wish, audit_run

__all__ = [
    "SCHEMA",
    "Difference",
    "Limit",
    "MethodAudit",
    "Report",
    "SamplingAudit",
    "Wish",
    "audit_files",
    "audit_outputs",
    "audit_run",
]
