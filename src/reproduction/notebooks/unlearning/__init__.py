"""Notebook 11: what does a model still know that it was made to forget (Shi, section 7)?

Tables and the audit itself are `contamination.membership.unlearning`.
"""
