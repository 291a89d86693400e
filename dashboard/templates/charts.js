// Draws a chart above each table of numbers over time, with uPlot. Without this script the table has the same.
"use strict";
(() => {
  const HEIGHT = 240;
  const DASHES = [[], [6, 3], [2, 3]];

  /** Reads a table: times in seconds, then the numbers of each series. A cell without a number is a gap. */
  function read(table) {
    const names = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
    const rows = [...table.tBodies[0].rows];
    const times = rows.map((row) => Date.parse(row.querySelector("time").dateTime) / 1000);
    const numbers = names.map((_, place) =>
      rows.map(({ cells }) => (cells[place + 1].textContent === "" ? null : Number(cells[place + 1].textContent))),
    );
    return { names, data: [times, ...numbers] };
  }

  function draw(figure) {
    const { names, data } = read(figure.querySelector("table"));
    const style = getComputedStyle(document.documentElement);
    const token = (name) => style.getPropertyValue(name).trim();
    const colors = [1, 2, 3, 4, 5, 6].map((number) => token(`--chart-${number}`));
    // Rows are days in UTC, or moments.
    const isDaily = /^\d{4}-\d\d-\d\d$/.test(figure.querySelector("time")?.dateTime ?? "");
    const axis = { stroke: token("--soft"), grid: { stroke: token("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
    const short = new Intl.NumberFormat("en", { notation: "compact" });
    return new uPlot(
      {
        width: figure.clientWidth - 32,
        height: HEIGHT,
        tzDate: isDaily ? (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC") : undefined,
        axes: [axis, { ...axis, size: 56, values: (_, splits) => splits.map((split) => short.format(split)) }],
        scales: { y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 0) * 1.08)] } },
        legend: { isolate: true },
        series: [
          { value: isDaily ? "{D} {MMM} {YYYY}" : "{D} {MMM} {YYYY}, {HH}:{mm}" },
          ...names.map((label, place) => ({
            label,
            stroke: colors[place % colors.length],
            dash: DASHES[Math.floor(place / colors.length) % DASHES.length],
            width: 2,
            spanGaps: true,
            points: { show: data[0].length < 40, size: 5 },
            value: (_, number) => (number === null ? "–" : number.toLocaleString("en")),
          })),
        ],
      },
      data,
      (chart, ready) => {
        figure.insertBefore(chart.root, figure.querySelector("details"));
        ready();
      },
    );
  }

  for (const figure of document.querySelectorAll("[data-chart]")) {
    let chart = draw(figure);
    // The table says it to those who can't see the chart.
    const hide = () => chart.root.setAttribute("aria-hidden", "true");
    hide();
    new ResizeObserver(() => chart.setSize({ width: figure.clientWidth - 32, height: HEIGHT })).observe(figure);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      chart.destroy();
      chart = draw(figure);
      hide();
    });
  }
})();
