import { describe, expect, test } from 'vitest';
import {
  anna,
  commitFiles,
  robot,
  type Scratch,
  scratchRepository,
} from '../../../../test/support/scratch-repository.ts';
import { openRepository } from '../../../git/open/open-repository.ts';
import { DEFAULT_POLICY } from '../../model/policy/policy.ts';
import type { RevisionStore } from '../../store/revision-store.ts';

const NAME = 'packages.shop.v1';
const KPTFILE_WITHOUT_GATES = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
const BRANCH = { branch: 'drafts/shop/v1', from: 'refs/heads/main' };

function kptfile(status?: string, message = ''): string {
  const gate =
    'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\ninfo:\n  readinessGates:\n    - conditionType: tested\n';
  if (status === undefined) return gate;
  return `${gate}status:\n  conditions:\n    - type: tested\n      status: "${status}"\n      message: "${message}"\n`;
}

async function setUp(policy = DEFAULT_POLICY) {
  const scratch = await scratchRepository();
  const { store, repository } = await scratch.open({ policyFor: () => policy });
  const git = await openRepository(scratch.path);
  let time = scratch.clock.now();
  /** One commit of a user of plain git. */
  const push = async (files: Record<string, string | null>, options: Parameters<typeof commitFiles>[3] = BRANCH) => {
    time += 1000;
    return commitFiles(git, files, time, options);
  };
  const gate = async (name = NAME) => {
    await repository.refresh();
    const [found] = (await store.evaluate(name)).gates;
    return [found?.state, found?.verdict?.by];
  };
  const at = { scratch, store, repository, push, gate };
  return Object.assign(at, {
    [Symbol.asyncDispose]: async () => {
      await git.close();
      await scratch[Symbol.asyncDispose]();
    },
  });
}

async function draft(store: RevisionStore): Promise<void> {
  await store.create('packages', { package: 'shop', workspace: 'v1', source: { type: 'init' } }, anna);
  const edits = [{ op: 'addGate', conditionType: 'tested' }] as const;
  await store.change(NAME, { kptfile: edits, conditions: [{ type: 'tested', status: 'True' }] }, anna);
}

async function loseRecord(scratch: Scratch, store: RevisionStore): Promise<void> {
  await scratch.git('update-ref', '-d', recordOf(store));
}

test('trailers of Sluice in a pushed commit do not hide that a push made it', async () => {
  await using at = await setUp();
  const message = 'Creating new empty revision\n\nSluice-Action: create\nSluice-Actor: controller:revision\n';
  await at.push({ 'shop/Kptfile': kptfile() }, { ...BRANCH, message });
  await at.gate();
  const { record } = await at.store.evaluate(NAME);
  expect(record.contributors).toMatchObject([{ name: 'push', face: 'git' }]);
});

test('the Kptfile at the tip, which the index has read, is not read again for each evaluation', async () => {
  await using at = await setUp();
  await at.push({ 'shop/Kptfile': kptfile('True'), 'shop/app.yaml': 'a: 1\n' });
  const git = await openRepository(at.scratch.path);
  const read: string[] = [];
  const readObjects = git.readObjects.bind(git);
  git.readObjects = (specifications, ...rest) => {
    read.push(...specifications);
    return readObjects(specifications, ...rest);
  };
  const { store } = await at.scratch.open({ git });
  // Its files are kept after the first one.
  await store.evaluate(NAME);
  const { tip } = store.get(NAME);
  expect(read).toContain(tip.kptfileBlob);
  read.length = 0;
  expect((await store.evaluate(NAME)).gates).toMatchObject([{ state: 'Open' }]);
  expect(read).not.toContain(tip.kptfileBlob);
});

