import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const LIBRARY = 'usr/lib/*/faketime/libfaketimeMT.so.1';
const DOWNLOAD_TIMEOUT_MS = 30_000;

/**
 * The environment of a process whose wall clock differs from that of the machine, such as `+1h`. Its monotonic clock is right. Undefined if
 * Debian's package `libfaketime` is neither installed nor can be downloaded.
 */
export async function faketime(): Promise<((offset: string) => Readonly<Record<string, string>>) | undefined> {
  const cache = join(homedir(), '.cache', 'sluice-faketime');
  const find = () => globSync([`/${LIBRARY}`, join(cache, LIBRARY)])[0];
  if (find() === undefined) await download(cache).catch(() => undefined);
  const library = find();
  if (library === undefined) return undefined;
  return (offset) => ({
    LD_PRELOAD: library,
    FAKETIME: offset,
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    DONT_FAKE_MONOTONIC: '1',
    NO_FAKE_STAT: '1',
  });
}

async function download(cache: string): Promise<void> {
  await mkdir(dirname(cache), { recursive: true });
  const folder = await mkdtemp(`${cache}-`);
  try {
    const options = { cwd: folder, timeout: DOWNLOAD_TIMEOUT_MS };
    await run('apt-get', ['download', 'libfaketime'], options);
    const [file = ''] = globSync('*.deb', { cwd: folder });
    await run('dpkg', ['-x', file, 'root'], options);
    await rename(join(folder, 'root'), cache);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
