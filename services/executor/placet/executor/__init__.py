"""The executor: the only holder of connector credentials. It owns no database; what it may do, admission tells it."""
