"""What the services of Placet say to each other."""
