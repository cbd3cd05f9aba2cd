"""Placet on one machine: the backing services, found or started, and the whole system on them."""
