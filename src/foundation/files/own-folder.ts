import { mkdtemp, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Makes a temporary folder in `parent` that carries the number of this process, so that a later one finds it if this one is killed. */
export function makeOwnFolder(parent: string, prefix: string): Promise<string> {
  return mkdtemp(join(parent, `${prefix}${process.pid}-`));
}

/** Lists the folders that ended processes created there with `makeOwnFolder`. */
export async function abandonedFolders(parent: string, prefix: string): Promise<string[]> {
  const names = await readdir(parent);
  return names
    .filter((name) => name.startsWith(prefix) && isAbandoned(name.slice(prefix.length)))
    .map((name) => join(parent, name));
}

function isAbandoned(rest: string): boolean {
  const pid = /^([1-9]\d{0,8})-\w{6}$/.exec(rest)?.[1];
  if (pid === undefined) return false;
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    // EPERM: it runs, as another user.
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
  return false;
}
