import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const fixture = fileURLToPath(new URL('../fixtures/unsigned-format/', import.meta.url));

/** Puts the data folder of the version without signed statements at a path; returns the path of its repository `packages`. */
export function unsignedFormat(data: string): string {
  cpSync(join(fixture, 'data'), data, { recursive: true });
  const repository = join(data, 'repositories', 'packages.git');
  mkdirSync(join(data, 'repositories'), { recursive: true });
  execFileSync('git', ['clone', '--quiet', '--mirror', join(fixture, 'packages.bundle'), repository]);
  execFileSync('git', ['--git-dir', repository, 'config', '--remove-section', 'remote.origin']);
  return repository;
}
