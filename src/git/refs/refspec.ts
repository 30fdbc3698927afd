import { SluiceError } from '../../foundation/sluice-error.ts';
import { isOid } from '../objects/object-id.ts';
import { checkRefName } from '../ref-name.ts';

/** The local side of refspecs. */
export interface LocalSide {
  /** The common prefixes of all local names. */
  readonly prefixes: readonly string[];
  covers(name: string): boolean;
}

/**
 * Checks refspecs of a fetch: `[+]<source>:<ref>`, both with one `*` or none, or `^<source>` to leave refs out. Throws InvalidInput
 * for anything that would not name explicitly where it writes.
 */
export function checkRefspecs(refspecs: readonly string[]): LocalSide {
  const patterns: string[] = [];
  for (const refspec of refspecs) {
    const [source = '', target, ...rest] = refspec.replace(/^[+^]/, '').split(':');
    const negative = refspec.startsWith('^');
    if (rest.length > 0 || (target === undefined) !== negative) throw refused(refspec);
    if (source !== 'HEAD' && !isOid(source)) checkPattern(source, refspec);
    if (target === undefined) continue;
    checkPattern(target, refspec);
    if (source.includes('*') !== target.includes('*')) throw refused(refspec);
    patterns.push(target);
  }
  if (patterns.length === 0) throw new SluiceError('InvalidInput', 'a fetch needs at least one refspec');
  return {
    prefixes: patterns.map((pattern) => pattern.replace(/\*.*$/s, '')),
    covers: (name) => patterns.some((pattern) => matches(name, pattern)),
  };
}

function checkPattern(pattern: string, refspec: string): void {
  if (pattern.split('*').length > 2) throw refused(refspec);
  checkRefName(pattern.replace('*', 'x'));
}

function matches(name: string, pattern: string): boolean {
  const star = pattern.indexOf('*');
  if (star < 0) return name === pattern;
  const [head, tail] = [pattern.slice(0, star), pattern.slice(star + 1)];
  return name.length > head.length + tail.length && name.startsWith(head) && name.endsWith(tail);
}

function refused(refspec: string): SluiceError {
  return new SluiceError(
    'InvalidInput',
    `refspec ${JSON.stringify(refspec.slice(0, 200))} is refused: write "[+]refs/<remote>:refs/<local>"`,
  );
}
