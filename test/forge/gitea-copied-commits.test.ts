import { describe, expect, inject, test, vi } from 'vitest';
import { skipFor } from '../support/skip.ts';
import { Gitea } from './support/gitea.ts';
import { ReviewedRepository } from './support/reviewed-repository.ts';

const missing = inject('giteaMissing');
const WAIT = { timeout: 90_000, interval: 500 };
const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: a\n';
const MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n';
const CHOSEN = { author: '2026-03-03T03:03:03Z' };

describe.concurrent('what a user pushed to the main branch with a chosen time of the author', {
  ...skipFor(missing !== '' && missing),
  timeout: 240_000,
}, () => {
  const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });

  async function open(name: string) {
    const [bob, eve] = [`${name}-bob`, `${name}-eve`];
    const at = await ReviewedRepository.open(gitea, name, [bob, eve], { publishOn: 'merge' }, {}, true);
    const push = (path: string, text: string, more: object) => {
      const file = { message: path, content: Buffer.from(text).toString('base64') };
      return at.api('POST', `/contents/${path}`, { ...file, ...more }, eve);
    };
    const revisions = async () => {
      await at.world.store.repository('apps').sync();
      return at.world.store.list().filter(({ revision }) => revision > 0);
    };
    return { at, bob, eve, push, revisions };
  }

  type Opened = Awaited<ReturnType<typeof open>>;
  async function merge({ at, bob, eve, revisions }: Opened, push: () => Promise<unknown>, method: string) {
    await at.api('POST', '/pulls', { head: 'feature', base: 'main', title: 'web' }, eve);
    await push();
    await vi.waitFor(async () => {
      await revisions();
      const [pull] = await at.pulls();
      expect(await at.statuses(pull?.head.sha ?? '')).toMatchObject({ 'sluice/ready': 'success' });
    }, WAIT);
    await vi.waitFor(() => at.api('POST', '/pulls/1/merge', { Do: method }, bob), WAIT);
    await vi.waitFor(async () => expect(await revisions()).not.toEqual([]), WAIT);
    const [published, ...others] = await revisions();
    expect(published).toMatchObject({ name: 'apps.web.merge-1', lifecycle: 'Published', outOfBand: undefined });
    expect(others).toEqual([]);
  }

  test('is not published by a squash of a branch with a commit of 1970', async () => {
    const opened = await open('copied-squash');
    await using _ = opened.at;
    const { push } = opened;
    const dates = { author: '1970-01-01T00:00:00Z' };
    await push('web/Kptfile', KPTFILE, { branch: 'main', new_branch: 'feature', dates });
    await push('web/map.yaml', MAP, { branch: 'feature' });
    await merge(opened, () => push('db/Kptfile', KPTFILE, { branch: 'main' }), 'squash');
  });

  test('is not published by a rebase that drops the commit of that time', async () => {
    const opened = await open('copied-rebase');
    await using _ = opened.at;
    const { push } = opened;
    await push('notes.txt', 'notes', { branch: 'main', new_branch: 'feature', dates: CHOSEN });
    await push('web/Kptfile', KPTFILE, { branch: 'feature' });
    const pushToMain = async () => {
      await push('notes.txt', 'notes', { branch: 'main' });
      await push('db/Kptfile', KPTFILE, { branch: 'main', dates: CHOSEN });
    };
    await merge(opened, pushToMain, 'rebase');
  });

  test('leaves the merge of a rebase of several commits whole', async () => {
    const opened = await open('copied-whole');
    await using _ = opened.at;
    const { at, bob, eve, push, revisions } = opened;
    await push('web/Kptfile', KPTFILE, { branch: 'main', new_branch: 'feature' });
    await push('app/Kptfile', KPTFILE, { branch: 'feature' });
    await push('notes.txt', 'notes', { branch: 'main' });
    await at.api('POST', '/pulls', { head: 'feature', base: 'main', title: 'web' }, eve);
    await vi.waitFor(() => at.api('POST', '/pulls/1/merge', { Do: 'rebase' }, bob), WAIT);
    await vi.waitFor(async () => {
      const names = (await revisions()).map(({ name, outOfBand }) => `${name} ${outOfBand?.reason ?? 'in band'}`);
      expect(names.sort()).toEqual(['apps.app.merge-1 in band', 'apps.web.merge-1 in band']);
    }, WAIT);
  });

  test('leaves the merge of a rebase whole that keeps the first commit of its branch', async () => {
    const opened = await open('copied-kept');
    await using _ = opened.at;
    const { at, bob, eve, push, revisions } = opened;
    await push('db/Kptfile', KPTFILE, { branch: 'main', new_branch: 'feature', dates: CHOSEN });
    const [first] = (await at.api('GET', '/commits?sha=feature&limit=1', undefined, eve)) as [{ sha: string }];
    await push('app/Kptfile', KPTFILE, { branch: 'main', new_branch: 'side' });
    await at.api('POST', '/pulls', { head: 'side', base: 'feature', title: 'app' }, eve);
    await vi.waitFor(() => at.api('POST', '/pulls/1/merge', { Do: 'merge' }, eve), WAIT);
    await push('web/Kptfile', KPTFILE, { branch: 'feature' });
    await at.api('POST', '/pulls', { head: 'feature', base: 'main', title: 'web' }, eve);
    await vi.waitFor(() => at.api('POST', '/pulls/2/merge', { Do: 'rebase' }, bob), WAIT);
    await vi.waitFor(async () => {
      const names = (await revisions()).map(({ name, outOfBand }) => `${name} ${outOfBand?.reason ?? 'in band'}`);
      const published = ['apps.app.merge-2 in band', 'apps.db.merge-2 in band', 'apps.web.merge-2 in band'];
      expect(names.sort()).toEqual(published);
    }, WAIT);
    const onMain = (await at.api('GET', '/commits?sha=main&limit=5', undefined, eve)) as { sha: string }[];
    expect(onMain.map(({ sha }) => sha)).toContain(first.sha);
  });
});
