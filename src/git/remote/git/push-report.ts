import { cleanText } from '../../../foundation/text/clean-text.ts';
import type { PushRejection } from '../../refs/push-conflict.ts';

/** Moved on, forced, removed, new. */
const CHANGED: ReadonlySet<string> = new Set([' ', '+', '-', '*']);

/** Parses the output of `git push --porcelain`: the rejected refs and the changed ones. */
export function parsePushReport(stdout: string): { rejections: PushRejection[]; changed: string[] } {
  const rejections: PushRejection[] = [];
  const changed: string[] = [];
  for (const line of stdout.split('\n')) {
    const [flag = '', refs, summary] = line.split('\t');
    if (refs === undefined || summary === undefined) continue;
    const ref = refs.slice(refs.indexOf(':') + 1);
    if (CHANGED.has(flag)) changed.push(ref);
    if (flag === '!') rejections.push({ ref, reason: cleanText(/\((.*)\)\s*$/s.exec(summary)?.[1] ?? summary) });
  }
  return { rejections, changed };
}

/** The server's own output: the lines that git marks with `remote:`. */
export function remoteOutput(stderr: string): string[] {
  return [...stderr.matchAll(/^remote: ?(.*)$/gm)].map(([, line]) => line ?? '');
}