describe('several pushes between two syncs', () => {
  test('a condition counts for the content of its commit', async () => {
    await using at = await setUp();
    await at.push({ 'shop/Kptfile': kptfile() });
    await at.push({ 'shop/Kptfile': kptfile('True', 'run 1') });
    await at.push({ 'shop/app.yaml': 'a: 1\n' });
    expect(await at.gate()).toEqual(['Stale', 'push']);
    await at.push({ 'shop/Kptfile': kptfile('True', 'run 2') });
    expect(await at.gate()).toEqual(['Open', 'push']);
  });

  test('also after a record was written', async () => {
    await using at = await setUp();
    await draft(at.store);
    await at.push({ 'shop/app.yaml': 'a: 1\n' });
    await at.push({ 'shop/Kptfile': kptfile('True', 'looked') });
    expect(await at.gate()).toEqual(['Open', 'push']);
    await at.push({ 'shop/app.yaml': 'a: 2\n' });
    await at.push({ 'shop/README.md': 'more\n' });
    expect(await at.gate()).toEqual(['Stale', 'push']);
  });

  test('a Kptfile that cannot be read for a while does not issue anything again', async () => {
    await using at = await setUp();
    await draft(at.store);
    const text = await at.scratch.git('show', 'drafts/shop/v1:shop/Kptfile');
    await at.push({ 'shop/Kptfile': 'a: [\n' });
    await at.repository.refresh();
    await at.store.change(NAME, { metadata: { labels: { a: 'b' } } }, anna);
    await at.push({ 'shop/Kptfile': `${text}\n`, 'shop/app.yaml': 'a: 1\n' });
    expect(await at.gate()).toEqual(['Stale', 'anna']);
  });

  test('rewritten history counts as one push', async () => {
    await using at = await setUp();
    await draft(at.store);
    await at.scratch.git('update-ref', 'refs/heads/drafts/shop/v1', 'refs/heads/main');
    await at.push({ 'shop/Kptfile': kptfile('True', 'mine') });
    expect(await at.gate()).toEqual(['Open', 'push']);
  });
});

describe('a record that is lost', () => {
  test('opens nothing by the next change, whichever actor makes it', async () => {
    await using at = await setUp();
    await draft(at.store);
    await loseRecord(at.scratch, at.store);
    expect(await at.gate()).toEqual(['Unproven', undefined]);
    await at.store.change(NAME, { recordPush: true }, robot);
    await at.store.change(NAME, { settled: { resolvers: [] } }, robot);
    await at.store.change(NAME, { files: new Map([['app.yaml', Buffer.from('a: 1\n')]]) }, anna);
    expect(await at.gate()).toEqual(['Unproven', undefined]);
    await at.store.change(NAME, { conditions: [{ type: 'tested', status: 'True' }] }, anna);
    expect(await at.gate()).toEqual(['Open', 'anna']);
  });

  test('opens no gate by earlier or later pushes', async () => {
    await using at = await setUp();
    await draft(at.store);
    await at.push({ 'shop/app.yaml': 'a: 1\n' });
    await loseRecord(at.scratch, at.store);
    expect(await at.gate()).toEqual(['Unproven', undefined]);
    await at.push({ 'shop/app.yaml': 'a: 2\n' });
    expect(await at.gate()).toEqual(['Unproven', undefined]);
  });

  test('one that cannot be read is as good as lost, and is replaced by the next change', async () => {
    await using at = await setUp();
    await draft(at.store);
    const blob = await at.scratch.git('rev-parse', 'main:README.md');
    for (const junk of [await at.scratch.git('rev-parse', 'main'), blob]) {
      await at.scratch.git('update-ref', recordOf(at.store), junk);
      expect(await at.gate()).toEqual(['Unproven', undefined]);
      await at.store.change(NAME, { conditions: [{ type: 'tested', status: 'True' }] }, anna);
      expect(await at.gate()).toEqual(['Open', 'anna']);
    }
    expect(await at.scratch.git('fsck', '--strict', '--no-dangling')).toBe('');
    await at.store.update(NAME, { action: 'propose' }, anna);
    await at.store.update(NAME, { action: 'approve' }, anna);
    expect(await at.scratch.git('for-each-ref', '--format=%(refname)', 'refs/sluice')).toBe('refs/sluice/repository');
  });
});

test('a draft that was branched off main with git has the verdicts of the published revision', async () => {
  await using at = await setUp();
  await draft(at.store);
  await at.store.update(NAME, { action: 'propose' }, anna);
  await at.store.update(NAME, { action: 'approve' }, anna);
  const next = { branch: 'drafts/shop/v2', from: 'refs/heads/main' };
  await at.scratch.git('branch', 'drafts/shop/v2', 'main');
  expect(await at.gate('packages.shop.v2')).toEqual(['Open', 'anna']);
  await at.push({ 'shop/app.yaml': 'a: 2\n' }, next);
  expect(await at.gate('packages.shop.v2')).toEqual(['Stale', 'anna']);
});

test('conditions in the files that a package begins with are issued by its creator', async () => {
  await using at = await setUp();
  const files = new Map([['Kptfile', Buffer.from(kptfile('True'))]]);
  await at.store.create('packages', { package: 'shop', workspace: 'v1', source: { type: 'init', files } }, anna);
  expect(await at.gate()).toEqual(['Open', 'anna']);
});

