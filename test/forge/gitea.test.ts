import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { EMPTY_TREE } from '../../src/git/git-repository.ts';
import { approveTogether } from '../support/approve-together.ts';
import { openStore } from '../support/open-store.ts';
import { anna } from '../support/scratch-repository.ts';
import { draft, outcomeOf, publish } from '../support/shop.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea, OWNER } from './support/gitea.ts';

const missing = inject('giteaMissing');
const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });
const NAME = 'packages.shop.v1';

const opened: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

/** A store on a repository of the forge, in a process that uses this token. */
async function connect(
  repository: string,
  token: () => string,
  username: string = OWNER.username,
  more: { readonly createBranch?: boolean } = {},
) {
  const dataFolder = await mkdtemp(join(tmpdir(), 'sluice-forge-'));
  opened.push(() => rm(dataFolder, { recursive: true, force: true }));
  const store = await openStore(gitea.addressOf(repository), dataFolder, {
    credentials: async () => ({ basic: { username, password: token() } }),
    ...more,
  });
  opened.push(() => store.close());
  return store;
}

/** A repository, a user who may write to it, and a store that works as this user. */
async function writerOf(repository: string) {
  await gitea.createRepository(repository);
  const writer = `writer-${repository}`;
  await gitea.createWriter(writer, repository);
  const token = await gitea.createToken(writer, 'first');
  return { writer, token, store: await connect(repository, () => token, writer) };
}

