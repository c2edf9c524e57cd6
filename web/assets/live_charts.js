// The charts of the live page: samples in, pictures by uPlot out. A sample has counters since the start of the process.
"use strict";

const liveCharts = (() => {
  const HEIGHT = 190;
  const PARTS = 7; // of RSS with a colour of their own
  const GAP = 30; // seconds without a sample: the page was not open
  const UNITS = ["KiB", "MiB", "GiB", "TiB"];
  const FONT = "12px system-ui, sans-serif";

  function bytes(value) {
    if (Math.abs(value) < 1024) return `${Math.round(value)} B`;
    let unit = -1;
    do { value /= 1024; unit += 1; } while (Math.abs(value) >= 1023.95 && unit < UNITS.length - 1);
    return `${value.toFixed(1)} ${UNITS[unit]}`;
  }

  const count = (value) => Math.round(value).toLocaleString("en-US");
  const percent = (value) => `${value.toFixed(1)} %`;
  const perSecond = (value) => `${count(value)}/s`;
  const time = (seconds) => new Date(seconds * 1000).toISOString().slice(11, 19);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Axes in few words: 40 MiB, 1.2 M.
  const tickBytes = (value) => bytes(value).replace(".0 ", " ");
  const tickCount = (value) => value >= 1e6 ? `${+(value / 1e6).toFixed(2)} M` : value >= 1e4 ? `${+(value / 1e3).toFixed(1)} k` : count(value);

  const binary = Array.from({ length: 44 }, (_, power) => 2 ** power);

  // A line, or the upper edge of an area.
  const line = (label, name, format) => ({ label, color: name, format });

  class Chart {
    constructor(figure, series, { format, tick, increments }) {
      this.place = figure.querySelector("div");
      this.shown = series;
      const axis = { stroke: () => color("--quiet"), font: FONT, grid: { stroke: () => color("--line"), width: 1 }, ticks: { show: false } };
      this.plot = new uPlot({
        width: this.place.clientWidth, height: HEIGHT,
        cursor: { sync: { key: "live" }, drag: { x: false, y: false }, y: false, points: { size: 7 } },
        scales: { y: { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] } },
        axes: [
          { ...axis, size: 26, space: 80, values: (_, splits) => splits.map(time) },
          { ...axis, size: 76, values: (_, splits) => splits.map(tick), ...(increments && { incrs: increments }) },
        ],
        series: [
          { label: "UTC", value: (_, value) => value == null ? "" : time(value) },
          ...series.map((one) => ({
            label: one.label, width: one.area ? 0 : 2, points: { show: false },
            stroke: () => color(one.color), fill: one.area && (() => color(one.color)),
            value: (_, __, ___, at) => this.word(one, at, format),
          })),
        ],
      }, [[], ...series.map(() => [])], this.place);
      this.observer = new ResizeObserver(() => this.plot.setSize({ width: this.place.clientWidth, height: HEIGHT }));
      this.observer.observe(this.place);
    }

    remove() {
      this.observer.disconnect();
      this.plot.destroy();
    }

    word(one, at, format) {
      const value = at == null ? null : one.values[at];
      return value == null ? "–" : (one.format ?? format)(value);
    }

    // Reads the colours again.
    repaint() {
      this.plot.redraw(false, true);
      this.place.querySelectorAll(".u-marker").forEach((marker, at) => {
        const one = this.shown[at - 1];
        if (one) marker.style.borderColor = marker.style.background = color(one.color);
      });
    }

    // `values` are those that are said, `heights` where they are drawn.
    set(times, values, heights = values) {
      this.shown.forEach((one, at) => { one.values = values[at]; });
      this.plot.setData([times, ...heights]);
      // Without a mouse over it, the legend has the last values.
      if (this.plot.cursor.left < 0 || this.plot.cursor.left == null) this.plot.setLegend({ idx: times.length - 1 });
    }
  }

  // The change of a counter in a second, between samples side by side.
  const rates = (samples, key) => samples.map((sample, at) => {
    const before = samples[at - 1];
    if (sample == null || before?.[key] == null || sample[key] == null) return null;
    return (sample[key] - before[key]) / ((sample.at - before.at) / 1000);
  });

  return class Charts {
    constructor(section) {
      this.section = section;
      this.charts = {};
      for (const query of ["(prefers-color-scheme: dark)", "print"]) {
        matchMedia(query).addEventListener("change", () => Object.values(this.charts).forEach((chart) => chart.repaint()));
      }
    }

    figure(name) { return this.section.querySelector(`[data-chart=${name}]`); }

    // The largest parts of all ledgers, in the order of these; what is not among them is one.
    partsOf(ledgers) {
      const most = new Map();
      for (const { items } of ledgers) {
        for (const { key, name, bytes } of items) most.set(key, { key, label: name, bytes: Math.max(bytes, most.get(key)?.bytes ?? 0) });
      }
      const least = [...most.values()].map((part) => part.bytes).sort((a, b) => b - a)[PARTS - 1] ?? 0;
      return [...most.values()].filter((part) => part.bytes >= least).slice(0, PARTS);
    }

    draw(samples, ledgers) {
      // A gap in the time is one in the lines.
      const rows = samples.flatMap((sample, at) => at && sample.at - samples[at - 1].at > GAP * 1000 ? [null, sample] : [sample]);
      const times = rows.map((row, at) => (row ? row.at : (rows[at - 1].at + rows[at + 1].at) / 2) / 1000);
      const of = (key) => rows.map((row) => row?.[key] ?? null);
      const gc = rates(rows, "seconds").map((value) => value == null ? null : value * 100);
      const all = { rss: of("rss"), live: of("live"), old: of("old"), gc, rate: rates(rows, "allocated") };
      this.draw_rss(times, rows, ledgers, all.rss);
      this.chart("slots", [line("live", "--bar"), line("old", "--link")], { format: count, tick: tickCount }).set(times, [all.live, all.old]);
      this.chart("gc", [line("of the time", "--bar")], { format: percent, tick: (value) => `${+value.toFixed(2)} %` }).set(times, [all.gc]);
      this.chart("rate", [line("objects", "--bar")], { format: perSecond, tick: tickCount }).set(times, [all.rate]);
      return [
        ["RSS", all.rss, bytes], ...this.partRows(ledgers), ["Live slots", all.live, count], ["Old objects", all.old, count],
        ["Time in the GC", all.gc, percent], ["Objects allocated", all.rate, perSecond],
      ];
    }

    chart(name, series, format) {
      return this.charts[name] ??= new Chart(this.figure(name), series, format);
    }

    bytesOf(ledger, key) { return ledger.items.find((item) => item.key === key)?.bytes ?? 0; }

    partRows(ledgers) {
      return this.partsOf(ledgers).map(({ key, label }) => [`RSS: ${label}`, ledgers.map((ledger) => this.bytesOf(ledger, key)), bytes]);
    }

    // Areas on each other, as of the last ledger before each sample; RSS is a line over them.
    draw_rss(times, rows, ledgers, rss) {
      const parts = this.partsOf(ledgers);
      const keys = parts.map(({ key }) => key).join();
      if (this.charts.rss && this.drawn !== keys) {
        this.charts.rss.remove();
        delete this.charts.rss;
      }
      this.drawn = keys;
      let next = 0;
      const known = rows.map((row) => {
        while (row && next < ledgers.length && ledgers[next].at <= row.at + 1000) next += 1;
        return row && next ? ledgers[next - 1] : null;
      });
      const values = parts.map(({ key }) => known.map((ledger) => ledger && this.bytesOf(ledger, key)));
      if (parts.length) values.push(known.map((ledger) => ledger && ledger.rss - parts.reduce((sum, { key }) => sum + this.bytesOf(ledger, key), 0)));
      const heights = values.map((_, at) => known.map((ledger, row) => ledger && values.slice(0, at + 1).reduce((sum, part) => sum + part[row], 0)));
      const areas = values.map((_, at) => ({ ...line(parts[at]?.label ?? "the rest", `--h${at}`), area: true }));
      // The highest is drawn first: the others cover it.
      this.chart("rss", [...areas.reverse(), line("RSS", "--accent")], { format: bytes, tick: tickBytes, increments: binary })
        .set(times, [...values.reverse(), rss], [...heights.reverse(), rss]);
    }

    static bytes = bytes;
    static count = count;
    static time = time;
  };
})();