test('what is pushed to a proposed branch needs two approvers who changed nothing and proposed nothing', async () => {
  await using at = await setUp({ ...DEFAULT_POLICY, forbidSelfApproval: true });
  await draft(at.store);
  await at.store.update(NAME, { action: 'propose' }, anna);
  await at.push({ 'shop/Kptfile': kptfile('True', 'mine') }, { branch: 'proposed/shop/v1', from: '' });
  await at.repository.refresh();
  await at.store.change(NAME, { recordPush: true }, robot);
  await at.store.change(NAME, { metadata: { labels: { a: 'b' } } }, anna);
  const bob = { actor: { name: 'bob' }, face: 'cli' } as const;
  const carl = { actor: { name: 'carl' }, face: 'cli' } as const;
  const warnings: string[] = [];
  const warn = (message: string) => warnings.push(message);
  expect(await at.store.update(NAME, { action: 'approve' }, { ...bob, warn })).toMatchObject({
    lifecycle: 'Proposed',
  });
  expect(warnings).toEqual([expect.stringContaining('1 of 2 approvals: ')]);
  await at.store.update(NAME, { action: 'approve' }, bob);
  await expect(at.store.update(NAME, { action: 'approve' }, anna)).rejects.toThrow('must not approve it');
  expect(await at.store.update(NAME, { action: 'approve' }, carl)).toMatchObject({ lifecycle: 'Published' });
});

test('a copy does not get the verdicts that a pushed tag claims', async () => {
  const givers = [{ conditionType: 'tested', actors: ['qa'], policy: 'p' }];
  await using at = await setUp({ ...DEFAULT_POLICY, givers });
  const verdict = {
    type: 'tested',
    status: 'True',
    inputs: { 'file:absent': 'absent' },
    by: 'qa',
    face: 'api',
    at: '',
    since: '',
  };
  const message = `released\n\nSluice-Record: ${JSON.stringify({ verdicts: [verdict], steps: [], content: '' })}\n`;
  await at.push({ 'shop/Kptfile': kptfile('True') }, { branch: 'main', from: '', message });
  await at.scratch.git('tag', 'shop/v1', 'main');
  await at.repository.refresh();
  const source = { type: 'copy', source: NAME } as const;
  await at.store.create('packages', { package: 'shop', workspace: 'v2', source }, anna);
  expect(await at.gate('packages.shop.v2')).toEqual(['NotAllowed', 'push']);
});

describe('who changed a pushed draft is not known', () => {
  const bob = { actor: { name: 'bob' }, face: 'cli' } as const;

  test.each([
    ['its commit claims to be one of Sluice', 'x\n\nSluice-Action: edit\nSluice-Actor: anna\n', false],
    ['a plain push tagged the same as published', 'pushed\n', true],
  ])('also where %s', async (_, message, isTagged) => {
    await using at = await setUp({ ...DEFAULT_POLICY, forbidSelfApproval: true });
    await at.push({ 'shop/Kptfile': KPTFILE_WITHOUT_GATES }, { ...BRANCH, message });
    if (isTagged) await at.scratch.git('tag', 'shop/v9', 'drafts/shop/v1');
    await at.repository.refresh();
    await at.store.update(NAME, { action: 'propose' }, anna);
    expect(await at.store.update(NAME, { action: 'approve' }, bob)).toMatchObject({ lifecycle: 'Proposed' });
    const evaluation = await at.store.evaluate(NAME);
    expect(evaluation.record.contributors?.map(({ name }) => name)).toEqual(['push']);
  });
});

test('a proposal whose record was removed cannot be approved until it is proposed again, independent of its Kptfile', async () => {
  await using at = await setUp();
  await draft(at.store);
  await at.store.update(NAME, { action: 'propose' }, anna);
  await at.push({ 'shop/Kptfile': KPTFILE_WITHOUT_GATES }, { branch: 'proposed/shop/v1', from: '' });
  await at.repository.refresh();
  // The gate of the proposal stays, although the Kptfile does not name it any more.
  await expect(at.store.update(NAME, { action: 'approve' }, anna)).rejects.toThrow('gate tested is closed');
  await loseRecord(at.scratch, at.store);
  await at.repository.refresh();
  const lost = 'the record of the proposal of packages.shop.v1 was removed or replaced';
  await expect(at.store.update(NAME, { action: 'approve' }, anna)).rejects.toThrow(lost);
  // What is written since does not hide it.
  await at.store.change(NAME, { metadata: { labels: { a: 'b' } } }, anna);
  await expect(at.store.update(NAME, { action: 'approve' }, anna)).rejects.toThrow(lost);
  await at.store.update(NAME, { action: 'reject' }, anna);
  await at.store.update(NAME, { action: 'propose' }, anna);
  expect(await at.store.update(NAME, { action: 'approve' }, anna)).toMatchObject({ lifecycle: 'Published' });
});

function recordOf(store: RevisionStore): string {
  const { path, key } = store.get(NAME);
  return `refs/sluice/records/${path}/${key.workspace}`;
}
