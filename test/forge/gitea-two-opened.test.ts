import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { GiteaForge } from '../../src/forge/gitea/gitea-forge.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea, OWNER } from './support/gitea.ts';

const missing = inject('giteaMissing');
const NO_SIGNAL = new AbortController().signal;
const NAME = 'two-opened';
const TRIES_FOR_MS = 40_000;
const HEAD = 'proposed/shop/v1';

describe('pull requests of one branch', { ...skipFor(missing !== '' && missing), timeout: 120_000 }, () => {
  const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });

  test('that several processes opened at the same time, and ended, are one when it is opened again', async ({
    skip,
  }) => {
    await gitea.createRepository(NAME);
    const token = await gitea.createToken(OWNER.username, NAME, ['write:repository', 'write:issue', 'read:user']);
    const forge = new GiteaForge({
      ...{ api: `${gitea.url}/api/v1`, owner: OWNER.username, name: NAME, network: DEFAULT_NETWORK },
      ...{ token: async () => token, tokenName: 'Secret default/gitea' },
    });
    onTestFinished(() => forge.close());
    const path = `/repos/${OWNER.username}/${NAME}`;
    const file = { content: Buffer.from('a\n').toString('base64'), branch: 'main', new_branch: HEAD };
    await gitea.api('POST', `${path}/contents/note.md`, file);
    const wanted = { head: HEAD, base: 'main', title: 'shop v1', body: 'text' };
    const numbers = async () => (await forge.listOpen('main', 100, NO_SIGNAL)).map(({ number }) => number);
    let opened: readonly number[] = [];
    for (const end = Date.now() + TRIES_FOR_MS; opened.length < 2 && Date.now() < end; ) {
      for (const number of opened) await forge.update(number, { state: 'closed' }, NO_SIGNAL);
      // Gitea opens one for each request that arrives before the first one is there, and refuses the others.
      const create = () => gitea.api('POST', `${path}/pulls`, wanted);
      await Promise.allSettled(Array.from({ length: 8 }, create));
      opened = await numbers();
    }
    skip(opened.length < 2, `Gitea opened no second one of requests at the same time within ${TRIES_FOR_MS / 1000} s`);
    const first = Math.min(...opened);
    expect((await forge.open(wanted, NO_SIGNAL)).number).toBe(first);
    expect(await numbers()).toEqual([first]);
  });
});
