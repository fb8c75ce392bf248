"""`draftboard doctor`: whether this machine can measure, what to change if not, and how large a run has to be."""

from draftboard.doctor.counters import Machine
from draftboard.doctor.examination import Wish, examine, examine_quickly
from draftboard.doctor.report import Report, document
from draftboard.doctor.sign import Sign

__all__ = ["Machine", "Report", "Sign", "Wish", "document", "examine", "examine_quickly"]
