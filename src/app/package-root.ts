import { existsSync } from 'node:fs';
import { SluiceError } from '../foundation/sluice-error.ts';

/** Returns the folder of the installed package or checkout, with a trailing slash. Compiled files are one folder deeper. */
export function packageRoot(): URL {
  for (const up of ['../../', '../../../']) {
    const candidate = new URL(up, import.meta.url);
    if (existsSync(new URL('bin/sluice.js', candidate))) return candidate;
  }
  throw new SluiceError('Internal', 'the installation is not complete: bin/sluice.js is missing');
}
