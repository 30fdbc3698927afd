/** A place in a script, packed: line and column, both from 1. 0 is no place. */
export type Position = number;

const COLUMNS = 1 << 20;

export function positionOf(line: number, column: number): Position {
  return line * COLUMNS + Math.min(column, COLUMNS - 1);
}

export function lineOf(position: Position): number {
  return Math.floor(position / COLUMNS);
}

export function columnOf(position: Position): number {
  return position % COLUMNS;
}
