import { lineSteps } from '../../foundation/text/line-steps.ts';

/** Lines of the plain text, from `from` to before `to`, that are other ones in another text. */
interface Change {
  readonly from: number;
  readonly to: number;
  readonly lines: readonly string[];
}

/**
 * The written text, with what changed from `plain` to `changed`, where `plain` is the same document as `written` in the format of a
 * printer, and `changed` another one in that format: a line-wise three-way merge in which changed places win.
 */
export function keepFormat(written: string, plain: string, changed: string): string {
  if (written === plain) return changed;
  const lines = plain.split('\n');
  const formats = changesOf(lines, written.split('\n'));
  const edits = changesOf(lines, changed.split('\n'));
  const result: string[] = [];
  let at = 0;
  while (formats.length + edits.length > 0) {
    const first = Math.min(formats[0]?.from ?? Number.POSITIVE_INFINITY, edits[0]?.from ?? Number.POSITIVE_INFINITY);
    append(result, lines.slice(at, first));
    // Everything that overlaps is one place.
    let end = first;
    const here = { formats: [] as Change[], edits: [] as Change[] };
    for (let found = true; found; ) {
      found = false;
      for (const [queue, taken] of [
        [formats, here.formats],
        [edits, here.edits],
      ] as const) {
        const next = queue[0];
        if (next === undefined || (next.from >= end && next.from !== first)) continue;
        queue.shift();
        taken.push(next);
        end = Math.max(end, next.to);
        found = true;
      }
    }
    append(result, applied(lines, first, end, here.edits.length > 0 ? here.edits : here.formats));
    at = end;
  }
  return [...result, ...lines.slice(at)].join('\n');
}

/** One by one: a call has at most about a hundred thousand arguments, and a text may have more lines. */
function append(result: string[], lines: readonly string[]): void {
  for (const line of lines) result.push(line);
}

function applied(lines: readonly string[], from: number, to: number, changes: readonly Change[]): string[] {
  const result: string[] = [];
  let at = from;
  for (const change of changes) {
    append(result, lines.slice(at, change.from));
    append(result, change.lines);
    at = change.to;
  }
  return [...result, ...lines.slice(at, to)];
}

function changesOf(before: readonly string[], after: readonly string[]): Change[] {
  const changes: Change[] = [];
  let at = 0;
  let open: { from: number; lines: string[] } | undefined;
  for (const { kind, line } of lineSteps(before, after)) {
    if (kind === ' ') {
      if (open !== undefined) changes.push({ from: open.from, to: at, lines: open.lines });
      open = undefined;
      at++;
      continue;
    }
    open ??= { from: at, lines: [] };
    if (kind === '+') open.lines.push(line);
    else at++;
  }
  if (open !== undefined) changes.push({ from: open.from, to: at, lines: open.lines });
  return changes;
}
