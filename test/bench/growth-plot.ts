export interface Curve {
  readonly job: string;
  readonly layout: 'nested' | 'flat';
  /** Packages and milliseconds. */
  readonly points: readonly (readonly [number, number])[];
}

/** Distinguishable in print and for colour-blind readers: each series has its own mark too. */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#b58900', '#56b4e9', '#7a5195', '#888888'];
const WIDTH = 920;
const HEIGHT = 520;
const PLOT = { left: 80, top: 24, right: 610, bottom: 460 };

/** An SVG that shows how the cost of each operation grows with the packages, both axes logarithmic, on a light or dark page. */
export function growthPlot(curves: readonly Curve[]): string {
  const points = curves.flatMap((curve) => curve.points);
  const xs = points.map(([packages]) => packages);
  const ys = points.map(([, taken]) => taken);
  const x = logScale(Math.min(...xs), Math.max(...xs), PLOT.left + 20, PLOT.right - 20);
  const y = logScale(...decades(Math.min(...ys), Math.max(...ys)), PLOT.bottom, PLOT.top);
  const jobs = [...new Set(curves.map(({ job }) => job))];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12" role="img">`,
    '<title>Cost of each operation by the number of packages</title>',
    '<style>text{fill:#24292f}.axis{stroke:#8c959f}.grid{stroke:#8c959f;opacity:.3}@media(prefers-color-scheme:dark){text{fill:#d1d9e0}}</style>',
    ...yAxis(ys, y),
    ...xAxis([...new Set(xs)], x),
    ...curves.map((curve) => line(curve, jobs.indexOf(curve.job), x, y)),
    ...legend(jobs, [...new Set(curves.map(({ layout }) => layout))]),
    '</svg>\n',
  ].join('\n');
}

function logScale(from: number, to: number, start: number, end: number): (value: number) => number {
  const span = Math.log(to / from) || 1;
  return (value) => start + ((end - start) * Math.log(value / from)) / span;
}

function decades(from: number, to: number): [number, number] {
  return [10 ** Math.floor(Math.log10(from)), 10 ** Math.ceil(Math.log10(to))];
}

function yAxis(values: readonly number[], y: (value: number) => number): string[] {
  const [from, to] = decades(Math.min(...values), Math.max(...values));
  const marks: string[] = [];
  for (let value = from; value <= to * 1.001; value *= 10) {
    const at = y(value).toFixed(1);
    marks.push(`<line class="grid" x1="${PLOT.left}" x2="${PLOT.right}" y1="${at}" y2="${at}"/>`);
    marks.push(`<text x="${PLOT.left - 8}" y="${at}" dy="4" text-anchor="end">${duration(value)}</text>`);
  }
  const middle = (PLOT.top + PLOT.bottom) / 2;
  return [
    ...marks,
    `<line class="axis" x1="${PLOT.left}" x2="${PLOT.left}" y1="${PLOT.top}" y2="${PLOT.bottom}"/>`,
    `<text transform="translate(18 ${middle}) rotate(-90)" text-anchor="middle">time of one operation</text>`,
  ];
}

function xAxis(values: readonly number[], x: (value: number) => number): string[] {
  const marks = values.map((value) => {
    const at = x(value).toFixed(1);
    const line = `<line class="axis" x1="${at}" x2="${at}" y1="${PLOT.bottom}" y2="${PLOT.bottom + 5}"/>`;
    return `${line}<text x="${at}" y="${PLOT.bottom + 20}" text-anchor="middle">${value.toLocaleString('en')}</text>`;
  });
  const middle = (PLOT.left + PLOT.right) / 2;
  return [
    `<line class="axis" x1="${PLOT.left}" x2="${PLOT.right}" y1="${PLOT.bottom}" y2="${PLOT.bottom}"/>`,
    ...marks,
    `<text x="${middle}" y="${HEIGHT - 18}" text-anchor="middle">packages, three revisions each</text>`,
  ];
}

function line(curve: Curve, job: number, x: (value: number) => number, y: (value: number) => number): string {
  const at = curve.points.map(([packages, taken]) => `${x(packages).toFixed(1)},${y(taken).toFixed(1)}`);
  const colour = COLOURS[job % COLOURS.length];
  const dots = at.map((point) => {
    const [cx, cy] = point.split(',');
    return `<circle cx="${cx}" cy="${cy}" r="3" fill="${colour}"/>`;
  });
  return `<polyline points="${at.join(' ')}" fill="none" stroke="${colour}" stroke-width="2"${dashes(curve.layout)}/>${dots.join('')}`;
}

function dashes(layout: Curve['layout']): string {
  return layout === 'flat' ? ' stroke-dasharray="6 4"' : '';
}

function legend(jobs: readonly string[], layouts: readonly Curve['layout'][]): string[] {
  const entry = (row: number, stroke: string, text: string) => {
    const at = PLOT.top + 10 + row * 22;
    return `<line x1="${PLOT.right + 24}" x2="${PLOT.right + 56}" y1="${at}" y2="${at}" ${stroke}/><text x="${PLOT.right + 64}" y="${at}" dy="4">${text}</text>`;
  };
  return [
    ...jobs.map((job, row) => entry(row, `stroke="${COLOURS[row % COLOURS.length]}" stroke-width="2"`, job)),
    ...layouts.map((layout, row) =>
      entry(jobs.length + 1 + row, `class="axis" stroke-width="2"${dashes(layout)}`, `${layout} repository`),
    ),
  ];
}

function duration(value: number): string {
  return value >= 1000 ? `${value / 1000} s` : `${Number(value.toPrecision(1))} ms`;
}
