"""Ingress: the authenticated entry, and what clients see. It decides nothing and touches no provider."""