/** The requests for a repository that the forge has logged, `GET /…`, without the name of its owner. */
async function requestsOf(repository: string): Promise<string[]> {
  const log = await readFile(join(inject('giteaFolder'), 'log', 'access.log'), 'utf8');
  const path = `/${OWNER.username}/${repository}.git/`;
  return [...log.matchAll(/"(GET|POST) (\S+)/g)]
    .filter(([, , url]) => url?.startsWith(path) === true)
    .map(([, method, url]) => `${method} ${url?.slice(path.length)}`);
}

describe('Gitea', skipFor(missing !== '' && missing), () => {
  test('accepts drafts, proposals and publications from the own client, which requests its capabilities once', async () => {
    await gitea.createRepository('flow');
    const token = await gitea.createToken(OWNER.username, 'flow');
    const store = await connect('flow', () => token);
    await draft(store);
    expect(await gitea.refs('flow')).toMatch(
      /^refs\/heads\/drafts\/shop\/v1 .*\nrefs\/heads\/main .*\nrefs\/sluice\/records\//,
    );
    await publish(store, NAME);
    await store.repository('packages').sync();
    expect(store.get(NAME)).toMatchObject({ lifecycle: 'Published', revision: 1 });
    expect(await gitea.refs('flow')).toMatch(
      /^refs\/heads\/main \w+\nrefs\/sluice\/repository \w+\nrefs\/tags\/shop\/v1 \w+\n$/,
    );
    expect(store.repository('packages').git.remoteNote?.message).toMatch(/fetch by own client; push by own client$/);
    const logged = async (wanted: string) => (await requestsOf('flow')).filter((request) => request === wanted).length;
    // The log is written later.
    await expect.poll(() => logged('POST git-receive-pack')).toBeGreaterThanOrEqual(5);
    const requests = await requestsOf('flow');
    expect(requests.filter((request) => request === 'GET info/refs?service=git-receive-pack')).toHaveLength(1);
  });

  test('accepts a verdict on unchanged content: the push names the draft, which does not move', async () => {
    const { store } = await writerOf('verdict');
    const name = await draft(store);
    const given = { conditions: [{ type: 'tested', status: 'True' as const }] };
    await store.change(name, given, anna);
    const commit = store.get(name).commit;
    await store.change(name, given, { ...anna, actor: { name: 'bob' } });
    expect(store.get(name).commit).toBe(commit);
    expect((await store.evaluate(name)).record.verdicts.map(({ by }) => by)).toContain('bob');
  });

  test('accepts thirty-two drafts in one atomic push, and none of them if one is not as expected', async () => {
    const { store, token, writer } = await writerOf('many');
    const { git } = store.repository('packages');
    const oid = (await git.resolveRef('refs/heads/main')) ?? '';
    const basic = { username: writer, password: token };
    const remote = { url: gitea.addressOf('many'), credentials: async () => ({ basic }) };
    const drafts = Array.from({ length: 32 }, (_, index) => ({
      type: 'create' as const,
      ref: `refs/heads/drafts/shop-${index}/v1`,
      new: oid,
    }));
    await git.push(remote, drafts);
    expect((await gitea.refs('many')).match(/drafts/g)).toHaveLength(32);
    const more = drafts.map((update) => ({ ...update, ref: update.ref.replace('shop', 'web') }));
    const signature = { name: 'anna', email: 'anna@example.com', time: 0 };
    const commit = { tree: EMPTY_TREE, parents: [oid], author: signature, committer: signature, message: 'edit\n' };
    const next = await git.writeCommit(commit);
    await git.push(remote, [{ type: 'create', ref: 'refs/heads/other', new: next }]);
    const before = await gitea.refs('many');
    const stale = { type: 'delete', ref: 'refs/heads/drafts/shop-1/v1', old: next } as const;
    expect(await outcomeOf(git.push(remote, [...more, stale]))).toMatch(/^Conflict: .*drafts\/shop-1\/v1/);
    expect(await gitea.refs('many')).toBe(before);
  });

  test('accepts thirty-two drafts that users create at the same time', async () => {
    const { store } = await writerOf('crowd');
    await Promise.all(Array.from({ length: 32 }, (_, index) => draft(store, `shop-${index}`)));
    expect((await gitea.refs('crowd')).match(/refs\/heads\/drafts/g)).toHaveLength(32);
    await store.repository('packages').sync();
    expect(store.list().filter(({ lifecycle }) => lifecycle === 'Draft')).toHaveLength(32);
  });

  test('accepts the approvals of a wave as one commit with a tag for each package, and without one whose tag it protects', async () => {
    const { store } = await writerOf('wave');
    const approve = async (...paths: string[]) => {
      const names = await Promise.all(paths.map((path) => draft(store, path)));
      await Promise.all(names.map((name) => store.update(name, { action: 'propose' }, anna)));
      const results = await approveTogether(store, names, { ...anna, reason: 'wave all' });
      return results.flatMap(({ status }, at) => (status === 'rejected' ? (paths[at] ?? []) : []));
    };
    expect(await approve('a', 'b', 'c', 'd', 'e')).toEqual([]);
    const path = `/repos/${OWNER.username}/wave`;
    const log = await gitea.api('GET', `${path}/commits?sha=main&stat=false&files=false`);
    const [head] = log as readonly { readonly sha: string; readonly parents: readonly unknown[] }[];
    expect(head?.parents).toHaveLength(6);
    await store.repository('packages').sync();
    const published = () => store.list().filter(({ revision }) => revision > 0);
    expect(published().map(({ commit, outOfBand }) => [commit, outOfBand])).toEqual(
      Array(5).fill([head?.sha, undefined]),
    );
    const rule = { name_pattern: 'g/*', whitelist_usernames: [OWNER.username] };
    await gitea.api('POST', `${path}/tag_protections`, rule);
    expect(await approve('f', 'g', 'h')).toEqual(['g']);
    await store.repository('packages').sync();
    expect(published().map(({ path: of, outOfBand }) => [of, outOfBand])).toEqual(
      ['a', 'b', 'c', 'd', 'e', 'f', 'h'].map((of) => [of, undefined]),
    );
  });

  test('reports why a protected main branch refuses a publication, and nothing is changed', async () => {
    const { store, writer } = await writerOf('branch');
    await draft(store);
    await store.update(NAME, { action: 'propose' }, anna);
    const rule = { rule_name: 'main', enable_push: false };
    await gitea.api('POST', `/repos/${OWNER.username}/branch/branch_protections`, rule);
    const before = await gitea.refs('branch');
    const approve = () => outcomeOf(store.update(NAME, { action: 'approve' }, anna));
    expect(await approve()).toMatch(/^PushRefused: .*Not allowed to push to protected branch main/);
    expect(await gitea.refs('branch')).toBe(before);
    expect(store.get(NAME).lifecycle).toBe('Proposed');
    // Drafts are still accepted, and so is the publication once its user is permitted.
    await draft(store, 'web');
    const allowed = { enable_push: true, enable_push_whitelist: true, push_whitelist_usernames: [writer] };
    await gitea.api('PATCH', `/repos/${OWNER.username}/branch/branch_protections/main`, allowed);
    expect(await approve()).toBe('succeeded');
    expect(store.get(NAME)).toMatchObject({ lifecycle: 'Published', revision: 1 });
  });

  test('reports why a protected tag refuses a publication, and nothing is changed', async () => {
    const { store, writer } = await writerOf('tag');
    await draft(store);
    await store.update(NAME, { action: 'propose' }, anna);
    const path = `/repos/${OWNER.username}/tag/tag_protections`;
    const rule = { name_pattern: 'shop/*', whitelist_usernames: [OWNER.username] };
    const { id } = (await gitea.api('POST', path, rule)) as { id: number };
    const before = await gitea.refs('tag');
    const approve = () => outcomeOf(store.update(NAME, { action: 'approve' }, anna));
    expect(await approve()).toMatch(/^PushRefused: .*Tag shop\/v1 is protected/);
    expect(await gitea.refs('tag')).toBe(before);
    expect(store.get(NAME).lifecycle).toBe('Proposed');
    await gitea.api('PATCH', `${path}/${id}`, { whitelist_usernames: [OWNER.username, writer] });
    expect(await approve()).toBe('succeeded');
  });

  test('passes on the message of a hook of the forge that refuses', async () => {
    const { store } = await writerOf('hook');
    await draft(store);
    const before = await gitea.refs('hook');
    await gitea.addHook('hook', 'pre-receive', '#!/bin/sh\necho "no changes on a Friday" >&2\nexit 1\n');
    const refused = await outcomeOf(store.update(NAME, { action: 'propose' }, anna));
    expect(refused).toMatch(/^PushRefused: .*no changes on a Friday/);
    expect(await gitea.refs('hook')).toBe(before);
    expect(store.get(NAME).lifecycle).toBe('Draft');
  });

  test('accepts a renewed token from the next request on', async () => {
    await gitea.createRepository('renewal');
    await gitea.createWriter('renewer', 'renewal');
    let token = await gitea.createToken('renewer', 'old');
    const store = await connect('renewal', () => token, 'renewer');
    await draft(store);
    await gitea.api('DELETE', '/users/renewer/tokens/old');
    const propose = () => outcomeOf(store.update(NAME, { action: 'propose' }, anna));
    const refused = await propose();
    expect(refused).toMatch(/^Unavailable: .*renew/);
    expect(refused).not.toContain(token);
    expect(await outcomeOf(store.repository('packages').sync())).toMatch(/^Refused: .*renew/);
    token = await gitea.createToken('renewer', 'new');
    expect(await propose()).toBe('succeeded');
  });

  test('can be read with a read-only token, and a write reports which right is missing', async () => {
    const { store: other, writer } = await writerOf('reading');
    await draft(other);
    await publish(other, NAME);
    const token = await gitea.createToken(writer, 'reads', ['read:repository']);
    const store = await connect('reading', () => token, writer);
    expect(store.get(NAME).lifecycle).toBe('Published');
    const refused = await outcomeOf(draft(store, 'web'));
    expect(refused).toMatch(/^Unavailable: .*denied the request/);
    expect(refused).not.toContain(token);
    expect(store.find('packages.web.v1')).toBeUndefined();
  });

  test('reports a repository as missing if its name is unknown, or the user may not read it', async () => {
    await gitea.createRepository('hidden');
    const { token, writer } = await writerOf('known');
    for (const name of ['unknown', 'hidden'])
      expect(await outcomeOf(connect(name, () => token, writer))).toMatch(/^NotFound: .*has no such repository/);
  });

  test('applies options of a push', async () => {
    await gitea.createRepository('options');
    const token = await gitea.createToken(OWNER.username, 'options');
    const { git } = (await connect('options', () => token)).repository('packages');
    const oid = (await git.resolveRef('refs/heads/main')) ?? '';
    const basic = { username: OWNER.username, password: token };
    const remote = { url: gitea.addressOf('options'), credentials: async () => ({ basic }) };
    const push = { type: 'create', ref: 'refs/heads/open', new: oid } as const;
    await git.push({ ...remote, pushOptions: ['repo.private=false'] }, [push]);
    expect(await gitea.api('GET', `/repos/${OWNER.username}/options`)).toMatchObject({ private: false });
  });

  test('gets a first branch where the repository is empty, on request', async () => {
    await gitea.api('POST', '/user/repos', { name: 'empty', private: true });
    const token = await gitea.createToken(OWNER.username, 'empty');
    expect(await outcomeOf(connect('empty', () => token))).toMatch(/^InvalidInput: .*createBranch: true/);
    const store = await connect('empty', () => token, OWNER.username, { createBranch: true });
    await draft(store);
    await publish(store, NAME);
    expect(await gitea.refs('empty')).toMatch(
      /^refs\/heads\/main \w+\nrefs\/sluice\/repository \w+\nrefs\/tags\/shop\/v1 \w+\n$/,
    );
  });

  test('reports that a repository is archived, or was renamed', async () => {
    const { store, token, writer } = await writerOf('past');
    await draft(store);
    const path = `/repos/${OWNER.username}/past`;
    await gitea.api('PATCH', path, { archived: true });
    const propose = () => outcomeOf(store.update(NAME, { action: 'propose' }, anna));
    expect(await propose()).toMatch(/^Unavailable: .*denied the request: .* \(HTTP 403\)/);
    await gitea.api('PATCH', path, { archived: false });
    await gitea.api('PATCH', path, { name: 'present' });
    expect(await propose()).toMatch(/^Unavailable: .*redirects elsewhere/);
    expect(await outcomeOf(connect('past', () => token, writer))).toMatch(/^Refused: .*redirects elsewhere/);
    expect((await connect('present', () => token, writer)).get(NAME).lifecycle).toBe('Draft');
  });

  test('stores the records as branches where it hides other refs, and reports it if it hides them later', async () => {
    for (const repository of ['hiding', 'later']) await gitea.createRepository(repository);
    const token = await gitea.createToken(OWNER.username, 'hiding');
    await gitea.configure('hiding', 'receive.hideRefs', 'refs/sluice');
    const store = await connect('hiding', () => token);
    await draft(store);
    expect(await gitea.refs('hiding')).toMatch(/refs\/heads\/sluice-records\//);
    await publish(store, NAME);
    expect(await gitea.refs('hiding')).toMatch(
      /^refs\/heads\/main \w+\nrefs\/heads\/sluice-repository \w+\nrefs\/tags\/shop\/v1 \w+\n$/,
    );
    const other = await connect('later', () => token);
    await gitea.configure('later', 'receive.hideRefs', 'refs/sluice');
    expect(await outcomeOf(draft(other))).toMatch(/in part.*hidden ref/);
  });
});
