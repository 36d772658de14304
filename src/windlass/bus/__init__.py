"""Carries bells between processes: one port, and an adapter for each product that can carry them."""
