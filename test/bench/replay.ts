import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { dirname, join } from 'node:path';
import type { RefUpdate } from '../../src/git/git-repository.ts';

/** One transaction as it was made: the loose objects that it brought (compressed, by their path) and its ref updates. */
export interface RecordedTransaction {
  readonly objects: ReadonlyMap<string, Buffer>;
  readonly updates: readonly RefUpdate[];
}

/**
 * The floor for writes: the same objects, already hashed and compressed, written as loose files (temporary file, fsync, rename,
 * fsync of the folder), and the same refs through one kept-open `git update-ref --stdin` that fsyncs them, and their folders.
 */
export async function replay(path: string, transactions: readonly RecordedTransaction[]): Promise<number> {
  const child = spawn('git', ['-C', path, '-c', 'core.fsync=reference', 'update-ref', '--stdin'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let output = '';
  let wake: () => void = () => undefined;
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    if (output.includes('commit: ok\n')) wake();
  });
  const started = performance.now();
  for (const { objects, updates } of transactions) {
    const folders = new Set<string>();
    for (const [name, data] of objects) writeObject(path, name, data, folders);
    for (const folder of folders) syncFolder(folder);
    output = '';
    const done = new Promise<void>((resolve) => {
      wake = resolve;
    });
    child.stdin.write(`start\n${updates.map(command).join('')}prepare\ncommit\n`);
    await done;
    for (const folder of refFolders(path, updates)) syncFolder(folder);
  }
  const elapsed = performance.now() - started;
  child.stdin.end();
  await once(child, 'close');
  return elapsed;
}

/** Git syncs the ref files, not the folders that they are renamed in. */
function refFolders(path: string, updates: readonly RefUpdate[]): Set<string> {
  const folders = new Set<string>();
  for (const { ref } of updates) {
    for (let folder = dirname(ref); folder !== '.'; folder = dirname(folder)) folders.add(join(path, folder));
  }
  return folders;
}

function writeObject(path: string, name: string, data: Buffer, folders: Set<string>): void {
  const target = join(path, 'objects', name);
  const folder = join(target, '..');
  fs.mkdirSync(folder, { recursive: true });
  const temporary = join(folder, `tmp_obj_${process.pid}`);
  const handle = fs.openSync(temporary, 'wx', 0o444);
  fs.writeSync(handle, data);
  fs.fsyncSync(handle);
  fs.closeSync(handle);
  fs.renameSync(temporary, target);
  folders.add(folder);
}

function syncFolder(folder: string): void {
  let handle: number;
  try {
    handle = fs.openSync(folder, 'r');
  } catch (error) {
    // Git removes a folder with the last ref in it.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return;
    throw error;
  }
  fs.fsyncSync(handle);
  fs.closeSync(handle);
}

function command(update: RefUpdate): string {
  switch (update.type) {
    case 'create':
      return `create ${update.ref} ${update.new}\n`;
    case 'update':
      return `update ${update.ref} ${update.new} ${update.old}\n`;
    case 'delete':
      return `delete ${update.ref} ${update.old}\n`;
    case 'verify':
      return `verify ${update.ref} ${update.old ?? '0'.repeat(40)}\n`;
  }
}

/** Names of all loose objects. */
export function looseObjects(path: string): Set<string> {
  const found = new Set<string>();
  for (const folder of fs.readdirSync(join(path, 'objects'))) {
    if (!/^[0-9a-f]{2}$/.test(folder)) continue;
    for (const name of fs.readdirSync(join(path, 'objects', folder))) {
      if (/^[0-9a-f]{38}$/.test(name)) found.add(`${folder}/${name}`);
    }
  }
  return found;
}
