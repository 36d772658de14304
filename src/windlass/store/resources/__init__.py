"""The resources that steps wait for and then hold, behind one port: places at providers, keyed limits, money."""
