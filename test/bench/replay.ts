import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import { dirname, join } from 'node:path';
import { deflateSync } from 'node:zlib';
import type { RefUpdate } from '../../src/git/git-repository.ts';

/** One recorded transaction: its loose objects (header and content, by their path) and its ref updates. */
export interface RecordedTransaction {
  readonly objects: ReadonlyMap<string, Buffer>;
  readonly updates: readonly RefUpdate[];
}

/**
 * The floor for writes: the same objects hashed, compressed and written as loose files (temporary file, fsync, rename, fsync of the
 * folder), and the same refs through one kept-open `git update-ref --stdin` that fsyncs them, and their folders. It knows what to
 * write, and evaluates, reads and stores nothing else.
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
    for (const data of objects.values()) writeObject(path, data, folders);
    for (const folder of folders) syncFolder(folder);
    const refFolders = foldersToSync(path, updates);
    output = '';
    const done = new Promise<void>((resolve) => {
      wake = resolve;
    });
    child.stdin.write(`start\n${updates.map(command).join('')}prepare\ncommit\n`);
    await done;
    for (const folder of refFolders) syncFolder(folder);
  }
  const elapsed = performance.now() - started;
  child.stdin.end();
  await once(child, 'close');
  return elapsed;
}

/** Git syncs the ref files, not the folders that contain them: that of each ref, and new folders above it. */
function foldersToSync(path: string, updates: readonly RefUpdate[]): Set<string> {
  const folders = new Set<string>();
  for (const { ref } of updates) {
    let folder = dirname(join(path, ref));
    folders.add(folder);
    while (!fs.existsSync(folder)) {
      folder = dirname(folder);
      folders.add(folder);
    }
  }
  return folders;
}

function writeObject(path: string, data: Buffer, folders: Set<string>): void {
  const oid = createHash('sha1').update(data).digest('hex');
  const folder = join(path, 'objects', oid.slice(0, 2));
  const target = join(folder, oid.slice(2));
  if (fs.existsSync(target)) return;
  const compressed = deflateSync(data, { level: 1 });
  fs.mkdirSync(folder, { recursive: true });
  const temporary = join(folder, `tmp_obj_${process.pid}`);
  const handle = fs.openSync(temporary, 'wx', 0o444);
  fs.writeSync(handle, compressed);
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
