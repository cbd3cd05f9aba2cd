"""How laws are tested here: a busy machine is no reason to fail, and the whole folder stays quick."""

from hypothesis import HealthCheck, settings

settings.register_profile("placet", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("placet")
