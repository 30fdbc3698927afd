import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { anna, commitFiles, robot, type Scratch, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { draft, KPTFILE, outcomeOf, publish } from '../../../test/support/shop.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import { DEFAULT_POLICY } from '../model/policy/policy.ts';
import type { RevisionStore } from './revision-store.ts';

function text(value: string): Buffer {
  return Buffer.from(value);
}

describe('the Git layout is that of Porch', () => {
  test('a draft becomes a proposed branch, then a tag on a two-parent commit of main', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store, 'apps/shop');
    expect(name).toBe('packages.apps.shop.v1');
    expect(await refs(scratch)).toEqual(['refs/heads/drafts/apps/shop/v1', 'refs/heads/main', record(store, name)]);
    const draftTip = await scratch.git('rev-parse', 'drafts/apps/shop/v1');
    await store.update(name, { action: 'propose' }, anna);
    expect(await scratch.git('rev-parse', 'proposed/apps/shop/v1')).toBe(draftTip);
    await store.update(name, { action: 'approve' }, anna);
    expect(await refs(scratch)).toEqual(['refs/heads/main', 'refs/tags/apps/shop/v1']);
    const parents = (await scratch.git('show', '-s', '--format=%P', 'apps/shop/v1')).split(' ');
    expect(parents).toHaveLength(2);
    expect(parents[1]).toBe(draftTip);
    const message = await scratch.git('show', '-s', '--format=%B', 'main');
    expect(message).toContain('Approving package revision apps/shop/1');
    expect(message).toContain('kpt:{"package":"apps/shop","workspaceName":"v1","revision":"1"}');
    expect(await scratch.git('fsck', '--strict', '--no-dangling')).toBe('');
  });

  test('deletion is proposed by a branch, undone by removing it, and leaves the folder on main', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    await publish(store, name);
    expect(await outcomeOf(store.update(name, { action: 'delete' }, anna))).toContain('must be proposed for deletion');
    await store.update(name, { action: 'propose-deletion' }, anna);
    expect(await refs(scratch)).toContain('refs/heads/deletionProposed/shop/v1');
    expect(store.get(name).lifecycle).toBe('DeletionProposed');
    await store.update(name, { action: 'undo-deletion' }, anna);
    expect(store.get(name).lifecycle).toBe('Published');
    expect((await store.history(name)).map((entry) => entry.action)).toEqual([
      ...['undo-deletion', 'propose-deletion', 'approve', 'propose', 'init'],
    ]);
    await store.update(name, { action: 'propose-deletion' }, anna);
    await store.update(name, { action: 'delete' }, anna);
    expect(store.find(name)).toBeUndefined();
    // What is left of it is who deleted it, and why.
    expect(await refs(scratch)).toEqual(['refs/heads/main', 'refs/sluice/deleted/shop%2Fv1']);
    expect(await scratch.git('show', '-s', '--format=%s', 'refs/sluice/deleted/shop%2Fv1')).toBe(
      'delete packages.shop.v1 by anna',
    );
    expect(await scratch.git('ls-tree', '--name-only', 'main')).toContain('shop');
    const placeholder = store.get('packages.shop.main');
    // Its folder is what was published, so that nothing is wrong with it.
    expect(placeholder.revision).toBe(-1);
    expect(placeholder.outOfBand).toBeUndefined();
    await store.update(placeholder.name, { action: 'propose-deletion' }, anna);
    await store.update(placeholder.name, { action: 'delete' }, anna);
    expect(await scratch.git('ls-tree', '--name-only', 'main')).toBe('README.md');
    expect(store.list()).toEqual([]);
    // The number is given again, and is there again.
    await publish(store, await draft(store));
    expect(await refs(scratch)).toEqual(['refs/heads/main', 'refs/tags/shop/v1']);
  });

  test('a repository can be scoped to a directory', async () => {
    await using scratch = await scratchRepository();
    const layout = { branch: 'main', directory: 'team/a', recordPrefix: 'refs/sluice/records/' };
    const { store } = await scratch.open({ layout });
    const name = await draft(store);
    await publish(store, name);
    expect(await refs(scratch)).toEqual(['refs/heads/main', 'refs/tags/team/a/shop/v1']);
    const other = await scratch.open();
    expect(other.store.list().map((revision) => revision.name)).toEqual([
      'packages.team.a.shop.main',
      'packages.team.a.shop.v1',
    ]);
  });

  test('data of Porch is read: its approval commits, tags of other forms, manual tags', async () => {
    await using scratch = await scratchRepository();
    const git = await openRepository(scratch.path);
    const time = scratch.clock.now();
    const tip = await commitFiles(git, { 'shop/Kptfile': KPTFILE }, time, {
      branch: 'drafts/shop/blue',
      from: 'refs/heads/main',
      message: 'Intermediate commit\n\nkpt:{"package":"shop","workspaceName":"blue","task":{"type":"init"}}\n',
    });
    const main = await git.resolveRef('refs/heads/main');
    const signature = { name: 'Porch', email: 'porch@kpt.dev', time };
    const approval = await git.writeCommit({
      tree: (await git.readCommit(tip)).tree,
      parents: [main ?? '', tip],
      author: signature,
      committer: signature,
      message: 'Approving package revision shop/1\n\nkpt:{"package":"shop","workspaceName":"blue","revision":"1"}\n',
    });
    await git.transaction([
      { type: 'update', ref: 'refs/heads/main', old: main ?? '', new: approval },
      { type: 'create', ref: 'refs/tags/shop/v1', new: approval },
      { type: 'delete', ref: 'refs/heads/drafts/shop/blue', old: tip },
    ]);
    await git.close();
    await scratch.git('tag', 'shop/v2.0.0', approval);
    await scratch.git(
      '-c',
      'user.name=h',
      '-c',
      'user.email=h@example.com',
      'tag',
      '-a',
      '-m',
      'by hand',
      'shop/v3',
      approval,
    );
    await scratch.git('tag', 'unrelated', approval);
    await scratch.git('tag', 'other/v1', approval);
    const { store } = await scratch.open();
    expect(
      store.list().map(({ name, revision, latest, outOfBand }) => [name, revision, latest, outOfBand?.reason]),
    ).toEqual([
      ['packages.shop.blue', 1, false, 'PorchApproval'],
      ['packages.shop.main', -1, false, undefined],
      ['packages.shop.v2.0.0', -1, false, expect.any(String)],
      ['packages.shop.v3', 3, true, expect.any(String)],
    ]);
    expect(store.get('packages.shop.v3').commit).toBe(approval);
  });
});

