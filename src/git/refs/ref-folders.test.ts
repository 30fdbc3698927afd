import { mkdirSync, rmSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nextFileTime } from '../../../test/support/git/file-clock.ts';
import { temporaryFolder } from '../../../test/support/git/git-cli.ts';
import type { RefUpdate } from '../git-repository.ts';
import { RefFolders } from './ref-folders.ts';

const OID = '1234567890123456789012345678901234567890';
const create = (ref: string): RefUpdate => ({ type: 'create', ref, new: OID });
const remove = (ref: string): RefUpdate => ({ type: 'delete', ref, old: OID });

describe('the folders of changed refs', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let synced: string[] = [];
  let failing = false;
  let folders: RefFolders;

  beforeEach(() => {
    folder = temporaryFolder();
    synced = [];
    folders = new RefFolders(folder.path, async (path) => {
      if (failing) throw new Error('no space');
      synced.push(relative(folder.path, path));
    });
  });
  afterEach(() => folder.remove());

  const make = (path: string) => mkdirSync(join(folder.path, path), { recursive: true });

  async function syncedBy(...updates: RefUpdate[]): Promise<string[]> {
    synced = [];
    await folders.sync(updates);
    return synced.sort();
  }

  test('are synced with all parents at first, later only up to the highest changed one', async () => {
    make('refs/heads/drafts/a');
    expect(await syncedBy(create('refs/heads/drafts/a/v1'))).toEqual([
      'refs',
      'refs/heads',
      'refs/heads/drafts',
      'refs/heads/drafts/a',
    ]);
    expect(await syncedBy(create('refs/heads/drafts/a/v2'))).toEqual(['refs/heads/drafts/a']);
    make('refs/heads/drafts/b/c');
    expect(await syncedBy(create('refs/heads/drafts/b/c/v1'), create('refs/heads/main'))).toEqual([
      'refs/heads',
      'refs/heads/drafts',
      'refs/heads/drafts/b',
      'refs/heads/drafts/b/c',
    ]);
    rmSync(join(folder.path, 'refs/heads/drafts/b'), { recursive: true });
    expect(await syncedBy(remove('refs/heads/drafts/b/c/v1'))).toEqual([
      '',
      'refs/heads/drafts',
      'refs/heads/drafts/b',
      'refs/heads/drafts/b/c',
    ]);
    expect(await syncedBy({ type: 'verify', ref: 'refs/heads/main', old: null })).toEqual([]);
  });

  test('that were removed and made again count as new', async () => {
    make('refs/heads/a');
    await syncedBy(create('refs/heads/a/v1'));
    rmSync(join(folder.path, 'refs/heads/a'), { recursive: true });
    await nextFileTime();
    make('refs/heads/a');
    expect(await syncedBy(create('refs/heads/a/v1'))).toEqual(['refs/heads', 'refs/heads/a']);
  });

  test('are not taken for durable after an error', async () => {
    make('refs/heads/a');
    failing = true;
    await expect(folders.sync([create('refs/heads/a/v1')])).rejects.toThrow('no space');
    failing = false;
    expect(await syncedBy(create('refs/heads/a/v1'))).toEqual(['refs', 'refs/heads', 'refs/heads/a']);
  });
});
