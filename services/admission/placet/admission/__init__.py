"""Admission: what may be asked for, the digest of it, and the ledger of what was allowed."""
