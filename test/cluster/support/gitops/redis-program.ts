import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { userCacheFolder } from '../../../support/built-once.ts';

const run = promisify(execFile);
const DOWNLOAD_TIMEOUT_MS = 60_000;
/** The server, and the libraries that it needs and a small system does not have. */
const PACKAGES = ['redis-server', 'redis-tools', 'libjemalloc2', 'liblzf1'];

export interface RedisProgram {
  readonly path: string;
  readonly environment: Readonly<Record<string, string>>;
}

/** A redis-server: that of the system, else the one of Debian's package, which is unpacked without installation. */
export async function redisProgram(): Promise<RedisProgram | { readonly missing: string }> {
  if (await works('redis-server', {})) return { path: 'redis-server', environment: {} };
  const cache = join(userCacheFolder('sluice-cluster'), 'redis');
  const path = join(cache, 'usr/bin/redis-server');
  // The libraries are in a folder that is named after the architecture.
  const environment = () => ({ LD_LIBRARY_PATH: globSync(join(cache, 'usr/lib/*-linux-*')).join(':') });
  if (await works(path, environment())) return { path, environment: environment() };
  await download(cache).catch(() => undefined);
  if (await works(path, environment())) return { path, environment: environment() };
  return { missing: "redis-server is neither installed nor can Debian's package be downloaded" };
}

async function works(path: string, environment: Readonly<Record<string, string>>): Promise<boolean> {
  const options = { env: { ...process.env, ...environment }, timeout: DOWNLOAD_TIMEOUT_MS };
  return run(path, ['--version'], options).then(
    () => true,
    () => false,
  );
}

async function download(cache: string): Promise<void> {
  await mkdir(dirname(cache), { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(`${cache}-`);
  try {
    const options = { cwd: folder, timeout: DOWNLOAD_TIMEOUT_MS };
    const fetch = () => run('apt-get', ['download', '-qq', ...PACKAGES], options);
    await fetch().catch(async () => {
      await run('apt-get', ['update', '-qq'], options);
      await fetch();
    });
    for (const file of globSync('*.deb', { cwd: folder })) await run('dpkg-deb', ['--extract', file, 'root'], options);
    await rename(join(folder, 'root'), cache);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
