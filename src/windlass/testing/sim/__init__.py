"""The simulation: the real engine and its real SQL on virtual time, one operation at a time, under seeded faults."""
