import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';
import { repositoryControllerOf } from '../support/repository-controller.ts';

const REVIEW = 'example.com/Review';
const CLAIM = 'example.com/v1.Review.app';
const kptfile = (conditions: readonly string[] = [], gates: readonly string[] = []) =>
  JSON.stringify({
    ...{ apiVersion: 'kpt.dev/v1', kind: 'Kptfile', metadata: { name: 'app' } },
    info: { readinessGates: gates.map((conditionType) => ({ conditionType })) },
    status: { conditions: conditions.map((type) => ({ type, status: 'True' })) },
  });

let world: Fixture;
let branch: string;
beforeEach(async () => {
  world = await fixture();
  branch = await world.register('apps');
});
afterEach(() => world[Symbol.asyncDispose]());

async function policy(spec: Record<string, unknown>, name = 'production'): Promise<void> {
  await world.client.create(packagePolicyKind, { metadata: { name }, spec });
  await settle();
}

describe('condition types that people could take for another one', () => {
  const LOOKALIKES = [
    'example.com/Rev\u200biew',
    'example.com/Revi\u0435w',
    'example.com/Review ',
    'example.com/Rev\u0007iew',
  ];

  test.each(LOOKALIKES)('%j is refused when it is given, required, or written into a Kptfile', async (type) => {
    await policy({ requiredGates: [{ conditionType: REVIEW }] });
    const { name } = await world.draft('apps/app/w1', { Kptfile: kptfile() });
    const change = (what: Parameters<typeof world.store.change>[1]) => world.store.change(name, what, ANNA);
    const refusal = /the condition type ".*" (?:has|begins|mixes) .*; use another one/;
    await expect(change({ conditions: [{ type, status: 'True' }] })).rejects.toThrow(refusal);
    await expect(change({ kptfile: [{ op: 'addGate', conditionType: type }] })).rejects.toThrow(refusal);
    const files = new Map([['Kptfile', Buffer.from(kptfile([type]))]]);
    await expect(change({ files })).rejects.toThrow(refusal);
    await expect(policy({ requiredGates: [{ conditionType: type }] }, 'more')).rejects.toThrow('the condition type');
    await expect(policy({ givers: [{ conditionType: type, actors: ['x'] }] }, 'more')).rejects.toThrow();
  });

  test('a word of another script is refused if it resembles a type that a policy names', async () => {
    await policy({ requiredGates: [{ conditionType: 'ace' }] });
    const { name } = await world.draft('apps/app/w1', { Kptfile: kptfile() });
    const conditions = [{ type: '\u0430\u0441\u0435', status: 'True' }] as const;
    await expect(world.store.change(name, { conditions }, ANNA)).rejects.toThrow('looks like ace');
  });

  test.each(LOOKALIKES)('%j that is pushed is an event on the revision, once', async (type) => {
    const clock = new ManualClock();
    await using at = await fixture(clock);
    const controller = repositoryControllerOf(at);
    const repo = await at.bare('apps');
    await at.client.create(repositoryKind, { metadata: { name: 'apps' }, spec: { git: { repo } } });
    const look = async () => {
      clock.advance(1000);
      await controller.reconcile(
        { namespace: 'default', name: 'apps' },
        { signal: new AbortController().signal, failures: 0 },
      );
      return (await at.events('apps.app.w1')).filter((event) => event.startsWith('LookalikeType: '));
    };
    await look();
    await at.push(repo, { 'app/Kptfile': kptfile([type, REVIEW], [REVIEW]) }, 'drafts/app/w1', 'refs/heads/main');
    const reported = [
      expect.stringMatching(
        /^LookalikeType: a push added a condition or gate to apps\.app\.w1 that opens no gate: {2}the condition type/,
      ),
    ];
    expect(await look()).toEqual(reported);
    await at.push(repo, { 'app/a.yaml': 'a: 1\n' }, 'drafts/app/w1');
    expect(await look()).toEqual(reported);
  });

  test('a pushed one opens no gate, and the gate has the reason', async () => {
    await policy({ requiredGates: [{ conditionType: REVIEW }] });
    const [lookalike = ''] = LOOKALIKES;
    await world.push(branch, { 'app/Kptfile': kptfile([lookalike], [lookalike]) }, 'drafts/app/w1', 'refs/heads/main');
    await world.store.repository('apps').refresh();
    const { gates } = await world.store.evaluate('apps.app.w1');
    expect(gates).toMatchObject([
      { type: lookalike, state: 'NotAllowed', explanation: expect.stringContaining('cannot be seen') },
      { type: REVIEW, state: 'Missing' },
    ]);
    // Other changes of the package still go.
    await world.store.change('apps.app.w1', { files: new Map([['a.yaml', Buffer.from('a: 1\n')]]) }, ANNA);
  });
});

describe('a condition whose type resembles the name of an object', () => {
  const object = (more = '') =>
    `apiVersion: example.com/v1\nkind: Review\nmetadata:\n  name: app\nspec:\n  mode: 0644\n${more}`;
  const state = async () => (await world.store.evaluate('apps.app.w1')).gates[0]?.state;
  const write = (path: string, text: string) =>
    world.store.change('apps.app.w1', { files: new Map([[path, Buffer.from(text)]]) }, ANNA);

  async function given(): Promise<void> {
    await world.draft('apps/app/w1', { Kptfile: kptfile(), 'review.yaml': object(), 'app.yaml': 'a: 1\n' });
    await world.store.change('apps.app.w1', { conditions: [{ type: CLAIM, status: 'True' }] }, ANNA);
  }

  test('counts for the whole content where a policy requires it: a small object of that name does not cover other changes', async () => {
    await policy({ requiredGates: [{ conditionType: CLAIM }] });
    await given();
    expect(await state()).toBe('Open');
    await write('app.yaml', 'a: evil\n');
    expect(await state()).toBe('Stale');
  });

  test('that was issued for the object before the policy has to be issued again', async () => {
    await given();
    await policy({ requiredGates: [{ conditionType: CLAIM }] });
    expect(await state()).toBe('Unproven');
    await world.store.change('apps.app.w1', { conditions: [{ type: CLAIM, status: 'True' }] }, ANNA);
    expect(await state()).toBe('Open');
  });

  test('counts for the object if the policy sets it, as its scalars are written', async () => {
    await policy({ requiredGates: [{ conditionType: CLAIM, boundTo: 'object' }] });
    await given();
    await write('app.yaml', 'a: other\n');
    await write('review.yaml', `# a comment\n${object()}status: {done: true}\n`);
    expect(await state()).toBe('Open');
    await write('review.yaml', object().replace('0644', '644'));
    expect(await state()).toBe('Stale');
  });
});
