"""The demonstration CRM provider: a small real HTTP service that stands for the outside world."""
