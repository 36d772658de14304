"""Policies: the document, its rules, and the verdicts that follow from them."""
