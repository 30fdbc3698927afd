import { describe, expect, test } from 'vitest';
import { anna, commitFiles, robot, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { draft, KPTFILE, outcomeOf, publish } from '../../../test/support/shop.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { openRepository } from '../../git/open/open-repository.ts';
import { DEFAULT_POLICY } from '../model/policy/policy.ts';
import type { RevisionStore } from './revision-store.ts';

function text(value: string): Buffer {
  return Buffer.from(value);
}

describe('a Kptfile that kpt rejects', () => {
  const misspelt =
    'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\ninfo:\n  readinesGates:\n    - conditionType: tested\n';

  test('is accepted with a warning that names the position and a similar field, and cannot be proposed', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    const warnings: string[] = [];
    const warn = (message: string) => warnings.push(message);
    await store.change(name, { files: new Map([['Kptfile', text(misspelt)]]) }, { ...anna, warn });
    const problem = /Kptfile:\d+:3: kpt knows no field readinesGates .*Did you mean readinessGates\?/;
    expect(warnings).toEqual([expect.stringMatching(problem)]);
    const outcome = await outcomeOf(store.update(name, { action: 'propose' }, anna));
    expect(outcome).toMatch(/^Refused: kpt rejects a Kptfile of packages\.shop\.v1: /);
    expect(outcome).toMatch(problem);
    // A change of something else warns of nothing, and a repaired one can be proposed.
    await store.change(name, { files: new Map([['a.yaml', text('a: 1\n')]]) }, { ...anna, warn });
    expect(warnings).toHaveLength(1);
    await store.change(name, { files: new Map([['Kptfile', text(KPTFILE)]]) }, { ...anna, warn });
    expect(await outcomeOf(store.update(name, { action: 'propose' }, anna))).toBe('succeeded');
  });

  test('of a package within the package counts too, and a push of it to the proposed branch prevents the approval', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    await store.update(name, { action: 'propose' }, anna);
    const git = await openRepository(scratch.path);
    await commitFiles(git, { 'shop/sub/Kptfile': misspelt }, scratch.clock.now(), { branch: 'proposed/shop/v1' });
    await git.close();
    await store.repository('packages').refresh();
    expect(await outcomeOf(store.update(name, { action: 'approve' }, anna))).toMatch(/sub\/Kptfile:\d+:3: kpt knows/);
  });
});

