import type { Finding } from './finding.ts';

/** Modes of entries of Git that are no files. */
export const LINK = '120000';
export const SUBMODULE = '160000';

/** Why a package cannot have an entry of this mode. */
export function notAFile(mode: string): Pick<Finding, 'severity' | 'message' | 'code'> {
  const what = mode === LINK ? 'a symbolic link' : 'a submodule';
  const message = `it is ${what}, which packages do not contain: it is neither rendered nor delivered; replace it by files`;
  return { severity: 'error', message, code: 'NotAFile' };
}
