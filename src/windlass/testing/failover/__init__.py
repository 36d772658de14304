"""Real failovers under load: a primary with a streaming standby is killed, and the standby promoted."""
