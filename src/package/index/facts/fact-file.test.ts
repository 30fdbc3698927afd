import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commitFiles, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import type { GitRepository } from '../../../git/git-repository.ts';
import { openRepository } from '../../../git/open/open-repository.ts';
import { watchedPrefixes } from '../../model/identity/layout.ts';
import { MemoryTrustLedger } from '../../trust/ledger/memory-trust-ledger.ts';
import { fakeKey, fakeTrust } from '../../trust/testing/fake-signatures.ts';
import { RevisionIndex } from '../revision-index.ts';
import { FactCache } from './fact-cache.ts';
import { loadFactCache, saveFactCache } from './fact-file.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
const layout = { branch: 'main', directory: '', recordPrefix: 'refs/sluice/records/' };
const origin = { repository: 'r', namespace: 'default', layout, repositoryId: 'id' };

async function indexOf(git: GitRepository, cache = new FactCache(), reader = git): Promise<RevisionIndex> {
  const ledger = new MemoryTrustLedger();
  ledger.addKey(fakeKey('own'));
  const trust = fakeTrust(ledger, 'id');
  const index = new RevisionIndex({ ...origin, git: reader, cache, trust, isFirstLook: false });
  await index.apply(index.diff(await git.listRefs(watchedPrefixes(layout))));
  return index;
}

function shown(index: RevisionIndex) {
  return Array.from(index.all(), (row) => ({ ...row, etag: row.etag, tip: row.tip, fault: row.outOfBand })).sort(
    (a, b) => (a.name < b.name ? -1 : 1),
  );
}

test('a restart reads no object where refs are as they were, and only what differs where they are not', async () => {
  await using scratch = await scratchRepository();
  const git = await openRepository(scratch.path);
  await using _closed = { [Symbol.asyncDispose]: () => git.close() };
  const file = join(scratch.folder, 'cache');
  for (const name of ['shop', 'team/wëb'])
    await commitFiles(git, { [`${name}/Kptfile`]: KPTFILE }, 0, { branch: 'main', from: 'refs/heads/main' });
  await scratch.git('tag', 'shop/v1', 'main');
  await scratch.git('tag', 'team/wëb/by-hand', 'main');
  const tagger = ['-c', 'user.name=x', '-c', 'user.email=x@example.com'];
  await scratch.git(...tagger, 'tag', '-a', '-m', 'annotated', 'team/wëb/v2', 'main');
  await commitFiles(git, { 'shop/Kptfile': 'no: [' }, 0, { branch: 'drafts/shop/bad', from: 'refs/heads/main' });
  const first = await indexOf(git);
  await saveFactCache(file, await first.liveFacts(), origin);

  const load = async () => (await loadFactCache(file, origin)).cache;
  const blind = new Proxy(git, {
    get: (target, property) => {
      if (property === 'readObjects' || property === 'statObjects')
        return (wanted: readonly string[]) => {
          if (wanted.length > 0) throw new Error(`${wanted.join(' ')} was read`);
          return Promise.resolve([]);
        };
      return Reflect.get(target, property, target);
    },
  });
  expect(shown(await indexOf(git, await load(), blind))).toEqual(shown(first));

  await commitFiles(git, { 'new/Kptfile': KPTFILE }, 0, { branch: 'main', from: 'refs/heads/main' });
  await commitFiles(git, { 'shop/Kptfile': KPTFILE }, 1, { branch: 'drafts/shop/bad', from: 'refs/heads/main' });
  await scratch.git('tag', '-d', 'shop/v1');
  expect(shown(await indexOf(git, await load()))).toEqual(shown(await indexOf(git)));
  const other = await loadFactCache(file, { ...origin, layout: { ...layout, directory: 'team' } });
  expect(other.note).toMatch(/rebuilt/);
  expect(other.cache.size).toBe(0);
});
