import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { printable } from '../output/printable.ts';
import { toJson } from '../output/structured.ts';
import type { Invocation, Outcome } from '../program/invocation.ts';
import { packageRoot } from './package-root.ts';

/** Older ones lack what the native engine needs. */
const OLDEST_GIT = [2, 39] as const;

interface Versions {
  readonly sluice: string;
  readonly node: string;
  /** Empty if there is no git. */
  readonly git: string;
  readonly engine: 'native' | 'isomorphic-git';
  /** What the engine cannot do; empty for the native one. */
  readonly limits: string;
}

/** `sluice version` */
export async function version(options: { output: string }, { terminal }: Invocation): Promise<Outcome> {
  const git = await gitVersion();
  const native = isRecent(git);
  const limits = native
    ? ''
    : `${git === '' ? 'There is no git on this machine' : `git ${git} is older than ${OLDEST_GIT.join('.')}`}: local repositories of one process only, no remote ones; install git ${OLDEST_GIT.join('.')} or newer`;
  const versions: Versions = {
    sluice: sluiceVersion(),
    node: process.versions.node,
    git,
    engine: native ? 'native' : 'isomorphic-git',
    limits,
  };
  if (options.output === 'json') {
    terminal.out.write(toJson(versions));
    return 0;
  }
  terminal.line(`sluice ${versions.sluice}`);
  terminal.line(`node   ${versions.node}`);
  terminal.line(`git    ${git === '' ? 'none' : printable(git)} (${versions.engine} engine)`);
  if (limits !== '') terminal.line(limits);
  return 0;
}

function sluiceVersion(): string {
  const manifest = JSON.parse(readFileSync(new URL('package.json', packageRoot()), 'utf8')) as { version?: unknown };
  return String(manifest.version);
}

async function gitVersion(): Promise<string> {
  try {
    const { stdout } = await promisify(execFile)('git', ['--version'], { timeout: 10_000 });
    return stdout.replace(/^git version\s*/, '').trim();
  } catch {
    // Not installed, or it cannot be run: both mean that the other engine is used.
    return '';
  }
}

function isRecent(text: string): boolean {
  const [major = 0, minor = 0] = text.split('.').map((part) => Number.parseInt(part, 10));
  return major > OLDEST_GIT[0] || (major === OLDEST_GIT[0] && minor >= OLDEST_GIT[1]);
}