describe('writes', () => {
  test('a change that changes nothing makes no commit and no event', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    const events: unknown[] = [];
    store.subscribe((changes) => events.push(...changes));
    const before = await scratch.git('for-each-ref');
    const files = new Map([['README.md', (await store.content(name)).files.get('README.md') ?? text('')]]);
    await store.change(name, { files }, robot);
    await store.change(name, {}, robot);
    expect(await scratch.git('for-each-ref')).toBe(before);
    expect(events).toEqual([]);
  });

  test('a listener that fails does not make the outcome of a write unknown; the next sync throws its error', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open();
    const name = await draft(store);
    let hasReported = 0;
    const stop = store.subscribe(() => {
      hasReported += 1;
      throw new Error('a listener with a defect');
    });
    const files = new Map([['a.yaml', Buffer.from('a: 1\n')]]);
    const after = await store.change(name, { files }, anna);
    expect(hasReported).toBe(1);
    expect(store.get(name).commit).toBe(after.commit);
    await expect(repository.refresh()).rejects.toThrow('a listener with a defect');
    stop();
    await repository.refresh();
  });

  test('two requests at once on one revision: one is refused as in progress', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    const change = (value: string) => store.change(name, { files: new Map([['a.yaml', text(value)]]) }, anna);
    const results = await Promise.all([outcomeOf(change('a: 1\n')), outcomeOf(change('a: 2\n'))]);
    expect(results.filter((result) => result === 'succeeded')).toHaveLength(1);
    expect(results.join()).toContain(`another request is already in progress on package revision "default/${name}"`);
  });

  test('a request that has arrived while another one changes nothing is refused as in progress', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    const overApi = { ...anna, face: 'api' } as const;
    const nothing = () => outcomeOf(store.update(name, {}, overApi));
    // What no I/O delays is over before the sockets are read again.
    const arrived = setImmediate().then(nothing);
    expect([await nothing(), await arrived]).toEqual(['succeeded', expect.stringContaining('in progress')]);
    expect(await nothing()).toBe('succeeded');
  });

  test('a request waits for the write of a controller', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    const commit = store.get(name).commit;
    const controller = { actor: { name: 'controller:x' }, face: 'controller' } as const;
    const label = (value: string) => ({ metadata: { labels: { value } }, expectedCommit: commit });
    const edit = { files: new Map([['a.yaml', text('a: 1\n')]]), expectedCommit: commit };
    const all = await Promise.all([
      outcomeOf(store.change(name, label('x'), controller)),
      outcomeOf(store.change(name, edit, anna)),
      outcomeOf(store.change(name, label('y'), controller)),
    ]);
    expect(all.slice(0, 2)).toEqual(['succeeded', 'succeeded']);
    // Who comes while a client's request is under way is refused as before.
    expect(all[2]).toContain('in progress');
    const file = (await store.content(name)).files.get('a.yaml');
    expect([file?.toString(), store.get(name).record?.labels]).toEqual(['a: 1\n', { value: 'x' }]);
  });

  test('two processes at once on one revision: one wins, the other gets a conflict and reads the new state', async () => {
    await using scratch = await scratchRepository();
    const first = await scratch.open();
    const name = await draft(first.store);
    const second = await scratch.open();
    await first.store.change(name, { files: new Map([['a.yaml', text('a: 1\n')]]) }, anna);
    const lost = await outcomeOf(second.store.change(name, { files: new Map([['a.yaml', text('a: 2\n')]]) }, anna));
    expect(lost).toMatch(/^Conflict: .*drafts\/shop\/v1/);
    expect(second.store.get(name).commit).toBe(first.store.get(name).commit);
    const results = await Promise.all([
      outcomeOf(first.store.update(name, { action: 'propose' }, anna)),
      outcomeOf(second.store.update(name, { action: 'delete' }, anna)),
    ]);
    expect(results.filter((result) => result === 'succeeded')).toHaveLength(1);
  });

  test('packages published side by side by two processes all arrive on main', async () => {
    await using scratch = await scratchRepository();
    const first = await scratch.open();
    const names: string[] = [];
    for (let number = 0; number < 6; number++) {
      const name = await draft(first.store, `p${number}`);
      await first.store.update(name, { action: 'propose' }, anna);
      names.push(name);
    }
    const second = await scratch.open();
    await Promise.all(
      names.map((name, position) =>
        (position % 2 === 0 ? first : second).store.update(name, { action: 'approve' }, anna),
      ),
    );
    expect((await scratch.git('ls-tree', '--name-only', 'main')).split('\n')).toEqual([
      'README.md',
      'p0',
      'p1',
      'p2',
      'p3',
      'p4',
      'p5',
    ]);
    expect(await scratch.git('fsck', '--strict', '--no-dangling')).toBe('');
  });

  test('the expected commit is evaluated', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    const expectedCommit = store.get(name).commit;
    await store.change(name, { files: new Map([['a.yaml', text('a: 1\n')]]) }, anna);
    expect(await outcomeOf(store.update(name, { action: 'propose', expectedCommit }, anna))).toMatch(/^Conflict/);
    expect(await outcomeOf(store.change(name, { files: new Map(), expectedCommit }, anna))).toMatch(/^Conflict/);
  });

  test('a controller that does not settle runs out of budget, without a commit for saying so', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open({ policyFor: () => ({ ...DEFAULT_POLICY, commitBudgetPerHour: 3 }) });
    const name = await draft(store);
    const change = (value: number, context = robot) =>
      store.change(name, { files: new Map([['a.yaml', text(`a: ${value}\n`)]]) }, context);
    for (let value = 0; value < 3; value++) await change(value);
    const commit = store.get(name).commit;
    expect(await outcomeOf(change(4))).toMatch(/^LimitExceeded: controllers have made 3 commits/);
    expect(store.get(name).commit).toBe(commit);
    await change(5, anna);
    scratch.clock.advance(3_600_001);
    expect(await outcomeOf(change(6))).toBe('succeeded');
  });

  test('collisions are refused at creation with the reason', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    await draft(store, 'a', 'b');
    expect(await outcomeOf(draft(store, 'a/b', 'c'))).toMatch(/^Refused: packages cannot be nested/);
    expect(await outcomeOf(draft(store, 'a', 'b'))).toMatch(
      /^AlreadyExists: package revision workspaceNames must be unique/,
    );
    expect(await outcomeOf(draft(store, 'a', 'c'))).toBe(
      'AlreadyExists: package "a" already exists in repository "packages"',
    );
    expect(await outcomeOf(draft(store, '../x', 'v1'))).toMatch(/^InvalidInput/);
    expect(await outcomeOf(draft(store, 'x', 'a/b'))).toMatch(/^InvalidInput/);
    expect(await outcomeOf(draft(store, 'x', 'main'))).toMatch(/^InvalidInput/);
    await scratch.git('branch', 'drafts/q/r', 'main');
    const other = await scratch.open();
    expect(await outcomeOf(draft(other.store, 'q/r/s', 'v1'))).toMatch(/^Refused/);
  });

  test('files cannot change once proposed, nor leave the package', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    for (const path of ['../evil', '.git/config', 'a/../../b', '/etc/passwd', 'x\ny']) {
      expect(await outcomeOf(store.change(name, { files: new Map([[path, text('x')]]) }, anna))).toMatch(
        /^InvalidInput/,
      );
    }
    expect(await outcomeOf(store.change(name, { files: new Map([['Kptfile', null]]) }, anna))).toMatch(/^InvalidInput/);
    expect(await outcomeOf(store.change(name, { files: new Map([['Kptfile', text('a: [')]]) }, anna))).toMatch(
      /^InvalidInput: Kptfile/,
    );
    await store.update(name, { action: 'propose' }, anna);
    expect(await outcomeOf(store.change(name, { files: new Map([['a', text('x')]]) }, anna))).toContain(
      'package must be Draft',
    );
  });
});

