import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useIsDark } from "../../use/usePreference";
import { axisText, useClock, type Zone } from "./clock";
import type { Throughput } from "./overview";

interface ChartProps {
  readonly throughput: Throughput;
  /** The minute under the pointer, or null when there is none. */
  readonly onPoint: (index: number | null) => void;
}

const COUNTS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 50_000, 100_000, 1_000_000];

/** Bars per minute, the failed ones on top of the completed ones. Loaded only by the page that shows it. */
export default function Chart({ throughput, onPoint }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const point = useRef(onPoint);
  point.current = onPoint;
  const data = useRef(dataOf(throughput));
  data.current = dataOf(throughput);
  const isDark = useIsDark();
  const zone = useClock();

  // The canvas knows no CSS variables: with another theme it is made anew.
  // biome-ignore lint/correctness/useExhaustiveDependencies: isDark decides what the variables hold
  useEffect(() => {
    const host = box.current;
    if (host === null) return;
    const chart = new uPlot(
      optionsOf(host, zone, (index) => point.current(index)),
      data.current,
      host,
    );
    plot.current = chart;
    const watch = new ResizeObserver(() => chart.setSize(sizeOf(host)));
    watch.observe(host);
    return () => {
      watch.disconnect();
      chart.destroy();
      plot.current = null;
    };
  }, [isDark, zone]);
  useEffect(() => {
    plot.current?.setData(dataOf(throughput));
  }, [throughput]);
  return <div ref={box} aria-hidden="true" className="absolute inset-x-3 top-1 bottom-2 overflow-hidden" />;
}

function dataOf({ minutes, completed, failed }: Throughput): uPlot.AlignedData {
  // The first series is both together and drawn first, so that what is left to see of it is the failed part.
  return [
    minutes.map((at) => Date.parse(at) / 1_000),
    completed.map((many, i) => many + (failed[i] ?? 0)),
    [...completed],
  ];
}

function optionsOf(host: HTMLElement, zone: Zone, onPoint: (index: number | null) => void): uPlot.Options {
  const style = getComputedStyle(host);
  const tone = (name: string): string => style.getPropertyValue(name).trim();
  const bars = uPlot.paths.bars?.({ size: [0.72, 14], radius: 0.15 });
  const axis: uPlot.Axis = {
    stroke: tone("--dim"),
    font: `11px ${style.fontFamily}`,
    ticks: { show: false },
    grid: { stroke: tone("--line"), width: 1 },
  };
  const series = (color: string): uPlot.Series => ({
    fill: color,
    stroke: color,
    width: 0,
    points: { show: false },
    ...(bars ? { paths: bars } : {}),
  });
  return {
    ...sizeOf(host),
    padding: [8, 4, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: true, range: (_plot, from, to) => [from - 40, to + 40] },
      y: { range: (_plot, _least, most) => [0, Math.max(4, (most ?? 0) * 1.1)] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        size: 24,
        gap: 4,
        space: 64,
        values: (_plot, at) => at.map((one) => axisText(one, zone)),
      },
      {
        ...axis,
        size: 38,
        gap: 6,
        space: 32,
        incrs: COUNTS,
        values: (_plot, counts) => counts.map((one) => one.toLocaleString("en")),
      },
    ],
    series: [{}, series(tone("--st-failed")), series(tone("--st-succeeded"))],
    hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx ?? null)] },
  };
}

function sizeOf(host: HTMLElement): { width: number; height: number } {
  return { width: host.clientWidth, height: host.clientHeight };
}
