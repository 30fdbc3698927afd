import type { PushRejection } from '../push-conflict.ts';
import { cleanText } from '../remote-url.ts';

/** The refs that `git push --porcelain` reports as rejected. */
export function parsePushReport(stdout: string): PushRejection[] {
  const rejections: PushRejection[] = [];
  for (const line of stdout.split('\n')) {
    const [flag, refs, summary] = line.split('\t');
    if (flag !== '!' || refs === undefined || summary === undefined) continue;
    rejections.push({
      ref: refs.slice(refs.indexOf(':') + 1),
      reason: cleanText(/\((.*)\)\s*$/s.exec(summary)?.[1] ?? summary),
    });
  }
  return rejections;
}

/** What the server itself wrote: the lines that git marks with `remote:`. */
export function remoteWords(stderr: string): string[] {
  return [...stderr.matchAll(/^remote: ?(.*)$/gm)].map(([, line]) => line ?? '');
}