describe('the index', () => {
  test('is the same from a cache, without one, and with a damaged one', async () => {
    await using scratch = await scratchRepository();
    const cacheFile = join(scratch.folder, 'cache', 'packages.ndjson');
    const first = await scratch.open({ cacheFile });
    const name = await draft(first.store);
    await publish(first.store, name);
    await draft(first.store, 'web');
    const rows = first.store.list();
    await first.repository.saveCache();
    const warm = await scratch.open({ cacheFile });
    expect(warm.repository.note).toBeUndefined();
    expect(warm.store.list()).toEqual(rows);
    const whole = await readFile(cacheFile, 'utf8');
    for (const damage of [
      '',
      whole.slice(0, -100),
      whole.replace('web', 'wed'),
      '\0\0\0',
      whole.replace(/ \d+ /, ' 1 '),
    ]) {
      await writeFile(cacheFile, damage);
      const rebuilt = await scratch.open({ cacheFile });
      expect(rebuilt.store.list()).toEqual(rows);
      expect(rebuilt.repository.note).toMatch(/rebuilt/);
    }
    expect((await scratch.open()).store.list()).toEqual(rows);
  });

  test('reports pushes of others: force pushes, removed branches, unreadable Kptfiles', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open();
    const git = await openRepository(scratch.path);
    const time = scratch.clock.now();
    await commitFiles(git, { 'shop/Kptfile': KPTFILE }, time, { branch: 'drafts/shop/v1', from: 'refs/heads/main' });
    await commitFiles(git, { 'bad/Kptfile': 'a: [\n' }, time, { branch: 'drafts/bad/v1', from: 'refs/heads/main' });
    await commitFiles(git, { 'none/file': 'x' }, time, { branch: 'drafts/none/v1', from: 'refs/heads/main' });
    await repository.refresh();
    expect(store.list().map(({ name, problem }) => [name, problem !== undefined])).toEqual([
      ['packages.bad.v1', true],
      ['packages.none.v1', true],
      ['packages.shop.v1', false],
    ]);
    expect(await outcomeOf(store.update('packages.bad.v1', { action: 'propose' }, anna))).toContain('cannot be read');
    await scratch.git('update-ref', 'refs/heads/drafts/shop/v1', 'main');
    await scratch.git('update-ref', '-d', 'refs/heads/drafts/bad/v1');
    await repository.refresh();
    expect(store.list().map(({ name, problem }) => [name, problem])).toEqual([
      ['packages.none.v1', 'there is no Kptfile'],
      ['packages.shop.v1', 'there is no Kptfile'],
    ]);
    await git.close();
  });

  test('a change of main beside Sluice is flagged, one of another package is no event', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open();
    const name = await draft(store);
    await publish(store, name);
    await publish(store, await draft(store, 'web'));
    expect(store.get('packages.shop.main').outOfBand).toBeUndefined();
    const changed: string[] = [];
    store.subscribe((changes) => changed.push(...changes.map((change) => change.after?.name ?? '')));
    const git = await openRepository(scratch.path);
    await commitFiles(git, { 'shop/extra.yaml': 'a: 1\n' }, scratch.clock.now());
    await repository.refresh();
    await git.close();
    expect(store.get('packages.shop.main').outOfBand?.reason).toBe('MainDiffers');
    expect(changed).toEqual(['packages.shop.main']);
  });
});

async function refs(scratch: Scratch): Promise<string[]> {
  const all = (await scratch.git('for-each-ref', '--format=%(refname)')).split('\n');
  return all.filter((ref) => ref !== 'refs/sluice/repository');
}

function record(store: RevisionStore, name: string): string {
  const { path, key } = store.get(name);
  return `refs/sluice/records/${path}/${key.workspace}`;
}
