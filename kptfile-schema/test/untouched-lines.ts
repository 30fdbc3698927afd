import { type Document, isMap, isSeq, LineCounter, parseDocument, visit } from 'yaml';
import { deepEqual } from '../model/deep-equal.ts';
import type { Kptfile } from '../model/kptfile-schema.ts';

type Path = readonly (string | number)[];

/** Lines `from` (inclusive) to `to` (exclusive), from 0. */
interface LineRange {
  readonly from: number;
  readonly to: number;
}

const NONE: LineRange = { from: 0, to: 0 };

/**
 * The lines of the old text, by number from 0, that an edit had no business to change but did. Which lines an edit
 * may change follows from the two models and from where the `yaml` library, which the editor does not use, finds
 * the part of the text in which they differ.
 */
export function wronglyChangedLines(text: string, result: string, before: Kptfile, after: Kptfile): number[] {
  const open = !text.endsWith('\n');
  const old = linesOf(text, open);
  const fresh = linesOf(result, open);
  const allowed = allowedLines(text, before, after);
  const from = allowed.from;
  let to = allowed.to;
  // The one exception: comments that would become part of the block text above, once the lines between are removed.
  if (endsBlockText(text, from)) while (/^\s+#/.test(old[to] ?? '')) to++;
  const wrong: number[] = [];
  let next = 0;
  for (const [index, line] of old.entries()) {
    if (index >= from && index < to) continue;
    const found = fresh.indexOf(line, next);
    if (found === -1) wrong.push(index);
    else next = found + 1;
  }
  return wrong;
}

interface Parsed {
  readonly text: string;
  readonly document: Document.Parsed;
  readonly lines: LineCounter;
}

let latest: Parsed | undefined;

/** Many edits of one text follow each other, and parsing is the slow part. */
function parsed(text: string): Parsed {
  if (latest?.text !== text) {
    const lines = new LineCounter();
    const document = parseDocument(text, { lineCounter: lines, strict: false, uniqueKeys: false });
    latest = { text, document, lines };
  }
  return latest;
}

/** Whether a block text, with the blank lines below it, ends right above a line. */
function endsBlockText(text: string, line: number): boolean {
  const { document, lines } = parsed(text);
  let found = false;
  visit(document, {
    Scalar(_, { type, range }) {
      if (type !== 'BLOCK_LITERAL' && type !== 'BLOCK_FOLDED') return;
      found ||= lines.linePos(range?.[1] ?? 0).line - 1 === line;
    },
  });
  return found;
}

/** Lines with their breaks. If the old text has no final break, both texts are given one. */
function linesOf(text: string, open: boolean): string[] {
  const lineBreak = text.includes('\r\n') ? '\r\n' : '\n';
  return (open ? text + lineBreak : text).split(/(?<=\n)/);
}

/** No lines at all if the change only adds some. */
function allowedLines(text: string, before: Kptfile, after: Kptfile): LineRange {
  const { path, exists } = changedPart(before, after);
  const { document, lines } = parsed(text);
  const lineOf = (offset: number): number => Math.max(0, lines.linePos(offset).line - 1);
  let node: unknown = document.contents;
  let from = 0;
  let flow = false;
  for (const [depth, step] of path.entries()) {
    if (isMap(node)) {
      flow ||= node.flow === true;
      const index = node.items.findIndex(
        ({ key }) => String((key as { value?: unknown } | null)?.value ?? key) === String(step),
      );
      const pair = node.items[index];
      if (pair === undefined) {
        // A new key: only a flow mapping, or the first key of a list item, changes other lines.
        return flow || typeof path[depth - 1] === 'number' ? covering(node, from, lineOf) : NONE;
      }
      // Removing the first key of a list item moves the next one up to the dash.
      if (index === 0 && depth > 0 && typeof path[depth - 1] === 'number') return covering(node, from, lineOf);
      from = lineOf((pair.key as { range: [number, number, number] }).range[0]);
      node = pair.value;
    } else if (isSeq(node)) {
      flow ||= node.flow === true;
      const item = node.items[Number(step)];
      if (item === undefined) return flow ? covering(node, from, lineOf) : NONE;
      if (!exists && depth === path.length - 1) return flow ? covering(node, from, lineOf) : NONE;
      from = lineOf((item as { range: [number, number, number] }).range[0]);
      node = item;
    } else break;
    if (flow) return covering(node, from, lineOf);
  }
  return covering(node, from, lineOf);
}

function covering(node: unknown, from: number, lineOf: (offset: number) => number): LineRange {
  const end = (node as { range?: [number, number, number] } | null)?.range?.[1];
  // The range of a block text or collection ends behind its last line break.
  return { from, to: end === undefined ? from + 1 : Math.max(from, lineOf(Math.max(0, end - 1))) + 1 };
}

/** The smallest part in which two models differ; `exists` is true if the older one has it. */
function changedPart(before: unknown, after: unknown): { path: Path; exists: boolean } {
  if (Array.isArray(before) && Array.isArray(after)) {
    let index = 0;
    while (index < before.length && deepEqual(before[index], after[index])) index++;
    let tail = 0;
    const shorter = Math.min(before.length, after.length) - index;
    while (tail < shorter && deepEqual(before.at(-1 - tail), after.at(-1 - tail))) tail++;
    const removed = before.length - index - tail;
    const added = after.length - index - tail;
    if (removed === 1 && added === 1) return inside(index, changedPart(before[index], after[index]));
    if (removed === 1 && added === 0) return { path: [index], exists: true };
    return removed === 0 ? { path: [index], exists: false } : { path: [], exists: true };
  }
  if (isRecord(before) && isRecord(after)) {
    const keys = new Set([...Object.keys(before), ...Object.keys(after)]);
    const changed = [...keys].filter((key) => !deepEqual(before[key], after[key]));
    const [key] = changed;
    if (key === undefined || changed.length > 1) return { path: [], exists: true };
    if (!Object.hasOwn(before, key)) return { path: [key], exists: false };
    if (!Object.hasOwn(after, key)) return { path: [key], exists: true };
    return inside(key, changedPart(before[key], after[key]));
  }
  return { path: [], exists: true };
}

function inside(step: string | number, part: { path: Path; exists: boolean }): { path: Path; exists: boolean } {
  return { path: [step, ...part.path], exists: part.exists };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
