import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** A Node.js of this machine that is older than the one that Sluice needs. */
export function olderNode(): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/local/bin', '/usr/bin'];
  return folders
    .map((folder) => join(folder, 'node'))
    .find((node) => existsSync(node) && majorVersion(execFileSync(node, ['--version'], { encoding: 'utf8' })) < 24);
}

/** The 24 of `v24.1.0`. */
export function majorVersion(version: string): number {
  return Number(/^v(\d+)/.exec(version)?.[1]);
}
