"""A report made every night: wait for late orders, count each region as a separate job, then add up the regions.

windlass run windlass.examples.nightly_report --input day=2025-06-01
"""

import zlib

import windlass as wl

REGIONS = ["north", "south", "east", "west"]


@wl.step
def read_orders(region: str, day: str) -> list:
    """Return the day's orders of a region, in cents; the same day always has the same orders."""
    seed = zlib.crc32(f"{region} {day}".encode())
    return [(seed >> shift) % 9_000 + 100 for shift in range(0, 24, 2)]


@wl.step
def add_up(region: str, orders: list) -> dict:
    """Count the orders, and add up their amounts."""
    return {"region": region, "orders": len(orders), "cents": sum(orders)}


@wl.step
def write_report(day: str, regions: list) -> str:
    """Write one line per region, the largest first, and the total."""
    lines = [f"Orders of {day}"]
    for row in sorted(regions, key=lambda row: -row["cents"]):
        lines.append(f"{row['region']:>6} {row['orders']:>4} {row['cents'] / 100:>10,.2f}")
    lines.append(f" total      {sum(row['cents'] for row in regions) / 100:>10,.2f}")
    return "\n".join(lines)


@wl.recipe
def region_report(region: str, day: str):
    """One region: read, then add up."""
    return add_up(region, read_orders(region, day))


@wl.recipe
def nightly_report(day: str, regions: list[str] = REGIONS, settle_s: float = 2.0):
    """Wait for late orders, report every region, and join."""
    settled = wl.sleep(settle_s)
    reports = region_report.map(regions, day=day).after(settled)
    return write_report(day, reports)
