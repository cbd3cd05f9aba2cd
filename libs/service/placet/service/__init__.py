"""What every service of Placet has: settings, database, migrations, logs, a way to start and to stop."""
