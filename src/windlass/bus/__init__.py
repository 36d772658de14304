"""Bells between processes: one small port, and an adapter for each product that can carry them."""