describe('gates', () => {
  test('a condition counts for the content that it was issued for, and can be affirmed', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    await store.change(name, { kptfile: [{ op: 'addGate', conditionType: 'tested' }] }, anna);
    expect(await outcomeOf(store.update(name, { action: 'propose' }, anna))).toContain('gate tested is closed');
    const given = { type: 'tested', status: 'True', reason: 'Ok' } as const;
    await store.change(name, { conditions: [given] }, anna);
    expect((await store.evaluate(name)).gates[0]?.state).toBe('Open');
    await store.change(name, { files: new Map([['app.yaml', text('a: 1\n')]]) }, anna);
    expect((await store.evaluate(name)).gates[0]).toMatchObject({ state: 'Stale', changed: ['content'] });
    const before = store.get(name).commit;
    await store.change(name, { conditions: [given] }, { ...anna, reason: 'looked again' });
    expect(store.get(name).commit).toBe(before);
    const affirmed = { by: 'anna', face: 'cli', action: 'edit', reason: 'looked again' };
    expect(await store.history(name)).toContainEqual(expect.objectContaining(affirmed));
    expect((await store.evaluate(name)).gates[0]?.state).toBe('Open');
    await publish(store, name);
    expect(store.get(name).outOfBand).toBeUndefined();
    const givers = (await store.evaluate(name)).record.verdicts.map(({ type, by }) => `${type} ${by}`);
    expect(givers).toEqual(['Rendered controller:render', 'tested anna']);
  });

  test('a copy carries verdicts along, and they hold until their inputs change', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    await store.change(
      name,
      { kptfile: [{ op: 'addGate', conditionType: 'tested' }], conditions: [{ type: 'tested', status: 'True' }] },
      anna,
    );
    await publish(store, name);
    const copy = await store.create(
      'packages',
      { package: 'shop', workspace: 'v2', source: { type: 'copy', source: name } },
      anna,
    );
    const result = await store.evaluate(copy.name);
    expect(result.gates[0]?.state).toBe('Open');
    expect(result.record.source?.content).toBe(result.content.content);
    await store.change(copy.name, { files: new Map([['new.yaml', text('b: 2\n')]]) }, anna);
    expect((await store.evaluate(copy.name)).gates[0]?.state).toBe('Stale');
  });

  test('a condition named after an object is bound to that object without its status', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open();
    const name = await draft(store);
    const type = 'ipam.resource.nephio.org/v1alpha1.IPClaim.n3';
    const claim = (spec: string, status = '') =>
      text(
        `apiVersion: ipam.resource.nephio.org/v1alpha1\nkind: IPClaim\nmetadata:\n  name: n3\nspec:\n  kind: ${spec}\n${status}`,
      );
    await store.change(
      name,
      {
        files: new Map([['claim.yaml', claim('network')]]),
        kptfile: [{ op: 'addGate', conditionType: type }],
        conditions: [{ type, status: 'True' }],
      },
      robot,
    );
    const state = async () => (await store.evaluate(name)).gates[0]?.state;
    await store.change(name, { files: new Map([['other.yaml', text('c: 3\n')]]) }, anna);
    expect(await state()).toBe('Open');
    await store.change(
      name,
      { files: new Map([['claim.yaml', claim('network', 'status:\n  prefix: 10.0.0.2/24\n')]]) },
      anna,
    );
    expect(await state()).toBe('Open');
    await store.change(name, { files: new Map([['claim.yaml', claim('pool')]]) }, anna);
    expect(await state()).toBe('Stale');
  });

  test('a plain push issues conditions for its content, and a later push makes them stale', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open();
    const git = await openRepository(scratch.path);
    await commitFiles(git, { 'shop/Kptfile': KPTFILE }, scratch.clock.now(), {
      branch: 'drafts/shop/v1',
      from: 'refs/heads/main',
    });
    await repository.refresh();
    const name = 'packages.shop.v1';
    expect((await store.evaluate(name)).gates[0]).toMatchObject({
      state: 'Open',
      verdict: { by: 'push', face: 'git' },
    });
    // The record is written with the first change by Sluice; from then on the push that follows is distinguished from what was there.
    await store.change(name, { metadata: { labels: { team: 'a' } } }, anna);
    await commitFiles(git, { 'shop/app.yaml': 'a: 1\n' }, scratch.clock.now(), { branch: 'drafts/shop/v1' });
    await repository.refresh();
    expect((await store.evaluate(name)).gates[0]?.state).toBe('Stale');
    await git.close();
  });

  test('a push is not recorded of a draft that was published meanwhile', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open();
    const git = await openRepository(scratch.path);
    const time = scratch.clock.now();
    await commitFiles(git, { 'shop/Kptfile': KPTFILE }, time, { branch: 'drafts/shop/v1', from: 'refs/heads/main' });
    await repository.refresh();
    const name = 'packages.shop.v1';
    await store.update(name, { action: 'propose' }, anna);
    await store.update(name, { action: 'approve' }, anna);
    const published = await scratch.git('for-each-ref');
    await store.change(name, { recordPush: true }, robot);
    expect(await scratch.git('for-each-ref')).toBe(published);
  });

  test('conditions of a recorded push are not bound to the content of the next push', async () => {
    await using scratch = await scratchRepository();
    const { store, repository } = await scratch.open();
    const git = await openRepository(scratch.path);
    const time = scratch.clock.now();
    await commitFiles(git, { 'shop/Kptfile': KPTFILE }, time, { branch: 'drafts/shop/v1', from: 'refs/heads/main' });
    await repository.refresh();
    const name = 'packages.shop.v1';
    await store.change(name, { recordPush: true }, robot);
    const taken = await scratch.git('for-each-ref');
    await store.change(name, { recordPush: true }, robot);
    expect(await scratch.git('for-each-ref')).toBe(taken);
    await commitFiles(git, { 'shop/app.yaml': 'a: 1\n' }, time, { branch: 'drafts/shop/v1' });
    await repository.refresh();
    await git.close();
    expect((await store.evaluate(name)).gates[0]).toMatchObject({ state: 'Stale', verdict: { by: 'push' } });
  });

  test('a policy can forbid that a push gives a type, and a lost record opens nothing', async () => {
    await using scratch = await scratchRepository();
    const policy = { ...DEFAULT_POLICY, pushDenied: ['tested'] };
    const { store, repository } = await scratch.open({ policyFor: () => policy });
    const git = await openRepository(scratch.path);
    await commitFiles(git, { 'shop/Kptfile': KPTFILE }, scratch.clock.now(), {
      branch: 'drafts/shop/v1',
      from: 'refs/heads/main',
    });
    await repository.refresh();
    expect((await store.evaluate('packages.shop.v1')).gates[0]?.state).toBe('NotAllowed');
    await git.close();

    const plain = await scratch.open();
    const name = await draft(plain.store, 'other');
    await plain.store.change(
      name,
      { kptfile: [{ op: 'addGate', conditionType: 'x' }], conditions: [{ type: 'x', status: 'True' }] },
      anna,
    );
    await scratch.git('update-ref', '-d', record(plain.store, name));
    await plain.repository.refresh();
    expect((await plain.store.evaluate(name)).gates[0]?.state).toBe('Unproven');
    expect(await outcomeOf(plain.store.update(name, { action: 'propose' }, anna))).toContain(
      'Refused: gate x is closed',
    );
  });

  test('a decision waits for the current policies, and changes nothing while they cannot be read', async () => {
    await using scratch = await scratchRepository();
    const gate = { conditionType: 'tested', approveOnly: false, policy: 'new' };
    let policy = DEFAULT_POLICY;
    let refresh = async () => {};
    const { store } = await scratch.open({ policyFor: () => policy, refreshPolicies: () => refresh() });
    const name = await draft(store);
    await store.update(name, { action: 'propose' }, anna);
    const refs = await scratch.git('for-each-ref');
    refresh = async () => {
      throw new SluiceError('Unavailable', 'the API server does not answer');
    };
    const approve = () => outcomeOf(store.update(name, { action: 'approve' }, anna));
    expect(await approve()).toBe('Unavailable: the API server does not answer');
    // Read while the decision waits for them.
    const read = Promise.withResolvers<void>();
    refresh = async () => {
      await read.promise;
      policy = { ...DEFAULT_POLICY, requiredGates: [gate] };
    };
    const refused = approve();
    read.resolve();
    expect(await refused).toContain('gate tested is closed');
    expect(await scratch.git('for-each-ref')).toBe(refs);
  });

  test('without enforcement a step with a closed gate succeeds, and the history records it', async () => {
    await using scratch = await scratchRepository();
    const { store } = await scratch.open({ policyFor: () => ({ ...DEFAULT_POLICY, enforcement: 'warn' }) });
    const name = await draft(store);
    await store.change(name, { kptfile: [{ op: 'addGate', conditionType: 'tested' }] }, anna);
    await publish(store, name);
    expect(store.get(name).tip.facts.statement?.statement.record).toMatchObject({ gatesBypassed: true });
    expect((await store.history(name)).map((entry) => entry.what)).toEqual(
      expect.arrayContaining([
        'propose with closed gates: tested',
        'Approving package revision shop/1, approve with closed gates: tested',
      ]),
    );
  });
});

function record(store: RevisionStore, name: string): string {
  const { path, key } = store.get(name);
  return `refs/sluice/records/${path}/${key.workspace}`;
}
