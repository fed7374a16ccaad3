"""The report: one page with all that a store has about the paper. It computes no results; figures
are drawn from the data of parts."""

from nngp_paper.report.facts import scopes_of as scopes_of
from nngp_paper.report.page import write_report as write_report
