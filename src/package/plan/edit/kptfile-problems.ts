import { lintKptfile } from '../../../../kptfile-schema/index.ts';
import { isKptfilePath } from '../../merge/package-files.ts';

/** Problems that one message names; more would not help a reader. */
const MAX_SHOWN = 5;

/**
 * Returns the errors that kpt reports for the Kptfiles of a package, one line each with file, line and column, such as a misspelt
 * field. Sluice reads such Kptfiles leniently, so that a misspelt gate would be ignored. A Kptfile that cannot be read at all is
 * included.
 */
export function kptfileProblems(files: ReadonlyMap<string, Uint8Array | null>): string[] {
  const problems: string[] = [];
  for (const [path, data] of files) {
    if (data === null || !isKptfilePath(path)) continue;
    for (const { severity, line, column, message } of lintKptfile(data))
      if (severity === 'error') problems.push(`${path}:${line}:${column}: ${message}`);
  }
  return problems;
}

/** The problems in one sentence; undefined if there are none. */
export function describeKptfileProblems(problems: readonly string[]): string | undefined {
  if (problems.length === 0) return undefined;
  const more = problems.length - MAX_SHOWN;
  return [...problems.slice(0, MAX_SHOWN), ...(more > 0 ? [`and ${more} more`] : [])].join(' ');
}
