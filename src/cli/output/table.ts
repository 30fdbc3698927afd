import { printable } from './printable.ts';

export interface TableOptions {
  readonly headers?: boolean;
  /** Spaces before each line. */
  readonly indent?: number;
  /** Colours a cell that is padded already. `column` counts from 0. */
  readonly paint?: (padded: string, column: number, value: string) => string;
}

const GAP = '   ';

/** Columns as kubectl prints them: upper-case headers, three spaces between, the last column not padded. */
export function table(
  headers: readonly string[],
  rows: readonly (readonly string[])[],
  options: TableOptions = {},
): string {
  const cells = rows.map((row) => headers.map((_header, column) => printable(row[column] ?? '')));
  const titles = headers.map((header) => header.toUpperCase());
  const all = options.headers === false ? cells : [titles, ...cells];
  const widths = headers.map((_header, column) => Math.max(0, ...all.map((row) => widthOf(row[column] ?? ''))));
  const indent = ' '.repeat(options.indent ?? 0);
  const lines = all.map((row) => {
    const texts = row.map((cell, column) => {
      const last = column === row.length - 1;
      const padded = last ? cell : cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell));
      return options.paint === undefined || row === titles ? padded : options.paint(padded, column, cell);
    });
    return `${indent}${texts.join(GAP)}`.trimEnd();
  });
  return lines.map((line) => `${line}\n`).join('');
}

/** Columns that a text takes, near enough: characters of East Asian scripts and emoji take two, combining marks none. */
function widthOf(text: string): number {
  let width = 0;
  for (const character of text) {
    if (/\p{Mark}/u.test(character)) continue;
    width +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u.test(
        character,
      )
        ? 2
        : 1;
  }
  return width;
}
