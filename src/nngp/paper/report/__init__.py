"""The report: one page with everything that a store knows about the paper, and nothing that it
does not. It computes nothing; figures are drawn from what readers give."""

from nngp.paper.report.facts import scopes_of as scopes_of
from nngp.paper.report.page import write_report as write_report
