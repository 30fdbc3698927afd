import { readFileSync } from 'node:fs';
import { packageRoot } from './package-root.ts';

/** The version of this package, from its package.json. */
export function sluiceVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('package.json', packageRoot()), 'utf8')) as { version?: unknown };
  return String(manifest.version);
}
