import { describe, expect, inject, test, vi } from 'vitest';
import { GiteaForge } from '../../src/forge/gitea/gitea-forge.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea, OWNER } from './support/gitea.ts';

const missing = inject('giteaMissing');
const NO_SIGNAL = new AbortController().signal;
const NAME = 'two-opened';
const WAIT = { timeout: 40_000, interval: 100 };
const HEAD = 'proposed/shop/v1';

describe('pull requests of one branch', { ...skipFor(missing !== '' && missing), timeout: 120_000 }, () => {
  const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });

  test('that several processes opened at the same time, and ended, are one when it is opened again', async () => {
    await gitea.createRepository(NAME);
    const token = await gitea.createToken(OWNER.username, NAME, ['write:repository', 'write:issue', 'read:user']);
    const forge = new GiteaForge({
      ...{ api: `${gitea.url}/api/v1`, owner: OWNER.username, name: NAME, network: DEFAULT_NETWORK },
      ...{ token: async () => token, tokenName: 'Secret default/gitea' },
    });
    const path = `/repos/${OWNER.username}/${NAME}`;
    const file = { content: Buffer.from('a\n').toString('base64'), branch: 'main', new_branch: HEAD };
    await gitea.api('POST', `${path}/contents/note.md`, file);
    const wanted = { head: HEAD, base: 'main', title: 'shop v1', body: 'text' };
    const numbers = async () => (await forge.listOpen('main', 100, NO_SIGNAL)).map(({ number }) => number);
    const opened = await vi.waitFor(async () => {
      // Gitea opens one for each request that arrives before the first one is there, and refuses the others.
      const create = () => gitea.api('POST', `${path}/pulls`, wanted);
      await Promise.allSettled(Array.from({ length: 8 }, create));
      const open = await numbers();
      if (open.length === 1) await forge.update(open[0] ?? 0, { state: 'closed' }, NO_SIGNAL);
      expect(open.length).toBeGreaterThan(1);
      return open;
    }, WAIT);
    const first = Math.min(...opened);
    expect((await forge.open(wanted, NO_SIGNAL)).number).toBe(first);
    expect(await numbers()).toEqual([first]);
    await forge.close();
  });
});
